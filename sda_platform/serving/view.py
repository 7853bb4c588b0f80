"""One state of the served catalogue, which does not change: a version of the index, and the sets that waited then.

An answer is made from one view. What it says depends on nothing else, and on no clock: a set is in force if its epoch
had come at the view's time.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from heapq import merge
from itertools import chain, islice
from typing import NamedTuple

from typing_extensions import override

from sda_platform.orbits.element_order import rank
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS
from sda_platform.serving import keys
from sda_platform.serving.errors import IndexMismatch
from sda_platform.serving.index import GREATEST_ID, Binding, IndexReader
from sda_platform.serving.pending import Waiting
from sda_platform.serving.record import StoredElements
from sda_platform.serving.satellites import NO_SATELLITES, CataloguedObject, PredictedDecay, Satellites


class Place(NamedTuple):
    """The place of a set in the history of its object: by epoch, then by the record that it came in."""

    epoch_time_ns: int
    segment_sha256: str = ""
    record_number: int = 0


class View:
    """What `LiveCatalogue.view` gives. One thread uses it, while the context lasts."""

    def __init__(
        self,
        index: IndexReader | None,
        waiting: Waiting,
        changed_s: float,
        taken_s: float,
        satellites: Satellites = NO_SATELLITES,
    ) -> None:
        self._index, self._waiting, self._satellites = index, waiting, satellites
        self.binding: Binding | None = index.binding() if index else None
        self.changed_s, self.taken_s = changed_s, taken_s
        """Wall clock: the state before was served until ``changed_s`` at most; this one is seen at ``taken_s``."""
        self.as_of_ns = max(self.binding.as_of_ns if self.binding else 0, waiting.as_of_ns)
        self.has_more = False
        """Whether an answer from it leads to a further page, which shall be of the same state."""

    @property
    def satellites(self) -> Satellites:
        """What satellite catalogues and edits say of objects."""
        return self._satellites

    @property
    def identity(self) -> str:
        """A text that no other state has: the versions of both catalogues, and what waits."""
        version = f"{self.binding.version}-{self.binding.manifest_sha256[:16]}" if self.binding else "none"
        return f"{version}-{self._waiting.digest:x}-{self.as_of_ns}-{self._satellites.identity}"

    @property
    def snapshot(self) -> str:
        """The name by which further pages ask for this state: `identity`, of a past view that of what it is made of."""
        return self.identity

    @property
    def is_whole(self) -> bool:
        """Whether it is of all that is known now."""
        return True

    def waiting_objects(self) -> list[int]:
        """Find the objects that may have acknowledged sets that the catalogue lacks."""
        return self._waiting.objects()

    def get(self, norad_id: int) -> StoredElements | None:
        """Return the set in force of an object, acknowledged ones included; None where it has none."""
        waiting = self._waiting.of(norad_id)
        if not waiting:
            return self._indexed().get(norad_id)
        indexed = self._index.get(norad_id) if self._index else None
        return self._named(self._best([*waiting, indexed] if indexed else waiting))

    def objects(self, after: int = 0, upto: int = GREATEST_ID) -> Iterator[StoredElements]:
        """Return the sets in force of the objects above ``after`` up to ``upto``, ascending."""
        waiting = {number for number in self._waiting.objects() if after < number <= upto}
        indexed = (record for record in self._indexed().objects(after + 1, upto) if record.norad_id not in waiting)
        changed = (found for number in sorted(waiting) if (found := self.get(number)))
        return merge(indexed, changed, key=lambda record: record.norad_id)

    def known(self, record: StoredElements) -> CataloguedObject:
        """Return the object that a set is of, with what the satellite catalogue knows of it."""
        return CataloguedObject(record.norad_id, record, self.satellites.of(record.norad_id))

    def every_object(self) -> Iterator[CataloguedObject]:
        """Find all objects, also those that have no set, by number."""
        sets = {record.norad_id: record for record in self.objects()}
        for number in sorted(sets.keys() | self.satellites.by_number.keys()):
            yield CataloguedObject(number, sets.get(number), self.satellites.of(number))

    def predictions(self) -> Iterator[PredictedDecay]:
        """Return every message that predicts a decay and was received by the view's time."""
        for facts in self.satellites.predictions:
            if facts["received_time_ns"] <= self.as_of_ns:
                number = facts["norad_id"]
                stated = {name: value for name, value in facts.items() if value is not None}
                yield PredictedDecay(number, self.get(number), {**self.satellites.of(number), **stated})

    def waiting_sets(self) -> Iterator[StoredElements]:
        """Return the acknowledged sets that wait."""
        return (each for number in self._waiting.objects() for each in self._waiting.of(number) if self.knows(each))

    def found(self, search: Mapping[str, str]) -> Iterator[StoredElements]:
        """Return the objects with this ``name`` part or ``designator`` beginning, ascending by number."""
        index = self._indexed()
        indexed = index.named(search["name"]) if "name" in search else index.designated(search["designator"])
        candidates = {record.norad_id for record in indexed} | set(self._waiting.objects())
        current = (found for number in sorted(candidates) if (found := self.get(number)))
        return (record for record in current if _matches(record, search))

    def numbers_of(self, designator: str) -> list[int]:
        """Return the numbers of the objects that have exactly this international designator."""
        wanted = designator.upper()
        found = self.found({"designator": wanted})
        return [each.norad_id for each in found if (each.international_designator or "").upper() == wanted]

    def by_epoch(self, since_ns: int, until_ns: int) -> Iterator[StoredElements]:
        """Return the sets in force with an epoch in [since_ns, until_ns], ascending by number."""
        indexed = self._indexed().by_epoch(since_ns, until_ns)
        candidates = {record.norad_id for record in indexed} | set(self._waiting.objects())
        current = (found for number in sorted(candidates) if (found := self.get(number)))
        return (record for record in current if since_ns <= record.epoch_time_ns <= until_ns)

    def history(self, norad_id: int, since_ns: int = ALWAYS_NS, until_ns: int = FOREVER_NS) -> Iterator[StoredElements]:
        """Every set of an object with an epoch in [since_ns, until_ns], by its `place`; read as they are used."""
        of_object = self._waiting.of(norad_id)
        waiting = sorted((each for each in of_object if since_ns <= each.epoch_time_ns <= until_ns), key=place)
        before: Place | None = None
        for each in merge(self._indexed().history(norad_id, since_ns, until_ns), waiting, key=place):
            if place(each) != before and self.knows(each):  # the index may hold what waits as well
                yield each
            before = place(each)

    def in_force_at(self, norad_id: int, times_ns: Sequence[int]) -> list[StoredElements]:
        """An object's set in force at each time; before its first epoch, the first. Empty for an unknown object.

        Only the history within the times is read, and the set before them.
        """
        found = self._of_history(norad_id, times_ns)
        # The index may lack the history of an object.
        return found or ([one] * len(times_ns) if (one := self.get(norad_id)) else [])

    def _of_history(self, norad_id: int, times_ns: Sequence[int]) -> list[StoredElements]:
        reached_ns = [min(time_ns + EPOCH_TOLERANCE_NS, FOREVER_NS) for time_ns in times_ns]
        begin_ns = self._last_epoch(norad_id, min(reached_ns))
        if begin_ns is None:
            begin_ns = next((each.epoch_time_ns for each in self.history(norad_id)), FOREVER_NS)
        history = self.history(norad_id, begin_ns, max(*reached_ns, begin_ns))
        ordered = sorted(history, key=lambda each: rank(each._asdict(), FOREVER_NS))
        if not ordered:
            return []
        epochs_ns = [each.epoch_time_ns for each in ordered]
        # Where all sets are ahead, those of the first epoch count.
        found = [ordered[bisect_right(epochs_ns, max(each, epochs_ns[0])) - 1] for each in reached_ns]
        return [self._named(each) for each in found]

    def _named(self, record: StoredElements) -> StoredElements:
        """Return a set as it was published with the name that edits give its object; the index has it already."""
        name = self._satellites.names_at(self.as_of_ns).get(record.norad_id)
        return record._replace(object_name=name) if name else record

    def past(self, as_of_ns: int) -> "PastView":
        """Return what this view would have been at mission time ``as_of_ns``, of what it holds."""
        return PastView(self, as_of_ns)

    def released(self, sources: frozenset[str] | None) -> "View":
        """Return this view of what ``sources`` have brought; None: all of it."""
        return self if sources is None else ReleasedView(self, sources)

    def knows(self, record: StoredElements) -> bool:  # noqa: ARG002 (a past view does not know all)
        """Return whether a set that was received belongs to this view."""
        return True

    def _last_epoch(self, norad_id: int, upto_ns: int) -> int | None:
        indexed = self._indexed().history(norad_id, until_ns=upto_ns, descending=True)
        known = islice(filter(self.knows, indexed), 1)
        waiting = filter(self.knows, self._waiting.of(norad_id))
        epochs_ns = (each.epoch_time_ns for each in chain(known, waiting))
        return max((each for each in epochs_ns if each <= upto_ns), default=None)

    def _indexed(self) -> IndexReader:
        if self._index is None:
            raise IndexMismatch("the catalogue has no version yet: land element sets and wait for the first run")
        return self._index

    def _best(self, sets: list[StoredElements]) -> StoredElements:
        return max(sets, key=lambda each: rank(each._asdict(), self.as_of_ns))


class _SelectedView(View):
    """A view of some of the sets of another one: an object has the one that is in force among them."""

    def __init__(self, view: View, as_of_ns: int, satellites: Satellites) -> None:
        self._index, self._waiting, self.binding = view._index, view._waiting, view.binding
        self._satellites = satellites
        self.changed_s, self.taken_s, self.has_more = view.changed_s, view.taken_s, False
        self._present, self.as_of_ns = view, as_of_ns

    @property
    @override
    def is_whole(self) -> bool:
        return False

    @property
    @override
    def snapshot(self) -> str:
        return self._present.snapshot

    @override
    def get(self, norad_id: int) -> StoredElements | None:
        return next(iter(self._of_history(norad_id, [self.as_of_ns])), None)

    @override
    def objects(self, after: int = 0, upto: int = GREATEST_ID) -> Iterator[StoredElements]:
        present = self._present.objects(after, upto)
        return (found for each in present if (found := self.get(each.norad_id)))

    @override
    def found(self, search: Mapping[str, str]) -> Iterator[StoredElements]:
        return (record for record in self.objects() if _matches(record, search))

    @override
    def by_epoch(self, since_ns: int, until_ns: int) -> Iterator[StoredElements]:
        return (record for record in self.objects() if since_ns <= record.epoch_time_ns <= until_ns)


class PastView(_SelectedView):
    """The catalogue as it was known at a mission time: of the sets that had been received then, those in force then.

    Names by edits and what satellite catalogues state are those of then. Other edits count as they do now.
    """

    def __init__(self, view: View, as_of_ns: int) -> None:
        super().__init__(view, min(as_of_ns, view.as_of_ns), view.satellites)

    @cached_property
    @override
    def satellites(self) -> Satellites:  # read when it is first used: most answers do without
        return self._satellites.at(self.as_of_ns)

    @property
    @override
    def identity(self) -> str:
        return f"{self._present.identity}-{self.as_of_ns}"

    @override
    def knows(self, record: StoredElements) -> bool:
        return record.received_time_ns <= self.as_of_ns and self._present.knows(record)


class ReleasedView(_SelectedView):
    """What some sources have brought, as if there were no other; without the satellite catalogue, which names none."""

    def __init__(self, view: View, sources: frozenset[str]) -> None:
        super().__init__(view, view.as_of_ns, NO_SATELLITES)
        self._sources = sources

    @property
    @override
    def identity(self) -> str:
        return f"{self._present.identity}-of-{','.join(sorted(self._sources))}"

    @override
    def get(self, norad_id: int) -> StoredElements | None:
        present = self._present.get(norad_id)
        return present if present is None or self.knows(present) else super().get(norad_id)

    @override
    def knows(self, record: StoredElements) -> bool:
        return record.source_name in self._sources


def place(record: StoredElements) -> Place:
    """Return the place of a set in the history of its object."""
    return Place(record.epoch_time_ns, record.segment_sha256[: 2 * keys.SEGMENT_BYTES], record.record_number)


def _matches(record: StoredElements, search: Mapping[str, str]) -> bool:
    if "name" in search:
        return search["name"].upper() in (record.object_name or "").upper()
    return (record.international_designator or "").upper().startswith(search["designator"].upper())
