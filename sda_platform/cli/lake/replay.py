"""`sda lake replay` for people: where the replay works, how far it is, and the verdict on each table."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
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
    tables = [each for each in tables_named(name) if history(lake_of(settings).log(each), span)]
    if not tables:
        return []
    place = nullcontext(shadow) if shadow else temporary_shadow(settings.lake_uri, "replay", keep=keep)
    with place as uri, session_of(settings) as session, bars(console) as report:
        lake = lake_of(settings, session, "replay")
        found = replay_lake(lake, uri, default_resources(settings), tables=tables, span=span, report=report)
    if keep or shadow:
        console.print(f"the replayed tables are in {uri}")
    return found


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
def bars(console: Console) -> Iterator[Callable[[Table, int, int], None]]:
    """Show a progress bar for each table; the result is a callback for each replayed commit.

    Where no person watches, a line says how far it is, each ten seconds.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bars, reported = dict[str, TaskID](), [time.monotonic()]
    with Progress(*columns, console=console, transient=True) as progress:

        def report(table: Table, done: int, of: int) -> None:
            if table.name not in bars:
                bars[table.name] = progress.add_task(table.name, total=of)
            progress.update(bars[table.name], completed=done)
            if not console.is_terminal and time.monotonic() - reported[0] >= _EVERY_S:
                reported[0] = time.monotonic()
                console.print(f"{table.name}: {done:,} of {of:,} commits")

        yield report


def difference_lines(found: Sequence[Comparison]) -> Iterator[str]:
    """Lines about the differences of each table, the first few of each."""
    for each in found:
        yield from (f"{each.table}, {line}" for line in each.differences[:_SHOWN_DIFFERENCES])
        if len(each.differences) > _SHOWN_DIFFERENCES:
            yield f"{each.table}: and {len(each.differences) - _SHOWN_DIFFERENCES} more differences (--json has all)"


def _verdict(found: Comparison) -> Text:
    return Text("identical") if found.is_identical else Text(f"differs in {len(found.differences)} ways", "bold red")


COLUMNS: Final = (
    word("table", "table"),
    word("commits", lambda found: f"{found.first_sequence}–{found.last_sequence}"),
    number("rows", lambda found: f"{found.rows:,}"),
    word("digest", lambda found: found.digest[:12]),
    word("verdict", _verdict),
)
