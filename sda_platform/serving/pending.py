"""Sets that were acknowledged and are not in the index yet, kept by micro-segment until the index holds them."""

from collections.abc import Callable
from threading import Lock

import pyarrow as pa

from sda_platform.serving.index import records
from sda_platform.serving.record import StoredElements

MOST_SETS = 1_000_000
"""Bound of the sets that may wait; above it a put is refused until the platform has consumed some."""

# A set of a consumed segment that is not in the index was refused when it was consumed; not all of a segment are.
_SAMPLE = 8


class PendingSets:
    """Acknowledged sets by object. Writers take a lock; a reader sees each object before or after a change."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._segments: dict[str, pa.Table] = {}
        self._rows: dict[int, tuple[tuple[pa.Table, int], ...]] = {}
        self._sets = 0
        self._digest = 0

    def __len__(self) -> int:
        return self._sets

    @property
    def digest(self) -> str:
        """A value that changes with what waits, for entity tags; the order of arrival does not matter."""
        return f"{self._digest:016x}" if self._digest else "0"

    @property
    def segments(self) -> frozenset[str]:
        """Hashes of the micro-segments that wait."""
        return frozenset(self._segments)

    @property
    def is_full(self) -> bool:
        """Whether no more may be taken now."""
        return self._sets >= MOST_SETS

    def add(self, sha256: str, sets: pa.Table) -> None:
        """Show the sets of a micro-segment, which is durable; a repeated one changes nothing."""
        with self._lock:
            if sha256 in self._segments:
                return
            self._segments[sha256] = sets
            for row, norad_id in enumerate(sets.column("norad_id").to_pylist()):
                self._rows[norad_id] = (*self._rows.get(norad_id, ()), (sets, row))
            self._count(sha256, sets.num_rows)

    def drop(self, is_indexed: Callable[[StoredElements], bool]) -> None:
        """Forget the micro-segments that the index holds: a commit consumes one whole."""
        with self._lock:
            for sha256, sets in list(self._segments.items()):
                if any(map(is_indexed, records(sets.slice(0, _SAMPLE)))):
                    del self._segments[sha256]
                    for norad_id in sets.column("norad_id").unique().to_pylist():
                        self._forget(norad_id, sets)
                    self._count(sha256, -sets.num_rows)

    def of(self, norad_id: int) -> list[StoredElements]:
        """The sets of an object that wait."""
        return [records(table.slice(row, 1))[0] for table, row in self._rows.get(norad_id, ())]

    def objects(self) -> list[int]:
        """The objects that have sets waiting, ascending."""
        return sorted(self._rows)

    def _forget(self, norad_id: int, sets: pa.Table) -> None:
        left = tuple(each for each in self._rows[norad_id] if each[0] is not sets)
        if left:
            self._rows[norad_id] = left
        else:
            del self._rows[norad_id]

    def _count(self, sha256: str, sets: int) -> None:
        self._sets += sets
        self._digest ^= int(sha256[:16], 16)
