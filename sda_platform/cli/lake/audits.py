"""`sda lake audit` and `sda lake reconcile`: sessions, locks, events, and the verification after a repair."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext

import click
from rich.console import Console

import sda_platform.definitions  # noqa: F401  # the packages declare there what their tables promise
from sda_platform import audit_log
from sda_platform.cli.lake.replay import commit_counts, commits_bar
from sda_platform.cli.lake.session import session_of
from sda_platform.cli.people import lake_of, require_used
from sda_platform.definitions import default_resources
from sda_platform.observability.audits.assets import run_audit
from sda_platform.observability.audits.audits import AUDITS, Audit
from sda_platform.observability.audits.outcome import AuditOutcome, AuditScope
from sda_platform.orchestration.reconciling import ReconciledTable, reconcile
from sda_platform.orchestration.table_checks import review_declared
from sda_platform.registry import tables_named
from sda_platform.replay.history import Span
from sda_platform.replay.shadow import temporary_shadow
from sda_platform.runtime.platform_home import take_locks
from sda_platform.settings import Settings

_SHOWN = 5


def chosen_audits(names: Sequence[str]) -> list[Audit]:
    """Return the audits with these names, all for none. Raises UsageError for an unknown name."""
    known = {audit.name: audit for audit in AUDITS}
    if unknown := [name for name in names if name not in known]:
        raise click.UsageError(f"no audit is named {', '.join(unknown)}; there are: {', '.join(known)}")
    return [known[name] for name in names] or list(AUDITS)


def run_audits(settings: Settings, console: Console, chosen: Sequence[Audit]) -> dict[str, AuditOutcome]:
    """Run the ``chosen`` audits; a session starts with the first that needs one."""
    outcomes = {}
    with session_of(settings) as session:
        lake = lake_of(settings, session, "audit")
        scope = AuditScope(settings, lake, default_resources(settings), lake.clock.now_ns())
        for audit in chosen:
            console.print(f"{audit.name} …", style="dim")
            outcomes[audit.name] = run_audit(audit, scope)
    return outcomes


def run_reconcile(settings: Settings, console: Console, name: str, span: Span, *, apply: bool) -> list[ReconciledTable]:
    """Reconcile the table ``name``, or ``all``; a table that was restored is verified again.

    Raises UnknownTable, NotReplayable, AlreadyRunning, LakeInUse.
    """
    tables = tables_named(name)
    require_used(settings)
    alone = take_locks(settings.home.absolute(), settings.lake_uri, settings.landing_uri) if apply else nullcontext()
    with alone, session_of(settings) as session, commits_bar(console, commit_counts(settings, tables, span)) as report:
        lake = lake_of(settings, session, "reconcile")
        with temporary_shadow(settings.lake_uri, "reconcile") as shadow:
            found = reconcile(
                lake, shadow, default_resources(settings), tables=tables, span=span, apply=apply, report=report
            )
        for table in tables:
            if any(each.table == table.name and each.is_restored for each in found):
                review_declared(lake, table)
    differ = [each.table for each in found if each.differences]
    told = f"{len(differ)} of {len(found)} tables differ" + (f": {', '.join(differ)}" if differ else "")
    facts = {"table": name, "from_sequence": span.from_sequence, "to_sequence": span.to_sequence, "apply": apply}
    audit_log.record(settings.home, "reconcile", facts, told)
    return found


def outcome_lines(outcomes: Mapping[str, AuditOutcome]) -> Iterator[str]:
    """Write what each audit found, with its first problems."""
    for name, outcome in outcomes.items():
        facts = ", ".join(f"{fact} {value}" for fact, value in outcome.facts.items())
        yield f"{name}: {'failed' if outcome.problems else 'passed' if outcome.is_done else 'NOT DONE'} ({facts})"
        yield from (f"  left out: {reason}" for reason in outcome.skipped)
        yield from (f"  {problem}" for problem in outcome.problems[:_SHOWN])


def reconciled_lines(found: Sequence[ReconciledTable]) -> Iterator[str]:
    """Write how each table differs from its inputs, with the first differences."""
    for each in found:
        commits = f"{each.table}, commits {each.first_sequence} to {each.last_sequence}"
        done = "restored" if each.is_restored else each.refused or "run again with --apply to restore them"
        verdict = f"{len(each.differing)} commits differ; {done}" if each.differences else "level with its inputs"
        yield f"{commits}: {verdict}"
        yield from (f"  {line}" for line in each.differences[:_SHOWN])
