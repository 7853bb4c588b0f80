"""`sda lake` on the past: queries, differences, what rests on an input, how long states are kept, and files on disk."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from sda_platform.cli.grammar import (
    FOUND_FILE,
    POSITIVE,
    all_of,
    default_option,
    errors_as_json,
    instant,
    json_option,
    lists_rows,
    moment_option,
    positive,
)
from sda_platform.cli.listing import Output, grid, print_facts
from sda_platform.cli.people import PeopleConsole, console, lake_of
from sda_platform.settings import Settings

_HELP = ".tables  .columns TABLE  .plan (of the last query)  .quit; a query ends with a semicolon"


_query_options = all_of(
    lists_rows(limit=100),
    positive("--timeout-s", 600.0, "Time."),
    default_option(
        "--columns",
        type=click.Choice(["snapshot_time", "current"]),
        default="snapshot_time",
        help="Columns of then, or of today (null where they came later).",
    ),
    moment_option("now", "The moment"),
)
"""The options of every query."""


@click.command(short_help="Run SQL on all tables as of one moment.")
@click.argument("sql")
@default_option("--memory-mb", type=click.IntRange(64), default=1024, help="Memory of the query.")
@_query_options
@click.pass_obj
@errors_as_json
def query(
    settings: Settings, sql: str, as_of: str, columns: Any, memory_mb: int, timeout_s: float, output: Output
) -> None:
    """Run one SELECT on all tables, each as it stood at the same moment. Needs no running platform.

    As of an alert, the tables are those that its decision read, as it read them. Correction logs hold inserts and
    retracts; schema `active` has the rows that hold: SELECT * FROM active.conjunction_alerts. Views with timestamps are
    active.alerts, fleet.events, sensors.silence and sensors.usage.
    """
    from sda_platform.cli.lake.past import show_result
    from sda_platform.history.moments import vector_of
    from sda_platform.history.pinned_view import Limits, PinnedView
    from sda_platform.registry import TABLES_BY_NAME

    lake, tables = lake_of(settings), TABLES_BY_NAME
    limits = Limits(memory_mb=memory_mb, timeout_s=timeout_s)
    show_result(output, PinnedView(lake, tables, vector_of(lake, tables, as_of), columns, limits), sql)


@click.command(name="sql", short_help="Run SQL on Spark, once or in a shell, as of one moment.")
@click.argument("query", required=False)
@positive("--read-gb", 50.0, "Most that one query may read.")
@default_option("--rows", type=click.IntRange(1), default=1_000_000, help="Most rows of a result.")
@click.option("--plan", "shows_plan", is_flag=True, help="Show what the plan reads.")
@_query_options
@click.pass_obj
@errors_as_json
def sql_on_spark(
    settings: Settings,
    query: str | None,
    as_of: str,
    columns: Any,
    read_gb: float,
    rows: int,
    timeout_s: float,
    shows_plan: bool,
    output: Output,
) -> None:
    """Run QUERY on Spark, or without one open a shell. All queries read the tables of the same moment.

    The engine of the running platform is used, SDA_SPARK_REMOTE, or one in this process. The moment is held by a lease.
    Rows of correction logs that hold are in views named active_TABLE. `sda query` needs no engine.
    """
    from sda_platform.cli.lake.past import show_result
    from sda_platform.cli.lake.session import session_of
    from sda_platform.cli.lake.sql_shell import shell
    from sda_platform.history.moments import vector_of
    from sda_platform.history.pinned_session import SqlLimits, pinned_session
    from sda_platform.registry import TABLES_BY_NAME

    lake, tables = lake_of(settings), TABLES_BY_NAME
    vector, limits = vector_of(lake, tables, as_of), SqlLimits(read_gb, rows, timeout_s)
    with (
        session_of(settings) as session,
        pinned_session(session(), lake, tables, vector, projection=columns, limits=limits) as view,
    ):
        if query is None:
            console.print(f"tables as of {vector.moment}; {_HELP}")
            shell(sys.stdin, view, tables, output)
            return
        show_result(output, view, query)
        if shows_plan and view.plan is not None:
            output.note(view.plan.lines())


@click.command(short_help="List the rows of a table that differ between two moments.")
@click.argument("table")
@click.argument("before")
@click.argument("after", default="now")
@lists_rows(limit=100)
@click.pass_obj
@errors_as_json
def diff(settings: Settings, table: str, before: str, after: str, output: Output) -> None:
    """List the inserted, changed and deleted rows of TABLE between the moments BEFORE and AFTER, by key.

    A moment is a time, an alert, versions, or `now`; see `sda query --help`. A number is a version of TABLE.
    """
    from sda_platform.cli.lake.past import show_changes, snapshot_in
    from sda_platform.history.moments import vector_of
    from sda_platform.history.table_diff import table_diff
    from sda_platform.registry import TABLES_BY_NAME, tables_named

    chosen, *others = tables_named(table)
    if others:
        raise click.UsageError("name one table")
    lake, tables = lake_of(settings), TABLES_BY_NAME
    vectors = [vector_of(lake, tables, f"{table}={text}" if text.isdigit() else text) for text in (before, after)]
    snapshots = [snapshot_in(vector, chosen) for vector in vectors]
    show_changes(output, chosen, snapshots, table_diff(lake, chosen, *vectors))


@click.command(short_help="List what rests on a segment, a sensor or an element set.")
@click.argument("source", metavar="SEGMENT|SENSOR|ELEMENT_SET")
@click.option("--recompute", is_flag=True, help="Make it all again without the input, and compare the alerts.")
@click.option("--corrected", type=FOUND_FILE, help="As --recompute, with these bytes in the place of the segment's.")
@default_option("--since", default="-5min", help="From when on --recompute leaves a sensor out: an instant, or all.")
@json_option
@click.pass_obj
def impact(settings: Settings, source: str, recompute: bool, corrected: Path | None, since: str, as_json: bool) -> None:
    """List what rests on an input: alerts, and the commits of every table that read it, however indirectly.

    The input is a segment (name or SHA-256), a sensor (radar-7) or an element set (25544@2026-05-01T06:00:00.000Z, its
    epoch). With --recompute, these commits are made again in a shadow as if it had not come, down to the alerts: of a
    sensor those of the last minutes, since each takes about two seconds. The tables stay as they are.
    """
    from sda_platform.cli.lake.impact import impact_lines, recomputed_lines, run_recompute
    from sda_platform.history.impact import impact_of
    from sda_platform.registry import TABLES_BY_NAME

    found = impact_of(lake_of(settings), TABLES_BY_NAME, source)
    data = corrected.read_bytes() if corrected else None
    since_ns = None if found.kind != "sensor" or since == "all" else instant(since, "--since")
    is_made = recompute or corrected is not None
    made = run_recompute(settings, PeopleConsole(stderr=True), found, data, since_ns) if is_made else None
    lines = *impact_lines(found), *(recomputed_lines(made, is_corrected=data is not None) if made else ())
    facts = {**asdict(found), "alerts_are_followed": found.is_followed}
    print_facts(as_json, {**facts, **({"recomputed": made.to_dict()} if made else {})}, lines)


@click.command(short_help="Show how long everything is kept.")
@lists_rows()
@click.pass_obj
def retention(settings: Settings, output: Output) -> None:
    """Show every store, how long it keeps what, what removes it, and how much it holds; then leases and tags.

    Ages are those of the platform that runs. While none runs, they follow from the settings of this command.
    """
    from sda_platform.cli.lake.past import STORE_COLUMNS, retention_in_force
    from sda_platform.history.stores import leases_and_tags, stores
    from sda_platform.lake.retention import retention_of
    from sda_platform.registry import TABLES

    lake = lake_of(settings)
    chosen, whose = retention_in_force(settings)
    kept = retention_of(chosen)
    found, held = list(stores(lake, TABLES, settings.home, settings.landing_uri, kept)), list(leases_and_tags(lake))
    output.show(found, STORE_COLUMNS, document={"stores": found, "holds": held})
    console.print_lines((*(held or ["no lease, no tag"]), whose) if output.is_table else ())


@click.command(short_help="Keep a state of all tables under a name.")
@click.argument("name")
@moment_option("now", "The state")
@click.option("--days", type=POSITIVE, help="How long (default: until it is removed).")
@click.pass_obj
def tag(settings: Settings, name: str, as_of: str, days: float | None) -> None:
    """Keep a state as NAME; `--as-of tag:NAME` reads it at any later time, whatever has expired by then."""
    import time

    from sda_platform.history.moments import vector_of
    from sda_platform.history.tags import Tags
    from sda_platform.registry import TABLES_BY_NAME

    lake, tables = lake_of(settings), TABLES_BY_NAME
    until_ms = round(time.time() * 1000 + days * 86_400_000) if days else None
    made = Tags(lake.uri).create(lake, tables, vector_of(lake, tables, as_of), name, until_ms=until_ms)
    copied = sum(len(files) for files in made.files.values())
    console.print(f"tag {name}: {made.moment}; {len(made.snapshots)} tables, {copied} files copied")


@click.command(short_help="Remove a tag.")
@click.argument("name")
@click.pass_obj
def untag(settings: Settings, name: str) -> None:
    """Remove the tag NAME and its copies."""
    from sda_platform.history.tags import Tags

    if settings.retention.legal_hold:
        raise click.UsageError("a legal hold is on (SDA_LEGAL_HOLD): no tag is removed")
    Tags(lake_of(settings).uri).remove(name)
    console.print(f"tag {name} is removed")


@click.command(short_help="Verify the copies of all tags.")
@click.pass_obj
def verify_tags(settings: Settings) -> None:
    """Read every copy of every tag, and compare checksums and row counts: the drill before a restore is needed."""
    from sda_platform.history.tags import Tags

    console.print(f"{Tags(lake_of(settings).uri).verify_all()} tags are complete")


@click.command(short_help="Show how a table lies on disk: files, row groups, encodings.")
@click.argument("table")
@lists_rows()
@click.pass_obj
def layout(settings: Settings, table: str, output: Output) -> None:
    """Show how TABLE (or all) lies on disk, by the footers of its largest files: sizes, row groups, columns."""
    from sda_platform.cli.lake.past import FILE_COLUMNS, LAYOUT_COLUMNS
    from sda_platform.history.footers import table_layout
    from sda_platform.registry import tables_named

    lake = lake_of(settings)
    found = [table_layout(lake.log(each)) for each in tables_named(table)]
    output.show(found, LAYOUT_COLUMNS)
    if output.is_table and len(found) == 1:
        footers = f"{found[0].row_groups:,} row groups in the {found[0].read:,} largest files"
        console.print(grid(FILE_COLUMNS, found[0].columns, footers))


PAST_COMMANDS: Final = (sql_on_spark, diff, impact, retention, tag, untag, verify_tags, layout)
