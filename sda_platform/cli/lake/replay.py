"""`sda lake replay` for people: where the replay works, how far it is, and the verdict on each table."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import MappingProxyType
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from sda_platform.cli.lake.session import session_of
from sda_platform.cli.listing import number, word
from sda_platform.cli.people import lake_of
from sda_platform.clock import iso_to_second
from sda_platform.definitions import default_resources
from sda_platform.lake.table import Table
from sda_platform.orchestration.replaying import replay_lake
from sda_platform.registry import tables_named
from sda_platform.replay.comparison import Comparison
from sda_platform.replay.history import Span, history
from sda_platform.replay.shadow import temporary_shadow
from sda_platform.settings import Settings

_SHOWN_DIFFERENCES = 5
_EVERY_S = 10.0


def run_replay(
    settings: Settings, console: Console, name: str, span: Span, *, shadow: str = "", keep: bool = False
) -> list[Comparison]:
    """Replay the table ``name``, or ``all``, into a shadow; nothing outside the shadow changes.

    Without ``shadow``, a temporary directory next to the lake is used and removed at the end unless it is to be kept;
    ``shadow`` is kept. Raises the errors of `replay_lake`, UnknownTable and EngineUnavailable.
    """
    counts = commit_counts(settings, tables_named(name), span)
    if not counts:
        return []
    place = nullcontext(shadow) if shadow else temporary_shadow(settings.lake_uri, "replay", keep=keep)
    with place as uri, session_of(settings) as session, commits_bar(console, counts) as report:
        lake, tables = (
            lake_of(settings, session, "replay"),
            [each for each in tables_named(name) if each.name in counts],
        )
        found = replay_lake(lake, uri, default_resources(settings), tables=tables, span=span, report=report)
    if keep or shadow:
        console.print(f"the replayed tables are in {uri}")
    return found


def commit_counts(settings: Settings, tables: Sequence[Table], span: Span) -> dict[str, int]:
    """Return how many commits of each table lie in ``span``; tables without one are left out."""
    lake = lake_of(settings)
    found = {table.name: history(lake.log(table), span) for table in tables}
    return {name: len(each.commits) for name, each in found.items() if each is not None}


def nothing_to_replay(settings: Settings, name: str) -> str:
    """Describe, for people, which commits there are where a range of the table ``name`` has none."""
    text = "no commit lies in this range: nothing to replay"
    commits = [] if name == "all" else lake_of(settings).log(tables_named(name)[0]).commits(None)
    if not commits:
        return text
    first, last = commits[-1], commits[0]
    span = " to ".join(iso_to_second(each.manifest.as_of_ns) for each in (first, last))
    return f"{text}; {name} has {first.sequence} to {last.sequence}, of {span}"


@contextmanager
def commits_bar(
    console: Console, counts: Mapping[str, int] = MappingProxyType({})
) -> Iterator[Callable[[Table, int, int], None]]:
    """Show how many commits of all tables are made again, and how long the rest may take.

    The result is called with a table, how many of its commits are made, and how many it has; ``counts`` has the latter
    by table from the start. Where no person watches, a line says so each ten seconds.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    made, all_of, reported = dict[str, int](), dict(counts), [time.monotonic()]
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("")

        def report(table: Table, done: int, of: int) -> None:
            made[table.name], all_of[table.name] = done, of
            now, total = sum(made.values()), sum(all_of.values())
            progress.update(bar, description=table.name, completed=now, total=total)
            if not console.is_terminal and time.monotonic() - reported[0] >= _EVERY_S:
                reported[0] = time.monotonic()
                console.print(f"{now:,} of {total:,} commits are made again; now {table.name}")

        yield report


def difference_lines(found: Sequence[Comparison]) -> Iterator[str]:
    """Lines about the differences of each table, the first few of each."""
    for each in found:
        if each.not_replayed:
            yield each.not_replayed
        yield from (f"{each.table}, {line}" for line in each.differences[:_SHOWN_DIFFERENCES])
        if len(each.differences) > _SHOWN_DIFFERENCES:
            yield f"{each.table}: and {len(each.differences) - _SHOWN_DIFFERENCES} more differences (--json has all)"


def _verdict(found: Comparison) -> Text:
    if found.not_replayed:
        return Text("not replayed", "bold yellow")
    return Text("identical") if found.is_identical else Text(f"differs in {len(found.differences)} ways", "bold red")


COLUMNS: Final = (
    word("table", "table"),
    word("commits", lambda found: f"{found.first_sequence}–{found.last_sequence}"),
    number("rows", lambda found: f"{found.rows:,}"),
    word("digest", lambda found: found.digest[:12]),
    word("verdict", _verdict),
)
