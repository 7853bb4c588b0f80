"""The shell of `sda lake sql`: queries over several lines, and commands that begin with a dot."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TextIO

from sda_platform.cli.lake.past import show_result
from sda_platform.cli.listing import Output
from sda_platform.cli.people import console
from sda_platform.history.errors import QueryRefused
from sda_platform.history.pinned_session import PinnedSession
from sda_platform.history.query_views import QUERY_VIEWS
from sda_platform.lake.errors import LakeError
from sda_platform.lake.table import Table


def shell(source: TextIO, view: PinnedSession, tables: Mapping[str, Table], output: Output) -> None:
    """Run what ``source`` has until its end or ``.quit``. A query that fails is reported, and the next one is read."""
    for text in _statements(source):
        if text == ".quit":
            return
        if text.startswith("."):
            console.print_lines(_command(text, view, tables))
            continue
        try:
            show_result(output, view, text)
        except LakeError as error:
            console.print(f"Error: {error}")


def _statements(source: TextIO) -> Iterator[str]:
    """Commands, each a line, and queries, each up to a semicolon at the end of a line."""
    lines = list[str]()
    while line := _line(source, "sda> " if not lines else "...> "):
        text = line.strip()
        if text.startswith(".") and not lines:
            yield text
            continue
        lines += [text] if text else []
        if text.endswith(";"):
            yield "\n".join(lines)
            lines.clear()
    if lines:
        yield "\n".join(lines)


def _line(source: TextIO, prompt: str) -> str:
    """Return the next line with its end; empty at the end of ``source``. A person gets a prompt and a history."""
    if not source.isatty():
        return source.readline()
    with suppress(ImportError):
        import readline  # noqa: F401
    try:
        return f"{input(prompt)}\n"
    except EOFError:
        return ""


def _command(text: str, view: PinnedSession, tables: Mapping[str, Table]) -> Iterator[str]:
    name, _, argument = text.partition(" ")
    if name == ".tables":
        yield from sorted(view.vector.snapshots)
        yield from (each.name_in_spark for each in QUERY_VIEWS)
    elif name == ".columns" and argument in tables:
        for column in tables[argument].columns:
            unit = f", {column.unit}" if column.unit else ""
            yield f"{column.name} {column.data_type.simpleString()}{unit}: {column.description}"
    elif name == ".plan" and view.plan is not None:
        yield from view.plan.lines()
    else:
        yield str(QueryRefused(f"{text}: there are .tables, .columns TABLE, .plan (after a query) and .quit"))
