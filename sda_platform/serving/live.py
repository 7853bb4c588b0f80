"""The catalogue as it is served: the index of the newest version, and the acknowledged sets that it lacks."""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from heapq import merge
from itertools import chain
from typing import Any

import pyarrow as pa

from sda_platform.orbits.element_order import rank
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS
from sda_platform.serving import keys
from sda_platform.serving.errors import DamagedIndex, IndexMismatch
from sda_platform.serving.index import GREATEST_ID, Binding, CatalogueIndex
from sda_platform.serving.pending import PendingSets
from sda_platform.serving.record import StoredElements
from sda_platform.serving.source import CatalogueSource
from sda_platform.serving.store import IndexStore


class LiveCatalogue:
    """Answers from one index and follows the catalogue. One thread calls `refresh`; any may read."""

    def __init__(
        self,
        source: CatalogueSource,
        store: IndexStore,
        now_ns: Callable[[], int],
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self.source, self.pending = source, PendingSets()
        self._store, self.now_ns, self._wall_s = store, now_ns, wall_s
        self._followed_after_s: float | None = None
        self._index: CatalogueIndex | None = None
        self._retired: CatalogueIndex | None = None
        self._binding: Binding | None = None

    @property
    def binding(self) -> Binding | None:
        """The version that is served; None before the first."""
        return self._binding

    @property
    def etag(self) -> str:
        """Entity tag of every answer from this state: the catalogue's version and what waits."""
        binding = self._binding
        version = f"{binding.version}-{binding.manifest_sha256[:8]}" if binding else "none"
        return f'"{version}-{self.pending.digest}"'

    def start(self) -> None:
        """Open the index, verify it, and read what was acknowledged but not consumed; a damaged index is rebuilt."""
        try:
            self._index = self._store.open()
            self._binding = self._index.verify() if self._index else None
        except DamagedIndex:
            self._index, self._binding = None, None
        self.refresh()

    def refresh(self) -> bool:
        """Follow the catalogue and take in micro-segments of others; whether the served version changed."""
        newest, served = self.source.newest(), self._binding
        if newest is not None and served is not None and newest.identities != served.identities:
            self.pending = self._waiting(served)
        self._take_unconsumed()
        if newest is None or (served is not None and _is_same(newest, served)):
            return False
        if self._index is None or served is None or not self._is_continued(served, newest):
            # A reader may be at work in the old index; it is closed when the next one takes over.
            before, self._retired, self._index = self._retired, self._index, self._rebuilt(newest)
            if before is not None:
                before.engine.close()
        else:
            changed = self.source.catalogue(newest, after_sequence=served.sequence)
            sets = self.source.element_sets(newest, after_sequence=served.elements_sequence)
            self._index.update(newest, changed, sets)
        self._binding = self._index.binding()
        self._followed_after_s = self._wall_s() - newest.committed_wall_ms / 1000
        self.pending.drop(self._is_indexed)
        return True

    def take(self, sha256: str, published: pa.Table) -> None:
        """Serve the sets of a micro-segment, which is durable."""
        self.pending.add(sha256, self.source.identified(published))

    def get(self, norad_id: int) -> StoredElements | None:
        """The set in force of an object, acknowledged ones included; None where it has none."""
        waiting = self.pending.of(norad_id)
        if not waiting:
            return self._indexed().get(norad_id)
        indexed = self._index.get(norad_id) if self._index else None
        return self._best([*waiting, indexed] if indexed else waiting)

    def objects(self, after: int = 0, upto: int = GREATEST_ID) -> Iterator[StoredElements]:
        """The sets in force of the objects above ``after`` up to ``upto``, ascending."""
        waiting = {number for number in self.pending.objects() if after < number <= upto}
        indexed = (record for record in self._indexed().objects(after + 1, upto) if record.norad_id not in waiting)
        changed = (found for number in sorted(waiting) if (found := self.get(number)))
        return merge(indexed, changed, key=lambda record: record.norad_id)

    def found(self, search: Mapping[str, str]) -> Iterator[StoredElements]:
        """The objects with this ``name`` part or ``designator`` beginning, ascending by number."""
        index = self._indexed()
        indexed = index.named(search["name"]) if "name" in search else index.designated(search["designator"])
        candidates = {record.norad_id for record in indexed} | set(self.pending.objects())
        current = (found for number in sorted(candidates) if (found := self.get(number)))
        return (record for record in current if _matches(record, search))

    def by_epoch(self, since_ns: int, until_ns: int) -> Iterator[StoredElements]:
        """The sets in force with an epoch in [since_ns, until_ns], ascending by number."""
        candidates = {r.norad_id for r in self._indexed().by_epoch(since_ns, until_ns)} | set(self.pending.objects())
        current = (found for number in sorted(candidates) if (found := self.get(number)))
        return (record for record in current if since_ns <= record.epoch_time_ns <= until_ns)

    def history(self, norad_id: int, since_ns: int = ALWAYS_NS, until_ns: int = FOREVER_NS) -> list[StoredElements]:
        """Every set of an object with an epoch in [since_ns, until_ns], by epoch."""
        waiting = (each for each in self.pending.of(norad_id) if since_ns <= each.epoch_time_ns <= until_ns)
        found = chain(self._indexed().history(norad_id, since_ns, until_ns), waiting)
        distinct = {(each.segment_sha256, each.record_number): each for each in found}
        return sorted(distinct.values(), key=lambda each: each.epoch_time_ns)

    def in_force_at(self, norad_id: int, times_ns: Sequence[int]) -> list[StoredElements]:
        """An object's set in force at each time; before its first epoch, the first. Empty for an unknown object."""
        history = self.history(norad_id) or filter(None, [self.get(norad_id)])
        ordered = sorted(history, key=lambda each: rank(each._asdict(), FOREVER_NS))
        if not ordered:
            return []
        epochs_ns = [each.epoch_time_ns for each in ordered]
        # Where all sets are ahead, those of the first epoch count.
        reached_ns = (max(time_ns + EPOCH_TOLERANCE_NS, epochs_ns[0]) for time_ns in times_ns)
        return [ordered[bisect_right(epochs_ns, each) - 1] for each in reached_ns]

    def health(self) -> dict[str, Any]:
        """What is served, and how far it is behind.

        ``lag_s`` is the time since the commit of a verified version that is not served yet. ``followed_after_s`` is how
        long after its commit the served version was taken in. Both are by the wall clock.
        """
        binding, newest = self._binding, self.source.newest()
        behind = newest if newest is not None and (binding is None or not _is_same(newest, binding)) else None
        return {
            "catalogue": asdict(binding) if binding else None,
            "is_behind": behind is not None,
            "lag_s": self._wall_s() - behind.committed_wall_ms / 1000 if behind else 0.0,
            "followed_after_s": self._followed_after_s,
            "pending_sets": len(self.pending),
            "engine": self._index.engine.statistics() if self._index else None,
        }

    def close(self) -> None:
        """Release the index."""
        for index in (self._index, self._retired):
            if index is not None:
                index.engine.close()

    def _indexed(self) -> CatalogueIndex:
        if self._index is None:
            raise IndexMismatch("the catalogue has no version yet: land element sets and wait for the first run")
        return self._index

    def _best(self, sets: list[StoredElements]) -> StoredElements:
        now_ns = self.now_ns()
        return max(sets, key=lambda each: rank(each._asdict(), now_ns))

    def _rebuilt(self, newest: Binding) -> CatalogueIndex:
        return self._store.rebuild(newest, self.source.catalogue(newest), self.source.element_sets(newest))

    def _is_continued(self, served: Binding, newest: Binding) -> bool:
        """Whether the index can be updated; where sets have moved to other objects, it is loaded again."""
        is_later = newest.sequence >= served.sequence and newest.identities == served.identities
        return is_later and self.source.holds(served)

    def _waiting(self, served: Binding) -> PendingSets:
        """What waits, under the numbers that count now."""
        pending = PendingSets()
        for sha256, sets in self.source.unconsumed(served, ()).items():
            pending.add(sha256, sets)
        return pending

    def _take_unconsumed(self) -> None:
        for sha256, sets in self.source.unconsumed(self._binding, self.pending.segments).items():
            self.pending.add(sha256, sets)

    def _is_indexed(self, record: StoredElements) -> bool:
        key = keys.history(record.norad_id, record.epoch_time_ns, record.segment_sha256, record.record_number)
        return self._index is not None and self._index.engine.get(key) is not None


def _is_same(newest: Binding, served: Binding) -> bool:
    return replace(served, objects=0, sets=0) == newest


def _matches(record: StoredElements, search: Mapping[str, str]) -> bool:
    if "name" in search:
        return search["name"].upper() in (record.object_name or "").upper()
    return (record.international_designator or "").upper().startswith(search["designator"].upper())
