"""The catalogue as it is served: the index of the newest version, and the acknowledged sets that it lacks."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from threading import Lock
from typing import Any

import pyarrow as pa

from sda_platform.serving import keys
from sda_platform.serving.errors import DamagedIndex
from sda_platform.serving.index import Binding, CatalogueIndex
from sda_platform.serving.kept_views import KeptViews, not_kept
from sda_platform.serving.pending import PendingSets
from sda_platform.serving.record import StoredElements
from sda_platform.serving.satellites import NO_SATELLITES
from sda_platform.serving.source import CatalogueSource
from sda_platform.serving.store import IndexStore
from sda_platform.serving.view import View

_LOG = logging.getLogger(__name__)


class LiveCatalogue:
    """Follows the catalogue, and gives views of it. One thread calls `refresh`; any may take a view or add sets."""

    def __init__(
        self,
        source: CatalogueSource,
        store: IndexStore,
        now_ns: Callable[[], int],
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self.source = source
        self._store, self.now_ns, self._wall_s = store, now_ns, wall_s
        self._changing = Lock()
        self._changed_s = 0.0
        self._followed_after_s: float | None = None
        # Both change in one step.
        self._served: tuple[CatalogueIndex | None, PendingSets] = None, PendingSets()
        self._satellites = NO_SATELLITES
        self._binding: Binding | None = None
        self._damage: DamagedIndex | None = None
        self.kept = KeptViews()

    @property
    def binding(self) -> Binding | None:
        """The version that is served; None before the first."""
        return self._binding

    @property
    def pending(self) -> PendingSets:
        """Return the sets that were acknowledged and are not in the index."""
        return self._served[1]

    def start(self) -> None:
        """Open the index, and read what was acknowledged but not consumed; an index that cannot be read is rebuilt."""
        try:
            index = self._store.open()
            self._binding = index.binding() if index else None
            self._served = index, PendingSets(self._binding.identities if self._binding else "")
        except DamagedIndex as error:
            self._damage = error
        self.refresh()
        self._has_changed()

    def refresh(self) -> bool:
        """Follow the catalogue and take in micro-segments of others; tell whether the served version changed.

        An index that is found damaged is loaded anew from the catalogue's table. Until then it serves what is sound.
        """
        newest, served = self.source.newest(), self._binding
        # What the index before its first load lacks is loaded with it.
        self._take_unconsumed(served or newest)
        self._take_satellites()
        self.kept.release()
        if newest is None or (served is not None and _is_same(newest, served) and self._damage is None):
            return False
        try:
            self._follow(newest, served)
        except DamagedIndex as error:
            self._damage = error
        if self._damage is not None:
            _LOG.error("the index is loaded anew from the catalogue's table: %s", self._damage)
            self._rebuild(newest)
        self._followed_after_s = self._wall_s() - newest.committed_wall_ms / 1000
        self._has_changed()
        return True

    def examine(self) -> None:
        """Read a part of the index, so that damage is found which no answer meets; `refresh` loads it anew then."""
        try:
            if (index := self._served[0]) is not None:
                index.engine.examine()
        except DamagedIndex as error:
            self._damage = error

    def take(self, sha256: str, published: pa.Table) -> None:
        """Serve the sets of a micro-segment, which is durable."""
        with self._changing:
            self.pending.add(sha256, self.source.identified(published))
        self._has_changed()

    @contextmanager
    def view(self, snapshot: str | None = None) -> Iterator[View]:
        """Open a view for all reads in the context: of what is served now, or the ``snapshot`` of a page before.

        Raises NotKept where that is neither kept nor what is served now.
        """
        if snapshot is not None and self.kept.has(snapshot):
            with self.kept.view(snapshot) as view:
                yield view
            return
        # In this order: what the index takes in is dropped from the waiting sets afterwards, so no set is missed; and a
        # state is never dated later than it was first seen.
        changed_s, (index, pending), satellites = self._changed_s, self._served, self._satellites
        waiting = pending.waiting
        try:
            with ExitStack() as opened:
                reader = opened.enter_context(index.at_one_state()) if index else None
                view = View(reader, waiting, changed_s, self._wall_s(), satellites)
                if snapshot not in (None, view.identity):
                    raise not_kept()
                yield view
                if view.has_more:
                    self.kept.keep(view, opened.pop_all())
        except DamagedIndex as error:  # around the state: when that ends, an engine's error becomes this one
            if index is self._served[0]:
                self._damage = error
            raise

    def get(self, norad_id: int) -> StoredElements | None:
        """Return the set in force of an object now."""
        with self.view() as view:
            return view.get(norad_id)

    def health(self) -> dict[str, Any]:
        """Report what is served, and how far it is behind.

        ``lag_s`` is the time since the commit of a verified version that is not served yet. ``followed_after_s`` is how
        long after its commit the served version was taken in. Both are by the wall clock. ``damage`` names what is
        damaged in the index, until it is loaded anew.
        """
        binding, newest, index = self._binding, self.source.newest(), self._served[0]
        behind = newest if newest is not None and (binding is None or not _is_same(newest, binding)) else None
        return {
            "catalogue": asdict(binding) if binding else None,
            "is_behind": behind is not None,
            "lag_s": self._wall_s() - behind.committed_wall_ms / 1000 if behind else 0.0,
            "followed_after_s": self._followed_after_s,
            "pending_sets": len(self.pending),
            "damage": str(self._damage) if self._damage else None,
            "engine": index.engine.statistics() if index else None,
        }

    def close(self) -> None:
        """Release the index."""
        self.kept.release(every=True)
        if (index := self._served[0]) is not None:
            index.engine.close()

    def _has_changed(self) -> None:
        # After the change is seen by all: who saw the state before it, saw it earlier than this.
        self._changed_s = max(self._changed_s, self._wall_s())

    def _follow(self, newest: Binding, served: Binding | None) -> None:
        index = self._served[0]
        if self._damage is not None:
            return
        if index is None or served is None or not self._is_continued(served, newest):
            self._rebuild(newest)
            return
        new_sets = self.source.new_element_sets(newest, served.elements_sequence)
        if new_sets is None:  # one step of the index would take more memory than a load
            self._rebuild(newest)
            return
        changed = self.source.catalogue(newest, after_sequence=served.sequence)
        changed_holds = self.source.changed_holds(newest, served.holds_sequence, new_sets)
        self._binding = index.update(newest, changed, pa.concat_tables([new_sets, changed_holds]))
        with self._changing:
            self._served = index, self.pending.without(partial(_is_indexed, index))

    def _rebuild(self, newest: Binding) -> None:
        """Load the index of ``newest``; sets wait under the numbers that count there."""
        index = self._store.rebuild(newest, self.source.catalogue(newest), self.source.element_sets(newest))
        with self._changing:
            pending = PendingSets(newest.identities)
            for sha256, sets in self.source.unconsumed(newest, ()).items():
                pending.add(sha256, sets)
            # The index before is released with the last view of it.
            self._served = index, pending
        self._binding, self._damage = index.binding(), None

    def _is_continued(self, served: Binding, newest: Binding) -> bool:
        """Return whether the index can be updated; where sets have moved to other objects, it is loaded again."""
        is_later = newest.sequence >= served.sequence and newest.identities == served.identities
        return is_later and self.source.holds(served)

    def _take_satellites(self) -> None:
        satellites = self.source.satellites()
        if satellites.identity != self._satellites.identity:
            self._satellites = satellites
            self._has_changed()

    def _take_unconsumed(self, binding: Binding | None) -> None:
        for sha256, sets in self.source.unconsumed(binding, self.pending.segments).items():
            self.pending.add(sha256, sets)
            self._has_changed()


def _is_indexed(index: CatalogueIndex, record: StoredElements) -> bool:
    place = record.norad_id, record.epoch_time_ns, record.segment_sha256, record.record_number
    key = keys.history(*place)
    return any(index.engine.get(each) is not None for each in (key, keys.other_place(key)))


def _is_same(newest: Binding, served: Binding) -> bool:
    return replace(served, objects=0, sets=0) == newest
