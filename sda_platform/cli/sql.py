"""`sda sql`: SQL on Spark over all tables as of one moment, once or in a shell."""

import sys
from typing import Any

import click

from sda_platform.cli.archive_commands import errors_as_json, options_of_a_query
from sda_platform.cli.people import console, for_people, lake_of, positive
from sda_platform.settings import Settings

_HELP = ".tables  .columns TABLE  .plan (of the last query)  .quit; a query ends with a semicolon"


@click.command(short_help="Run SQL on Spark, once or in a shell, as of one moment.")
@click.argument("query", required=False)
@options_of_a_query
@positive("--read-gb", 50.0, "Most that one query may read.")
@click.option("--rows", type=click.IntRange(1), default=1_000_000, show_default=True, help="Most rows of a result.")
@positive("--timeout-s", 600.0, "Time.")
@click.option("--plan", "shows_plan", is_flag=True, help="Show what the plan reads.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
@for_people
@errors_as_json
def sql(
    settings: Settings,
    query: str | None,
    as_of: str,
    columns: Any,
    limit: int,
    read_gb: float,
    rows: int,
    timeout_s: float,
    shows_plan: bool,
    as_json: bool,
) -> None:
    """Run QUERY on Spark, or without one open a shell. All queries read the tables of the same moment.

    The engine of the running platform is used, SDA_SPARK_REMOTE, or one in this process. The moment is held by a lease.
    Rows of correction logs that hold are in views named active_TABLE. `sda query` needs no engine.
    """
    from sda_platform.archive.moments import vector_of
    from sda_platform.archive.pinned_session import SqlLimits, pinned_session
    from sda_platform.cli.archive import print_rows, rows_as_json
    from sda_platform.cli.replay import session_of
    from sda_platform.cli.sql_shell import shell
    from sda_platform.registry import TABLES

    lake, tables = lake_of(settings), {table.name: table for table in TABLES}
    vector, limits = vector_of(lake, tables, as_of), SqlLimits(read_gb, rows, timeout_s)
    with (
        session_of(settings) as session,
        pinned_session(session(), lake, tables, vector, projection=columns, limits=limits) as view,
    ):
        if query is None:
            console.print(f"tables as of {vector.moment}; {_HELP}")
            shell(console, sys.stdin, view, tables, limit)
            return
        if as_json:
            for part in rows_as_json(view, query):
                click.echo(part, nl=False)
        else:
            print_rows(console, view, query, limit)
        if shows_plan and view.plan is not None:
            for line in view.plan.lines():
                click.echo(line, err=as_json)
