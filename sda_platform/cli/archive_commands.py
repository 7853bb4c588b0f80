"""Commands that read the past: queries, differences, explanations, and what rests on an input."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any

import click

from sda_platform.cli.people import POSITIVE, PeopleConsole, console, for_people, lake_of, positive
from sda_platform.settings import Settings

MOMENT = "a time (2026-05-01T12:00Z, mission:2026-05-01T12:00Z), an ALERT (ALERT@N: its revision N), versions (tracks=12,…), a tag (tag:NAME) or a .json file of versions"  # noqa: E501
_LIMIT = "Rows to show; --json has all."


def options_of_a_query(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that every query has: the moment, the columns that tables have, and how many rows are shown."""
    for option in (
        click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help=_LIMIT),
        click.option(
            "--columns",
            type=click.Choice(["snapshot_time", "current"]),
            default="snapshot_time",
            show_default=True,
            help="Columns of each table: those that it had then, or those of today (null where they came later).",
        ),
        click.option("--as-of", default="now", show_default=True, help=f"The moment: {MOMENT}."),
    ):
        command = option(command)
    return command


def errors_as_json(command: Callable[..., Any]) -> Callable[..., Any]:
    """With ``--json``, print the fields of an expired version as JSON; the exit code is 1."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        from sda_platform.archive.errors import VersionExpired

        try:
            return command(*args, **options)
        except VersionExpired as error:
            if not options.get("as_json"):
                raise
            click.echo(json.dumps({"error": error.to_dict()}, indent=2))
            sys.exit(1)

    return run


@click.command(short_help="Run SQL on all tables as of one moment.")
@click.argument("sql")
@options_of_a_query
@click.option("--memory-mb", type=click.IntRange(64), default=1024, show_default=True, help="Memory of the query.")
@positive("--timeout-s", 600.0, "Time.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
@errors_as_json
def query(
    settings: Settings,
    sql: str,
    as_of: str,
    columns: Any,
    limit: int,
    memory_mb: int,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Run one SELECT on all tables, each as it stood at the same moment. Needs no running platform.

    As of an alert, the tables are those that its decision read, as it read them. Correction logs hold inserts and
    retracts; schema `active` has the rows that hold: SELECT * FROM active.conjunction_alerts.
    """
    from sda_platform.archive.moments import vector_of
    from sda_platform.archive.pinned_view import Limits, PinnedView
    from sda_platform.cli.archive import print_rows, rows_as_json
    from sda_platform.registry import TABLES

    tables, lake = {table.name: table for table in TABLES}, lake_of(settings)
    view = PinnedView(
        lake, tables, vector_of(lake, tables, as_of), columns, Limits(memory_mb=memory_mb, timeout_s=timeout_s)
    )
    if as_json:
        for part in rows_as_json(view, sql):
            click.echo(part, nl=False)
    else:
        print_rows(console, view, sql, limit)


@click.command(short_help="List the rows of a table that differ between two moments.")
@click.argument("table")
@click.argument("before")
@click.argument("after", default="now")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help=_LIMIT)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
@errors_as_json
def diff(settings: Settings, table: str, before: str, after: str, limit: int, as_json: bool) -> None:
    """List the inserted, changed and deleted rows of TABLE between the moments BEFORE and AFTER, by key.

    A moment is a time, an alert, versions, or `now`; see `sda query --help`. A number is a version of TABLE.
    """
    from sda_platform.archive.moments import vector_of
    from sda_platform.archive.table_diff import table_diff
    from sda_platform.cli.archive import changes_as_json, print_changes, snapshot_in
    from sda_platform.registry import TABLES, tables_named

    chosen, *others = tables_named(table)
    if others:
        raise click.UsageError("name one table")
    lake, tables = lake_of(settings), {each.name: each for each in TABLES}
    vectors = [vector_of(lake, tables, f"{table}={text}" if text.isdigit() else text) for text in (before, after)]
    snapshots = [snapshot_in(vector, chosen) for vector in vectors]
    changes = table_diff(lake, chosen, *vectors)
    if as_json:
        click.echo(json.dumps(changes_as_json(chosen, snapshots, changes), indent=2))
    else:
        print_changes(console, chosen, snapshots, changes, limit)


@click.command(short_help="List what rests on a segment, a sensor or an element set.")
@click.argument("source", metavar="SEGMENT|SENSOR|ELEMENT_SET")
@click.option("--recompute", is_flag=True, help="Make it all again without the input, and compare the alerts.")
@click.option(
    "--corrected",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="As --recompute, with these bytes in the place of the segment's.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
def impact(settings: Settings, source: str, recompute: bool, corrected: Path | None, as_json: bool) -> None:
    """List what rests on an input: alerts, and the commits of every table that read it, however indirectly.

    The input is a segment (name or SHA-256), a sensor (radar-7) or an element set (25544@2026-05-01T06:00:00.000Z, its
    epoch). With --recompute, these commits are made again in a shadow as if it had never come, down to the alerts. The
    tables stay as they are.
    """
    from sda_platform.archive.impact import impact_of
    from sda_platform.cli.archive import plain
    from sda_platform.cli.impact import impact_lines, recomputed_lines, run_recompute
    from sda_platform.registry import TABLES

    found = impact_of(lake_of(settings), {table.name: table for table in TABLES}, source)
    data = corrected.read_bytes() if corrected else None
    made = run_recompute(settings, PeopleConsole(stderr=True), found, data) if recompute or corrected else None
    if as_json:
        click.echo(json.dumps(plain({**asdict(found), **({"recomputed": made.to_dict()} if made else {})}), indent=2))
        return
    for line in (*impact_lines(found), *(recomputed_lines(made, is_corrected=data is not None) if made else ())):
        console.print(line)


@click.command(short_help="Show what was known when an alert was decided, and what is known now.")
@click.argument("alert")
@click.option("--as-of", default="", help=f"Another moment than the decision: {MOMENT}.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
@errors_as_json
def explain(settings: Settings, alert: str, as_of: str, as_json: bool) -> None:
    """Show what was known when ALERT (an id or its beginning; @N: its revision N) was decided, and what is known now.

    The JSON names the version of each table; `sda query --as-of FILE.json` reads them again.
    """
    from sda_platform.archive.explanation import explain_alert
    from sda_platform.cli.archive import explanation_lines, plain
    from sda_platform.registry import TABLES

    found = explain_alert(lake_of(settings), {table.name: table for table in TABLES}, alert, as_of)
    if as_json:
        click.echo(json.dumps(plain(found.to_dict()), indent=2))
    else:
        for line in explanation_lines(found):
            console.print(line)


@click.group(invoke_without_command=True, short_help="Show how long everything is kept; tag states to keep longer.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
@for_people
def retention(context: click.Context, as_json: bool) -> None:
    """Show every store, how long it keeps what, what removes it, and how much it holds; then leases and tags."""
    if context.invoked_subcommand is not None:
        return
    from sda_platform.archive.stores import holds, stores
    from sda_platform.cli.archive import store_grid
    from sda_platform.registry import TABLES

    settings: Settings = context.obj
    lake = lake_of(settings)
    found, held = list(stores(lake, TABLES, settings.home, settings.landing_uri)), list(holds(lake))
    if as_json:
        click.echo(json.dumps({"stores": [asdict(store) for store in found], "holds": held}, indent=2))
        return
    console.print(store_grid(found))
    for line in held or ["no lease, no tag"]:
        console.print(line)


@retention.command(short_help="Keep a state of all tables under a name.")
@click.argument("name")
@click.option("--as-of", default="now", show_default=True, help=f"The state: {MOMENT}.")
@click.option("--days", type=POSITIVE, help="How long (default: until it is removed).")
@click.pass_obj
@for_people
@errors_as_json
def tag(settings: Settings, name: str, as_of: str, days: float | None) -> None:
    """Keep a state as NAME; `--as-of tag:NAME` reads it at any later time, whatever has expired by then."""
    import time

    from sda_platform.archive.moments import vector_of
    from sda_platform.archive.tags import Tags
    from sda_platform.registry import TABLES

    lake, tables = lake_of(settings), {table.name: table for table in TABLES}
    until_ms = round(time.time() * 1000 + days * 86_400_000) if days else None
    made = Tags(lake.uri).create(lake, tables, vector_of(lake, tables, as_of), name, until_ms=until_ms)
    copied = sum(len(files) for files in made.files.values())
    console.print(f"tag {name}: {made.moment}; {len(made.snapshots)} tables, {copied} files copied")


@retention.command(short_help="Remove a tag.")
@click.argument("name")
@click.pass_obj
@for_people
def untag(settings: Settings, name: str) -> None:
    """Remove the tag NAME and its copies."""
    from sda_platform.archive.tags import Tags

    Tags(settings.lake_uri).remove(name)
    console.print(f"tag {name} is removed")


@retention.command(short_help="Verify the copies of all tags.")
@click.pass_obj
@for_people
def verify_tags(settings: Settings) -> None:
    """Read every copy of every tag, and compare checksums and row counts: the drill before a restore is needed."""
    from sda_platform.archive.tags import Tags

    console.print(f"{Tags(settings.lake_uri).verify_all()} tags are complete")


@click.command(short_help="Show how a table lies on disk: files, row groups, encodings.")
@click.argument("table")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
def layout(settings: Settings, table: str, as_json: bool) -> None:
    """Show how TABLE (or all) lies on disk, by the footers of its largest files: sizes, row groups, columns."""
    from sda_platform.archive.footers import table_layout
    from sda_platform.cli.archive import layout_grid, layout_line, plain
    from sda_platform.registry import tables_named

    lake = lake_of(settings)
    found = [table_layout(lake.log(each)) for each in tables_named(table)]
    if as_json:
        click.echo(json.dumps([plain({**asdict(each), "columns": list(map(asdict, each.columns))}) for each in found]))
        return
    for each in found:
        console.print(layout_line(each))
        if len(found) == 1:
            console.print(layout_grid(each))
