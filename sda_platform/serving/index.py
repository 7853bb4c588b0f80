"""The serving index: the catalogue of one version as an ordered map, with every way to look an object up.

It is derived from the catalogue and bound to one version of it: the binding is written in the same batch as the rows,
so that readers see one version, whole. Objects are found by number, epoch, name and designator; the history of an
object holds every set that the catalogue had consumed, but for those that are held: they are kept apart.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.serving import keys
from sda_platform.serving.engine import Engine, Pair, Reader
from sda_platform.serving.errors import DamagedIndex, IndexMismatch
from sda_platform.serving.record import COLUMNS, StoredElements, decode, encode

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
        """Every set of an object with an epoch in [since_ns, until_ns], by epoch, then by segment and record."""
        first, last = keys.history_from(norad_id, since_ns), keys.history_upto(norad_id, until_ns)
        return _decoded(self._reader.scan(first, last, descending=descending))

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

    def load(self, binding: Binding, current: pa.Table, history: pa.Table) -> Binding:
        """Fill an empty index: ``current`` has a row per object, ``history`` all sets; both have COLUMNS.

        Sets of the history for which its column IS_HELD is true are held.
        """
        rows = records(current)
        complete = Binding(**{**asdict(binding), "objects": len(rows), "sets": history.num_rows})
        pairs = [pair for row in rows for pair in _pairs_of(row)]
        pairs.append((_BINDING, _binding_value(complete)))
        pairs.sort()
        place = bisect_left(pairs, (keys.HELD, b""))
        # The history is by far the largest part: it is never there as objects of Python at once.
        self.engine.bulk_load(chain(pairs[:place], _history_pairs(history), pairs[place:]))
        return complete

    def update(self, binding: Binding, changed: pa.Table, history: pa.Table) -> Binding:
        """Move on to a later version, whole at once: rows of objects that changed since, and sets consumed since.

        The ``history`` has COLUMNS and IS_HELD, also of sets that are held since, or not any more.
        """
        before = self.binding()
        if before is None:
            raise IndexMismatch("an empty index cannot be updated; load it")
        rows, past = records(changed), dict(_set_pairs(history))
        old = self.multi_get([row.norad_id for row in rows])
        others = [_other_place(key) for key in past]
        known = sum(value is not None for value in self.engine.multi_get([*past, *others]))
        objects = before.objects + sum(each is None for each in old)
        sets = before.sets + len(past) - known
        complete = Binding(**{**asdict(binding), "objects": objects, "sets": sets})
        puts = [pair for row in rows for pair in _pairs_of(row)]
        puts += [*past.items(), (_BINDING, _binding_value(complete))]
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
            elif space in (keys.HISTORY, keys.HELD):
                sets += 1
                decode(key, value)
            elif key != _BINDING:
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


def _pairs_of(record: StoredElements) -> Iterator[Pair]:
    key = keys.current(record.norad_id)
    yield key, encode(key, record)
    yield from _pointers(record)


def _pointers(record: StoredElements) -> Iterator[Pair]:
    yield keys.epoch(record.epoch_time_ns, record.norad_id), b""
    if record.object_name:
        yield keys.text(keys.NAME, record.object_name, record.norad_id), b""
    if record.international_designator:
        yield keys.text(keys.DESIGNATOR, record.international_designator, record.norad_id), b""


def _set_pairs(sets: pa.Table) -> Iterator[Pair]:
    for record, is_held in zip(records(sets), _are_held(sets).to_pylist(), strict=True):
        place = (record.norad_id, record.epoch_time_ns, record.segment_sha256, record.record_number)
        key = keys.held(*place) if is_held else keys.history(*place)
        yield key, encode(key, record)


def _are_held(sets: pa.Table) -> pa.ChunkedArray | pa.Array:
    return sets[IS_HELD] if IS_HELD in sets.column_names else pa.repeat(False, sets.num_rows)


def _other_place(key: bytes) -> bytes:
    """Return the key that a set has when it is held, or is not any more."""
    return (keys.HISTORY if key[:1] == keys.HELD else keys.HELD) + key[1:]


def _history_pairs(history: pa.Table) -> Iterator[Pair]:
    """Yield the pairs of a history, ascending by key."""
    by_key = {
        "is_accepted": pc.invert(_are_held(history)),
        **{name: history.column(name) for name in ("norad_id", "epoch_time_ns")},
        "segment": pc.utf8_slice_codeunits(history.column("segment_sha256"), 0, keys.SEGMENT_DIGITS),
        "record_number": history.column("record_number"),
    }
    order = pc.sort_indices(pa.table(by_key), [(name, "ascending") for name in by_key])
    for start in range(0, len(order), _BATCH):
        yield from _set_pairs(history.take(order.slice(start, _BATCH)))


def _decoded(pairs: Iterable[Pair]) -> Iterator[StoredElements]:
    return (decode(key, value) for key, value in pairs)


def _binding_value(binding: Binding) -> bytes:
    return json.dumps(asdict(binding), sort_keys=True).encode()
