"""Commands that audit the lake and repair it: each leaves an event in the audit log."""

import json
import sys
from dataclasses import asdict
from typing import Any

import click

from sda_platform.cli.people import console, for_people
from sda_platform.settings import Settings

_SHOWN = 5


@click.command(short_help="Run the audits of the lake, or list what was audited.")
@click.argument("names", nargs=-1)
@click.option("--history", "show_history", is_flag=True, help="List the events of the audit log and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
def audit(settings: Settings, names: tuple[str, ...], show_history: bool, as_json: bool) -> None:
    """Run the audits NAMES (default: all that the nightly job runs). They change nothing.

    Exit code 1 means that an audit found a problem.
    """
    from sda_platform import audit_log
    from sda_platform.cli.audits import chosen_audits, run_audits

    if show_history:
        for event in audit_log.events(settings.home):
            line = f"{event.at_utc} {event.by}: {event.operation} {json.dumps(event.arguments)}: {event.outcome}"
            click.echo(json.dumps(asdict(event)) if as_json else line)
        return
    outcomes = run_audits(settings, console, chosen_audits(names))
    if as_json:
        click.echo(json.dumps({name: asdict(outcome) for name, outcome in outcomes.items()}, indent=2, default=str))
    else:
        for name, outcome in outcomes.items():
            facts = ", ".join(f"{fact} {value}" for fact, value in outcome.facts.items())
            console.print(
                f"{name}: {'failed' if outcome.problems else 'passed' if outcome.is_done else 'NOT DONE'} ({facts})",
            )
            for reason in outcome.skipped:
                console.print(f"  left out: {reason}")
            for problem in outcome.problems[:_SHOWN]:
                console.print(f"  {problem}")
    sys.exit(int(any(outcome.problems for outcome in outcomes.values())))


@click.command(short_help="Compare tables with their inputs, and restore rows that differ.")
@click.argument("table")
@click.option("--from-sequence", type=click.IntRange(1), default=1, help="First commit to compare.")
@click.option("--to-sequence", type=click.IntRange(1), default=sys.maxsize, help="Last commit to compare.")
@click.option("--apply", is_flag=True, help="Restore rows that differ; refused while a platform uses the lake.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
def reconcile(settings: Settings, table: str, from_sequence: int, to_sequence: int, apply: bool, as_json: bool) -> None:
    """Compare TABLE (or all) with what follows from its inputs. Without --apply nothing is changed.

    With --apply the rows of each commit that differ are replaced by those that follow from its inputs, inputs before
    consumers. Exit code 1 means that a table differs.
    """
    from sda_platform.cli.audits import run_reconcile
    from sda_platform.replay.history import Span

    span = Span(from_sequence=from_sequence, to_sequence=to_sequence)
    found: list[Any] = run_reconcile(settings, console, table, span, apply=apply)
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found], indent=2))
    for each in [] if as_json else found:
        commits = f"{each.table}, commits {each.first_sequence} to {each.last_sequence}"
        if not each.differences:
            console.print(f"{commits}: level with its inputs")
            continue
        done = "restored" if each.is_restored else each.refused or "run again with --apply to restore them"
        console.print(f"{commits}: {len(each.differing)} commits differ; {done}")
        for line in each.differences[:_SHOWN]:
            console.print(f"  {line}")
    sys.exit(int(not all(each.is_level for each in found)))
