"""The serving index: the catalogue of one version as an ordered map, with every way to look an object up.

It is derived from the catalogue and bound to one version of it: the binding is written in the same batch as the rows,
so that readers see one version, whole. Objects are found by number, epoch, name and designator; the history of an
object holds every set that the catalogue had consumed, but for those that are held: they are kept apart.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain, groupby
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.serving import keys
from sda_platform.serving.engine import Engine, Pair, Reader
from sda_platform.serving.errors import DamagedIndex, IndexMismatch
from sda_platform.serving.record import COLUMNS, StoredElements, decode, encode, places

_BINDING: Final = keys.META + b"binding"
_BATCH: Final = 50_000
IS_HELD: Final = "is_held"
"""The column of sets that says whether a set is held; without it, none is."""
GREATEST_ID: Final = 2**63 - 1
"""The greatest catalogue number that the tables can hold."""


@dataclass(frozen=True)
class Binding:
    """The version of the catalogue that an index holds.

    ``version`` is the Delta version of `orbital_catalog`, ``sequence`` its commit sequence and ``manifest_sha256`` the
    hash of that commit's manifest, which identifies it. ``elements_sequence`` is the last commit of `element_sets` that
    this commit had consumed. ``as_of_ns`` is its mission time, ``committed_wall_ms`` the time of the commit by the wall
    clock. ``objects`` and ``sets`` count what the index holds. ``identities`` differs for versions whose edits have
    different effects on which object a set is of. ``holds_sequence`` is the last commit of `held_element_sets` that
    counts.
    """

    version: int
    sequence: int
    manifest_sha256: str
    elements_sequence: int
    as_of_ns: int
    committed_wall_ms: int = 0
    objects: int = 0
    sets: int = 0
    identities: str = ""
    holds_sequence: int = 0


class IndexReader:
    """One state of the catalogue's index, or always its newest. Every value is verified when it is read.

    DamagedIndex names the remedy.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def binding(self) -> Binding | None:
        """Return the version that the index holds; None where nothing was loaded. Raises DamagedIndex."""
        value = self._reader.get(_BINDING)
        try:
            return Binding(**json.loads(value)) if value else None
        except (TypeError, ValueError) as error:
            raise DamagedIndex(f"the binding of the index cannot be read ({error}); rebuild the index") from error

    def get(self, norad_id: int) -> StoredElements | None:
        """Return the set in force of an object; None where the catalogue has none."""
        key = keys.current(norad_id)
        value = self._reader.get(key)
        return None if value is None else decode(key, value)

    def multi_get(self, norad_ids: Sequence[int]) -> list[StoredElements | None]:
        """`get` of each, from one version."""
        wanted = [keys.current(each) for each in norad_ids]
        values = self._reader.multi_get(wanted)
        return [None if value is None else decode(key, value) for key, value in zip(wanted, values, strict=True)]

    def objects(self, first: int = 0, last: int = GREATEST_ID) -> Iterator[StoredElements]:
        """Return the sets in force of the objects ``first`` to ``last``, both included, ascending."""
        return _decoded(self._reader.scan(keys.current(first), keys.current(last)))

    def by_epoch(self, since_ns: int, until_ns: int) -> Iterator[StoredElements]:
        """Return the sets in force with an epoch from ``since_ns`` to ``until_ns``, both included, by epoch, then
        object.
        """
        found = self._reader.scan(keys.epoch(since_ns), keys.last_of_epoch(until_ns))
        return self._pointed_at(key for key, _ in found)

    def history(
        self, norad_id: int, since_ns: int = ALWAYS_NS, until_ns: int = FOREVER_NS, *, descending: bool = False
    ) -> Iterator[StoredElements]:
        """Every set of an object with an epoch in [since_ns, until_ns], by epoch, then by segment and record.

        Only the periods are read in which the object has sets, and each when it is reached.
        """
        first, last = keys.period(norad_id, since_ns), keys.period(norad_id, until_ns)
        for key, _ in self._reader.scan(first, last, descending=descending):
            begin_ns, end_ns = keys.span_of(key)
            least = keys.history_from(norad_id, max(begin_ns, since_ns))
            greatest = keys.history_upto(norad_id, min(end_ns, until_ns))
            yield from _decoded(self._reader.scan(least, greatest, descending=descending))

    def named(self, text: str) -> Iterator[StoredElements]:
        """Return the objects whose name contains ``text``, whatever its case, by name."""
        wanted = text.upper()
        found = self._reader.scan(keys.NAME, keys.NAME + b"\xff")
        return self._pointed_at(key for key, _ in found if wanted in keys.text_of(key))

    def designated(self, text: str) -> Iterator[StoredElements]:
        """Return the objects whose international designator begins with ``text``: a launch, or one object."""
        prefix = keys.text_prefix(keys.DESIGNATOR, text)
        return self._pointed_at(key for key, _ in self._reader.scan(prefix, prefix + b"\xff"))

    def _pointed_at(self, found: Iterable[bytes]) -> Iterator[StoredElements]:
        """Yield the objects to which search keys lead, as they are now; an update may have moved some during
        the scan.
        """
        for key in found:
            record = self.get(keys.norad_id_at_end(key))
            leads_there = record is not None and key in [pointer for pointer, _ in _pointers(record)]
            if not leads_there and self._reader.get(key) is not None:
                raise DamagedIndex(f"search key {key.hex()} leads to no such object; rebuild the index")
            if record is not None:
                yield record


class CatalogueIndex(IndexReader):
    """The catalogue in an engine. It reads the newest state."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.engine = engine

    @contextmanager
    def at_one_state(self) -> Iterator[IndexReader]:
        """Open one state for all reads in the context."""
        with self.engine.snapshot() as reader:
            yield IndexReader(reader)

    def require(self, version: int) -> Binding:
        """Return the binding, which is to this ``version`` of the catalogue. Raises IndexMismatch."""
        found = self.binding()
        if found is None or found.version != version:
            held = "nothing" if found is None else f"version {found.version}"
            raise IndexMismatch(f"the index holds {held}, version {version} of the catalogue was requested")
        return found

    def load(self, binding: Binding, current: pa.Table, history: Iterable[pa.Table]) -> Binding:
        """Fill an empty index: ``current`` has a row per object, ``history`` all sets; the tables have COLUMNS.

        Sets of the history for which its column IS_HELD is true are held. One table of it is in memory at a time. The
        index is fastest to load where their epochs are in different periods (`keys.PERIOD_NS`).
        """
        sets = 0

        def runs() -> Iterator[Iterable[Pair]]:
            nonlocal sets
            for table in history:
                sets += table.num_rows
                yield _set_pairs(table.combine_chunks())
                yield _period_pairs(table)
            # Runs that do not overlap need no merge; all the history lies between these.
            yield from (list(run) for _, run in groupby(_current_pairs(current), lambda pair: pair[0][:1]))

        self.engine.bulk_load(runs())
        complete = Binding(**{**asdict(binding), "objects": current.num_rows, "sets": sets})
        self.engine.write([(_BINDING, _binding_value(complete))])
        return complete

    def update(self, binding: Binding, changed: pa.Table, history: pa.Table) -> Binding:
        """Move on to a later version, whole at once: rows of objects that changed since, and sets consumed since.

        The ``history`` has COLUMNS and IS_HELD, also of sets that are held since, or not any more.
        """
        before = self.binding()
        if before is None:
            raise IndexMismatch("an empty index cannot be updated; load it")
        past, periods = dict(_set_pairs(history.combine_chunks())), _period_pairs(history)
        old = self.multi_get(changed["norad_id"].to_pylist())
        others = [keys.other_place(key) for key in past]
        known = sum(value is not None for value in self.engine.multi_get([*past, *others]))
        objects = before.objects + sum(each is None for each in old)
        sets = before.sets + len(past) - known
        complete = Binding(**{**asdict(binding), "objects": objects, "sets": sets})
        puts = [*_current_pairs(changed), *past.items(), *periods, (_BINDING, _binding_value(complete))]
        moved = (key for each in old if each is not None for key, _ in _pointers(each))
        self.engine.write(puts, chain(moved, others))
        return complete

    def verify(self) -> Binding:
        """Read everything once. Raises DamagedIndex for a value, a pointer or a count that is not as it was written."""
        binding = self.binding()
        if binding is None:
            raise DamagedIndex("the index has no binding; rebuild it")
        objects = sets = pointers = 0
        for key, value in self.engine.scan(b"", b"\xff"):
            space = key[:1]
            if space == keys.CURRENT:
                objects += 1
                wanted = [pointer for pointer, _ in _pointers(decode(key, value))]
                if None in self.engine.multi_get(wanted):
                    raise DamagedIndex(f"object {decode(key, value).norad_id} cannot be found by all its keys; rebuild")
                pointers += len(wanted)
            elif space == keys.HISTORY:
                sets += 1
                stored = decode(key, value)
                if self.engine.get(keys.period(stored.norad_id, stored.epoch_time_ns)) is None:
                    raise DamagedIndex(f"{keys.described(key)} cannot be found by its period; rebuild")
            elif space != keys.PERIOD and key != _BINDING:
                pointers -= 1
        if (objects, sets, pointers) != (binding.objects, binding.sets, 0):
            raise DamagedIndex(
                f"the index holds {objects} objects and {sets} sets, {binding.objects} and {binding.sets} were "
                f"written, and {abs(pointers)} search keys differ; rebuild it"
            )
        return binding


def records(table: pa.Table) -> list[StoredElements]:
    """Return the rows of a table that has COLUMNS."""
    columns = [table.column(name).to_pylist() for name in COLUMNS]
    return list(map(StoredElements._make, zip(*columns, strict=True)))


def _current_pairs(rows: pa.Table) -> list[Pair]:
    """Return what is stored of objects, ascending by key."""
    found = [(keys.current(record.norad_id), record) for record in records(rows)]
    values = zip((key for key, _ in found), encode(rows), strict=True)
    return sorted([*values, *(pointer for _, record in found for pointer in _pointers(record))])


def _pointers(record: StoredElements) -> Iterator[Pair]:
    yield keys.epoch(record.epoch_time_ns, record.norad_id), b""
    if record.object_name:
        yield keys.text(keys.NAME, record.object_name, record.norad_id), b""
    if record.international_designator:
        yield keys.text(keys.DESIGNATOR, record.international_designator, record.norad_id), b""


def _set_pairs(sets: pa.Table) -> Iterator[Pair]:
    """Yield the pairs of sets, ascending by key; a part of them is there as objects of Python at once."""
    found = _keys(sets)
    # As texts: NumPy has no order of other bytes.
    order = np.argsort(found.view(f"S{found.itemsize}"), kind="stable")
    for start in range(0, len(order), _BATCH):
        batch = sets.take(order[start : start + _BATCH])
        yield from zip(keys.listed(_keys(batch)), encode(batch), strict=True)


def _period_pairs(sets: pa.Table) -> list[Pair]:
    return [(key, b"") for key in keys.periods(_keys(sets))]


def _keys(sets: pa.Table) -> npt.NDArray[np.void]:
    are_held = sets[IS_HELD].to_numpy() if IS_HELD in sets.column_names else np.zeros(sets.num_rows, np.bool_)
    return keys.histories(places(sets), are_held)


def _decoded(pairs: Iterable[Pair]) -> Iterator[StoredElements]:
    return (decode(key, value) for key, value in pairs)


def _binding_value(binding: Binding) -> bytes:
    return json.dumps(asdict(binding), sort_keys=True).encode()
