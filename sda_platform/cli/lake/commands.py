"""`sda lake`: the state of the tables, and what verifies, compares, repairs and restores them."""

import json
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import click

from sda_platform.cli.grammar import instant, json_option, lists_rows
from sda_platform.cli.lake.past_commands import PAST_COMMANDS
from sda_platform.cli.listing import Output, print_facts
from sda_platform.cli.people import PeopleConsole, console, lake_of, require_used
from sda_platform.foreign_text import printable
from sda_platform.settings import Settings

_from_sequence = click.option("--from-sequence", type=click.IntRange(1), default=1, help="First commit (default: 1).")
_to_sequence = click.option(
    "--to-sequence", type=click.IntRange(1), default=sys.maxsize, help="Last commit (default: the newest)."
)


@click.group(short_help="Tables: state, verification, replay, repair, past states.")
def lake() -> None:
    """Show the state of the tables; verify, replay, compare, repair and restore them; read their past states."""


for _command in PAST_COMMANDS:
    lake.add_command(_command)


@lake.command(short_help="List the tables.")
@lists_rows()
@click.pass_obj
def status(settings: Settings, output: Output) -> None:
    """List the tables: rows, version, age of the newest commit, watermark, commits that wait, last run.

    `sda status` also shows landing zones, dead letters, red tables and vitals.
    """
    from sda_platform.cli.platform.status import TABLE_COLUMNS
    from sda_platform.observability.status import table_states

    output.show(table_states(lake_of(settings)), TABLE_COLUMNS)


@lake.command(short_help="Verify every commit and data file of the lake.")
@click.option(
    "--deep", is_flag=True, help="Read every column of every file, and compare consumed segments with the tables."
)
@click.option(
    "--repair", is_flag=True, help="Repair as `sda up` does; refused while a platform uses the home or the lake."
)
@click.option(
    "--rebuild",
    metavar="TABLE",
    help="With --repair: make TABLE and all that was made from it anew; all: all that did not land.",
)
@click.option(
    "--accept-loss",
    metavar="TABLE",
    multiple=True,
    help="With --repair: accept what TABLE lost for good.",
)
@click.pass_obj
def verify(settings: Settings, deep: bool, repair: bool, rebuild: str | None, accept_loss: tuple[str, ...]) -> None:
    """Verify that every commit and data file of the lake is as it was written.

    Exit code 1 means damage.
    """
    from sda_platform.audit_log import record
    from sda_platform.recovery.examination import Depth
    from sda_platform.runtime import verification
    from sda_platform.runtime.platform_home import take_locks

    require_used(settings)
    if (rebuild or accept_loss) and not repair:
        raise click.UsageError("--rebuild and --accept-loss change the lake: add --repair")
    depth, accepted = Depth.COLUMNS if deep else Depth.FOOTERS, frozenset(accept_loss)
    alone = take_locks(settings.home.absolute(), settings.lake_uri, settings.landing_uri) if repair else nullcontext()
    with alone:
        console.print_lines(verification.rebuild(settings, rebuild, accepted) if rebuild else ())
        findings = verification.verify(settings, depth, repair=repair, accepted=accepted)
    damaged = [finding.examination.table for finding in findings if finding.outcome == "damaged"]
    outcome = f"damaged: {', '.join(damaged)}" if damaged else "no table is damaged"
    asked = {"deep": deep, "repair": repair, "rebuild": rebuild, "accept_loss": list(accept_loss)}
    record(settings.home, "verify", asked, outcome)
    console.print_lines(verification.lines(findings))
    sys.exit(1 if damaged else 0)


@lake.command(short_help="Restore the lake from a backup.")
@click.argument("backup", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.pass_obj
def restore(settings: Settings, backup: Path) -> None:
    """Put BACKUP, a copy of the lake's directory, in the place of the lake; refused while a platform runs.

    Tables of the backup must fit together. Segments that were consumed since are put back. The lake until now is kept
    beside the restored one.
    """
    from sda_platform.audit_log import record
    from sda_platform.runtime.platform_home import take_locks
    from sda_platform.runtime.restoring import restore as put_in_place

    with take_locks(settings.home.absolute(), settings.lake_uri, settings.landing_uri):
        line = ""
        for line in put_in_place(settings, backup):
            console.print(line)
    record(settings.home, "restore", {"backup": str(backup)}, line)


@lake.command(short_help="Accept the findings that make a table red.")
@click.argument("table")
@click.option("--reason", default="", help="Why consumers may continue; stored with the decision.")
@json_option
@click.pass_obj
def accept(settings: Settings, table: str, reason: str, as_json: bool) -> None:
    """Accept the findings that make TABLE (or all) red, so that its consumers continue.

    `sda status` lists the findings. A finding that grows worse is red again.
    """
    from sda_platform.observability.red_tables import acknowledge, acknowledgement_lines

    accepted = acknowledge(lake_of(settings), table, reason)
    print_facts(as_json, accepted, acknowledgement_lines(table, accepted))


@lake.command(short_help="Run the audits of the lake, or list what was audited.")
@click.argument("names", nargs=-1)
@click.option("--history", "show_history", is_flag=True, help="List the events of the audit log; JSON: one a line.")
@json_option
@click.pass_obj
def audit(settings: Settings, names: tuple[str, ...], show_history: bool, as_json: bool) -> None:
    """Run the audits NAMES (default: all that the nightly job runs). They change nothing.

    Exit code 1 means that an audit found a problem.
    """
    from sda_platform import audit_log
    from sda_platform.cli.lake.audits import chosen_audits, outcome_lines, run_audits

    if show_history:
        recorded = list(audit_log.events(settings.home))
        if not (recorded or as_json):
            click.echo("no event was recorded")
        for event in recorded:
            line = f"{event.at_utc} {event.by}: {event.operation} {json.dumps(event.arguments)}: {event.outcome}"
            click.echo(json.dumps(asdict(event)) if as_json else printable(line))
        return
    outcomes = run_audits(settings, PeopleConsole(stderr=True), chosen_audits(names))
    print_facts(as_json, outcomes, outcome_lines(outcomes))
    sys.exit(int(any(outcome.problems for outcome in outcomes.values())))


@lake.command(short_help="Compare tables with their inputs, and restore rows that differ.")
@click.argument("table")
@_from_sequence
@_to_sequence
@click.option("--apply", is_flag=True, help="Restore rows that differ; refused while a platform uses the lake.")
@json_option
@click.pass_obj
def reconcile(settings: Settings, table: str, from_sequence: int, to_sequence: int, apply: bool, as_json: bool) -> None:
    """Compare TABLE (or all) with what follows from its inputs. Without --apply nothing is changed.

    With --apply the rows of each commit that differ are replaced by those that follow from its inputs, inputs before
    consumers. Exit code 1 means that a table differs.
    """
    from sda_platform.cli.lake.audits import reconciled_lines, run_reconcile
    from sda_platform.replay.history import Span

    span = Span(from_sequence=from_sequence, to_sequence=to_sequence)
    found = run_reconcile(settings, console, table, span, apply=apply)
    print_facts(as_json, found, reconciled_lines(found))
    sys.exit(int(not all(each.is_level for each in found)))


@lake.command(short_help="Recompute a table and compare it bit for bit.")
@click.argument("table")
@_from_sequence
@_to_sequence
@click.option("--since", help="Only commits from this mission time on.")
@click.option("--until", help="Only commits before this mission time.")
@click.option(
    "--shadow",
    default="",
    help="Directory of the shadow table, which is kept.",
)
@click.option("--keep", is_flag=True, help="Keep the shadow table.")
@lists_rows()
@click.pass_obj
def replay(
    settings: Settings,
    table: str,
    from_sequence: int,
    to_sequence: int,
    since: str | None,
    until: str | None,
    shadow: str,
    keep: bool,
    output: Output,
) -> None:
    """Recompute TABLE (or all) from its recorded inputs, and compare it with the live table bit for bit.

    Exit code 0 means identical, 1 different. Only a shadow table is written, and nothing is delivered.
    """
    from sda_platform.audit_log import record
    from sda_platform.cli.lake.replay import COLUMNS, difference_lines, nothing_to_replay, run_replay
    from sda_platform.replay.history import Span

    since_ns = instant(since, "--since") if since else -sys.maxsize
    until_ns = instant(until, "--until") if until else sys.maxsize
    span = Span(from_sequence, to_sequence, since_ns, until_ns)
    found = run_replay(settings, PeopleConsole(stderr=True), table, span, shadow=shadow, keep=keep)
    differ = ", ".join(each.table for each in found if not each.is_identical)
    record(settings.home, "replay", {"table": table, **asdict(span)}, f"differ: {differ}" if differ else "identical")
    output.show(found, COLUMNS, nothing=nothing_to_replay(settings, table) if not found else "")
    console.print_lines(difference_lines(found) if output.is_table else ())
    sys.exit(0 if all(each.is_identical for each in found) else 1)


@lake.command(short_help="Return dead letters to their landing zones.")
@click.option("--kind", "kinds", multiple=True, help="Error kind, such as bad_length; may be repeated.")
@click.option("--stage", "stages", multiple=True, help="Table that rejected the record; may be repeated.")
@click.option("--source", "sources", multiple=True, help="Sensor (radar-7) or landing zone (radar); may be repeated.")
@click.option("--since", help="Rejected at or after this mission time.")
@click.option("--until", help="Rejected at or before this mission time.")
@click.option("--dry-run", is_flag=True, help="List the dead letters, and reprocess nothing.")
@click.option("--into", help="Other landing zones, for a trial.")
@lists_rows()
@click.pass_obj
def reprocess(
    settings: Settings,
    kinds: tuple[str, ...],
    stages: tuple[str, ...],
    sources: tuple[str, ...],
    since: str | None,
    until: str | None,
    dry_run: bool,
    into: str | None,
    output: Output,
) -> None:
    """Return dead letters to their landing zones, byte for byte; without a filter, all of them.

    A repeated command changes nothing.
    """
    from sda_platform.audit_log import record
    from sda_platform.cli.lake.reprocess import COLUMNS, groups, verdict
    from sda_platform.dead_letters.reprocess_job import reprocess_dead_letters
    from sda_platform.dead_letters.reprocessing import DeadLetterFilter

    chosen = DeadLetterFilter(
        frozenset(kinds),
        frozenset(stages),
        frozenset(sources),
        since_ns=instant(since, "--since") if since else None,
        until_ns=instant(until, "--until") if until else None,
    )
    found = reprocess_dead_letters(lake_of(settings), settings.landing_uri, chosen, into=into, dry_run=dry_run)
    if found.report:
        facts = {"kinds": kinds, "stages": stages, "sources": sources, "since": since, "until": until, "into": into}
        record(settings.home, "reprocess", facts, found.summary)
    output.show(groups(found.going_back), COLUMNS, nothing="no dead letter goes back")
    output.note(verdict(found))
