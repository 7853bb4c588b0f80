"""The way of a batch through the tables, from manifests alone: a commit and every commit that it rests on."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.compute as pc

from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import Table
from sda_platform.registry import TABLES_BY_NAME

# Bounds the work for a commit that caught up with a long backlog; the newest commits of a window are the ones kept.
_COMMITS_OF_A_WINDOW = 50


@dataclass(frozen=True)
class Stage:
    """A commit on the way of a batch, and the stages (``table``, sequence) that it consumed."""

    table: Table
    commit: Commit
    consumed: tuple[tuple[str, int], ...]

    @property
    def key(self) -> tuple[str, int]:
        """Return the key of the stage's row in the lake."""
        return self.table.name, self.commit.sequence


def stages(lake: Lake, table: Table, commit: Commit) -> list[Stage]:
    """``commit`` of ``table`` and all that it rests on, each once, in the order of their commits."""
    found: dict[tuple[str, int], Stage] = {}
    waiting = [(table, commit)]
    while waiting:
        reader, each = waiting.pop()
        if (reader.name, each.sequence) in found:
            continue
        consumed = list(_consumed(lake, each))
        found[reader.name, each.sequence] = Stage(reader, each, tuple((t.name, c.sequence) for t, c in consumed))
        waiting += consumed
    return sorted(found.values(), key=lambda stage: (stage.commit.timestamp_ms, stage.key))


def oldest_reception_ns(lake: Lake, way: list[Stage]) -> int | None:
    """Find when the oldest raw record on the ``way`` was received, mission time; None: it rests on no observation."""
    times = []
    for stage in way:
        if stage.table.name == RAW_RECORDS.name:
            span = (stage.commit.sequence - 1, stage.commit.sequence)
            received = lake.log(RAW_RECORDS).rows_of(span, ["received_time_ns"]).column("received_time_ns")
            times.append(pc.min(received).as_py())
    return min((time_ns for time_ns in times if time_ns is not None), default=None)


def _consumed(lake: Lake, commit: Commit) -> Iterator[tuple[Table, Commit]]:
    for window in commit.manifest.windows:
        source = TABLES_BY_NAME.get(window.table)
        if source is None or window.is_empty:
            continue
        newest = lake.log(source).commits_from(window.upto_version)
        for number, each in enumerate(newest):
            if each.sequence <= window.after_sequence or number == _COMMITS_OF_A_WINDOW:
                break
            yield source, each
