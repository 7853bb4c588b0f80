"""The instant of mission time up to which a table is complete; for the `data_is_fresh` checks."""

from collections.abc import Callable

import pyarrow.compute as pc

from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.recovery.verification import reviewed_span

# The newest value may lie in a commit before the last: a late batch holds older times.
_NEWEST_COMMITS = 5

NewestNs = Callable[[Lake, TableLog], int | None]


def newest(column: str) -> NewestNs:
    """Return the greatest value of a time column among the newest commits."""

    def newest_ns(_store: Lake, log: TableLog) -> int | None:
        commits = log.commits()[:_NEWEST_COMMITS]
        values = log.rows_of(reviewed_span(commits), [column]).column(column)
        return pc.max(values).as_py() if len(values) else None

    return newest_ns


def newest_if_any(column: str) -> NewestNs:
    """Return the same of a source that a platform need not have: now, as long as nothing ever came."""

    def newest_ns(store: Lake, log: TableLog) -> int | None:
        return newest(column)(store, log) if log.head().commit else store.clock.now_ns()

    return newest_ns


def watermark(name: str) -> NewestNs:
    """A watermark of the newest manifest."""

    def newest_ns(_store: Lake, log: TableLog) -> int | None:
        commit = log.head().commit
        return commit.manifest.watermarks.get(name) if commit else None

    return newest_ns


def never_stale(store: Lake, _log: TableLog) -> int:
    """Return the current time: what people write has no schedule, so the table is always complete."""
    return store.clock.now_ns()


def nothing_waits(store: Lake, log: TableLog) -> int:
    """Now, when every commit of what the table consumes is consumed; else when the oldest that waits was committed."""
    commit = log.head().commit
    waiting = [store.clock.now_ns()]
    for source in log.table.consumed:
        window = commit.manifest.window(source.name) if commit else None
        consumed = window.upto_sequence if window else 0
        waiting += [c.manifest.as_of_ns for c in store.log(source).commits(None, after=consumed)]
    return min(waiting)
