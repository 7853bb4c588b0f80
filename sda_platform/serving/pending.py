"""Sets that were acknowledged and are not in the index yet, kept by micro-segment until the index holds them."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.serving.index import records
from sda_platform.serving.record import StoredElements

MOST_SETS: Final = 1_000_000
"""Bound of the sets that may wait; above it a put is refused until the platform has consumed some."""

# A set of a consumed segment that is not in the index was refused when it was consumed; not all of a segment are.
_SAMPLE = 8
_ROW_BITS = 32


@dataclass(frozen=True)
class Waiting:
    """What waited at one moment: it does not change.

    ``digest`` identifies it; the order of arrival does not matter. ``as_of_ns`` is the mission time at which the last
    of it was received. Of each object ``newest`` has the place of the newest set, and ``earlier`` those before: the
    segment's number and the row in one integer, because a hundred thousand tuples would take the collector of garbage a
    second. Segments after ``upto`` came later and do not count.
    """

    upto: int
    sets: int
    digest: int
    as_of_ns: int
    tables: Mapping[int, pa.Table]
    newest: Mapping[int, int]
    earlier: Mapping[int, tuple[int, ...]]

    def of(self, norad_id: int) -> list[StoredElements]:
        """Return the sets of an object that wait."""
        newest = self.newest.get(norad_id)
        if newest is None:
            return []
        # A set that comes in between is found in both.
        places = dict.fromkeys((*self.earlier.get(norad_id, ()), newest))
        found = []
        for place in places:
            if place >> _ROW_BITS <= self.upto:
                found += records(self.tables[place >> _ROW_BITS].slice(place & (1 << _ROW_BITS) - 1, 1))
        return found

    def objects(self) -> list[int]:
        """Find the objects that may have pending sets, ascending: all that have, and some that got one later."""
        return sorted(self.newest)


class PendingSets:
    """Acknowledged sets by object: they are only added. ``identities`` says by which edits they have their numbers."""

    def __init__(self, identities: str = "") -> None:
        self._lock = Lock()
        self._identities = identities
        self._segments: dict[str, int] = {}
        self._tables: dict[int, pa.Table] = {}
        self._newest: dict[int, int] = {}
        self._earlier: dict[int, tuple[int, ...]] = {}
        self._waiting = Waiting(0, 0, 0, 0, self._tables, self._newest, self._earlier)

    def __len__(self) -> int:
        return self._waiting.sets

    @property
    def waiting(self) -> Waiting:
        """Return the pending sets of now, whatever is added later."""
        return self._waiting

    @property
    def segments(self) -> frozenset[str]:
        """Hashes of the micro-segments that wait."""
        return frozenset(self._segments)

    @property
    def is_full(self) -> bool:
        """Whether no more may be taken now."""
        return self._waiting.sets >= MOST_SETS

    def add(self, sha256: str, sets: pa.Table) -> None:
        """Show the sets of a micro-segment, which is durable; a repeated one changes nothing."""
        with self._lock:
            if sha256 in self._segments:
                return
            before, number = self._waiting, self._waiting.upto + 1
            self._segments[sha256], self._tables[number] = number, sets
            first, ids = number << _ROW_BITS, sets.column("norad_id").to_pylist()
            places = dict(zip(ids, range(first, first + len(ids)), strict=True))
            again = places.keys() & self._newest.keys() if len(places) == len(ids) else set(ids)
            for row, norad_id in enumerate(ids) if again else ():
                if norad_id in again and norad_id in self._newest:
                    self._earlier[norad_id] = (*self._earlier.get(norad_id, ()), self._newest[norad_id])
                if norad_id in again:
                    self._newest[norad_id] = first + row
            self._newest.update(places)
            received_ns = pc.max(sets.column("received_time_ns")).as_py() or 0
            # One step shows the segment, whole.
            self._waiting = Waiting(
                number,
                before.sets + len(ids),
                before.digest ^ self._digest_of(sha256, len(ids)),
                max(before.as_of_ns, received_ns),
                self._tables,
                self._newest,
                self._earlier,
            )

    def without(self, is_indexed: Callable[[StoredElements], bool]) -> "PendingSets":
        """Remove the micro-segments that the index holds: a commit consumes one whole."""
        kept = {
            sha256: self._tables[number]
            for sha256, number in self._segments.items()
            if not any(map(is_indexed, records(self._tables[number].slice(0, _SAMPLE))))
        }
        if len(kept) == len(self._segments):
            return self
        remaining = PendingSets(self._identities)
        for sha256, sets in kept.items():
            remaining.add(sha256, sets)
        return remaining

    def _digest_of(self, sha256: str, sets: int) -> int:
        return int(hashlib.sha256(f"{self._identities} {sha256} {sets}".encode()).hexdigest()[:16], 16)
