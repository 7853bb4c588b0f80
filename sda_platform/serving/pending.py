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
_ROW_BITS = 32


class PendingSets:
    """Acknowledged sets by object. Writers take a lock; a reader sees each object before or after a change."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._segments: dict[str, tuple[int, pa.Table]] = {}
        self._tables: dict[int, pa.Table] = {}
        # Of each object the place of its newest set, and those of earlier ones: the segment's number and the row in one
        # integer, because a hundred thousand tuples would take the collector of garbage a second.
        self._newest: dict[int, int] = {}
        self._earlier: dict[int, tuple[int, ...]] = {}
        self._taken = 0
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
            self._taken += 1
            self._segments[sha256] = self._taken, sets
            self._tables[self._taken] = sets
            first, ids = self._taken << _ROW_BITS, sets.column("norad_id").to_pylist()
            places = dict(zip(ids, range(first, first + len(ids)), strict=True))
            again = places.keys() & self._newest.keys() if len(places) == len(ids) else set(ids)
            for row, norad_id in enumerate(ids) if again else ():
                if norad_id in again and norad_id in self._newest:
                    self._earlier[norad_id] = (*self._earlier.get(norad_id, ()), self._newest[norad_id])
                if norad_id in again:
                    self._newest[norad_id] = first + row
            self._newest.update(places)
            self._count(sha256, sets.num_rows)

    def drop(self, is_indexed: Callable[[StoredElements], bool]) -> None:
        """Drop the micro-segments that the index holds: a commit consumes one whole."""
        with self._lock:
            for sha256, (number, sets) in list(self._segments.items()):
                if any(map(is_indexed, records(sets.slice(0, _SAMPLE)))):
                    del self._segments[sha256]
                    for norad_id in sets.column("norad_id").unique().to_pylist():
                        self._forget(norad_id, number)
                    del self._tables[number]
                    self._count(sha256, -sets.num_rows)

    def of(self, norad_id: int) -> list[StoredElements]:
        """The sets of an object that wait."""
        newest = self._newest.get(norad_id)
        if newest is None:
            return []
        found = []
        for place in (*self._earlier.get(norad_id, ()), newest):
            table = self._tables.get(place >> _ROW_BITS)
            if table is not None:  # dropped meanwhile: the index holds it
                found += records(table.slice(place & (1 << _ROW_BITS) - 1, 1))
        return found

    def objects(self) -> list[int]:
        """The objects that have sets waiting, ascending."""
        return sorted(self._newest)

    def _forget(self, norad_id: int, number: int) -> None:
        places = (*self._earlier.pop(norad_id, ()), self._newest[norad_id])
        left = [place for place in places if place >> _ROW_BITS != number]
        if not left:
            del self._newest[norad_id]
            return
        self._newest[norad_id] = left[-1]
        if left[:-1]:
            self._earlier[norad_id] = tuple(left[:-1])

    def _count(self, sha256: str, sets: int) -> None:
        self._sets += sets
        self._digest ^= int(sha256[:16], 16)
