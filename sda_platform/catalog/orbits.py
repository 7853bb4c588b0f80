"""The catalogue for the physics: a propagator over all objects, as of one version of the table.

It contains the element set in force of each object, and optionally later sets, each valid from its epoch.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.arrays import IntArray
from sda_platform.catalog.decoding import ELEMENT_COLUMNS
from sda_platform.catalog.docked import docked_pairs, published_sets
from sda_platform.catalog.gate import accepted, held_upto
from sda_platform.catalog.identities import NO_IDENTITIES, Identities
from sda_platform.catalog.identity import SET_KEY, identified, identities_at
from sda_platform.catalog.merge import RANK_COLUMNS
from sda_platform.catalog.tables import ELEMENT_SETS, ERROR_SCALES, HISTORY_COLUMNS, ORBITAL_CATALOG
from sda_platform.formats.designators import navigation_number
from sda_platform.formats.element_set import set_marking
from sda_platform.formats.markings import MARKS, UNMARKED, Marking
from sda_platform.lake.arrow import arrays
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.element_order import TIES, Tie
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS, ElementSets
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS, Terms, terms_in_force
from sda_platform.orbits.object_pairs import ObjectPairs, are_among
from sda_platform.orbits.propagation import Propagator

ORBIT_COLUMNS = (*ELEMENT_COLUMNS, *HISTORY_COLUMNS)
"""The columns of `orbital_catalog` that describe an orbit and its errors."""
_COLUMNS = (*ORBIT_COLUMNS, "object_name")


@dataclass(frozen=True)
class Catalogue:
    """Element sets by ascending catalogue number, then time; ``propagator`` pickles small and is rebuilt per worker.

    ``terms``: when each row is in force, if objects have several rows; None: each object has one row.
    """

    propagator: Propagator
    object_names: tuple[str, ...]
    terms: Terms | None = None
    docked: ObjectPairs = frozenset()
    """Objects that are one body, although their rows may differ (`catalog.docked`)."""
    marks: pa.Table | None = field(default=None, compare=False)
    """MARKS of each row, as they are stored; None: not read."""

    def __len__(self) -> int:
        return len(self.propagator)

    @property
    def norad_id(self) -> npt.NDArray[np.int64]:
        """The catalogue number of each row, ascending."""
        return self.propagator.elements.norad_id

    @property
    def objects(self) -> int:
        """The number of objects."""
        return len(np.unique(self.norad_id))

    def positions(self, norad_ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Find all rows of the objects ``norad_ids`` that the catalogue has."""
        wanted = np.unique(np.asarray(norad_ids, dtype=np.int64))
        return np.flatnonzero(np.isin(self.norad_id, wanted))

    def first_rows(self, rows: IntArray) -> IntArray:
        """Find for each of ``rows`` (n,) the first row of its object, (n,)."""
        return np.searchsorted(self.norad_id, self.norad_id[rows])

    def markings(self, rows: IntArray) -> list[Marking]:
        """Return what marks the data of ``rows`` (n,)."""
        if self.marks is None:
            return [UNMARKED] * len(rows)
        return [set_marking(**row) for row in self.marks.take(pa.array(rows)).to_pylist()]

    def are_docked(self, first: IntArray, second: IntArray) -> npt.NDArray[np.bool_]:
        """Tell whether the objects of two rows (n,) are docked to each other, (n,)."""
        return are_among(self.docked, self.norad_id[first], self.norad_id[second])

    def rows_in_force(self, norad_id: IntArray, time_ns: IntArray) -> IntArray:
        """Return the row of each object (n,), all of them in the catalogue, that is in force at ``time_ns`` (n,)."""
        row = np.searchsorted(self.norad_id, norad_id)
        while self.terms is not None and (has_ended := time_ns >= self.terms.until_ns[row]).any():
            row = row + has_ended
        return row

    def within_terms(self, rows: tuple[IntArray, IntArray], time_ns: IntArray) -> IntArray:
        """``time_ns`` (n,), moved to where both of ``rows`` (n,) are in force."""
        if self.terms is None:
            return time_ns
        first, second = rows
        begin_ns = np.maximum(self.terms.from_ns[first], self.terms.from_ns[second])
        end_ns = np.minimum(self.terms.until_ns[first], self.terms.until_ns[second])
        return np.clip(time_ns, begin_ns, end_ns - 1)


def catalogue_at(store: Lake, version: int) -> Catalogue:
    """Return the catalogue as of a version of its table: the set in force of each object."""
    return _catalogue(store.log(ORBITAL_CATALOG).rows(_COLUMNS, version=version).sort_by("norad_id"))


def catalogue_ahead(
    store: Lake, version: int, element_sets: TableSnapshot, until_ns: int, *, finds_docked: bool = True
) -> Catalogue:
    """Return the catalogue as of a version of its table, with the sets that come into force from then to ``until_ns``.

    ``element_sets`` is what is read of that table. Sets of objects that are not in the catalogue yet are left out.
    Without ``finds_docked`` no docked objects are looked for: a search must know them, an assessment need not.
    """
    log = store.log(ORBITAL_CATALOG)
    ahead_columns = [*ELEMENT_COLUMNS, "object_name", *MARKS, *RANK_COLUMNS]
    columns = [*ahead_columns, *HISTORY_COLUMNS]
    current = log.rows(columns, version=version)
    commit = next(log.commits_from(version), None)
    if commit is None:
        return _catalogue(current.sort_by("norad_id"))
    identities, as_of_ns = identities_at(store, commit.manifest), commit.manifest.as_of_ns
    held = held_upto(store, commit.manifest)
    docked: ObjectPairs = frozenset()
    if finds_docked:
        docked = docked_pairs(
            current, published_sets(store, current, element_sets.sequence, as_of_ns, identities, held)
        )
    ahead = sets_ahead(store, ahead_columns, element_sets, as_of_ns, until_ns, identities=identities, held=held)
    ahead = ahead.filter(pc.is_in(ahead.column("norad_id"), current.column("norad_id").combine_chunks()))
    if not ahead.num_rows:
        return _catalogue(current.sort_by("norad_id"), docked=docked)
    # An object's next sets err like its others, and end with it.
    of_object = current.select(["norad_id", "decay_time_ns", *HISTORY_COLUMNS])
    ahead = ahead.drop_columns(["decay_time_ns"]).join(of_object, "norad_id").select(columns)
    rows = pa.concat_tables([current, ahead.cast(current.schema)])
    ids, epochs = (rows.column(name).to_numpy() for name in ("norad_id", "epoch_time_ns"))
    terms = terms_in_force(ids, epochs, [_ranks(rows, tie) for tie in TIES], ALWAYS_NS, FOREVER_NS)
    taken = Terms(np.arange(len(terms.row)), terms.from_ns, terms.until_ns)
    return _catalogue(rows.take(pa.array(terms.row)), taken, docked)


def sets_ahead(
    store: Lake,
    columns: list[str],
    element_sets: TableSnapshot,
    after_ns: int,
    until_ns: int,
    *,
    new_after: int = 0,
    identities: Identities = NO_IDENTITIES,
    held: pa.Table | None = None,
) -> pa.Table:
    """Usable element sets that come into force in (after, until], of commits ``new_after`` and later.

    They have the numbers that ``identities`` give them. Those that are ``held`` are left out.
    """
    epoch, sequence = ds.field("epoch_time_ns"), ds.field(COMMIT_SEQUENCE)
    is_ahead = (epoch > after_ns + EPOCH_TOLERANCE_NS) & (epoch <= until_ns + EPOCH_TOLERANCE_NS)
    is_read = (sequence > new_after) & (sequence <= element_sets.sequence)
    read = list(dict.fromkeys([*columns, *SET_KEY]))
    found = store.log(ELEMENT_SETS).rows(read, is_ahead & is_read & ds.field("error_kind").is_null())
    return identified(found if held is None else accepted(found, held), identities).select(columns)


def identities_in(store: Lake, version: int) -> Identities:
    """Return the identities by which a version of the catalogue was made."""
    commit = next(store.log(ORBITAL_CATALOG).commits_from(version), None)
    return identities_at(store, commit.manifest if commit else None)


def _catalogue(rows: pa.Table, terms: Terms | None = None, docked: ObjectPairs = frozenset()) -> Catalogue:
    names = tuple(name or "" for name in rows.column("object_name").to_pylist())
    marks = rows.select(MARKS) if {*MARKS} <= {*rows.column_names} else None
    return Catalogue(propagator_of(rows), names, terms, docked, marks)


def propagator_of(rows: pa.Table) -> Propagator:
    """Return rows with the columns of ElementSets as a propagator, with their objects' error scales where these are
    known.
    """
    columns = arrays(rows, ORBIT_COLUMNS)
    unknown = np.ones(rows.num_rows)
    scale = np.stack([np.asarray(columns.get(name, unknown), dtype=np.float64) for name in ERROR_SCALES], axis=1)
    number = np.nan_to_num(np.asarray(columns.get("history_differences", unknown * 0), dtype=np.float64)).astype(
        np.int64
    )
    return Propagator(ElementSets.from_columns(columns), np.nan_to_num(scale, nan=1.0), number)


def _ranks(rows: pa.Table, tie: Tie) -> IntArray:
    """Numbers (n,) in the order of the values of a column."""
    ranks = pc.rank(pc.fill_null(rows.column(tie.column), tie.absent), sort_keys="ascending", tiebreaker="dense")
    return np.asarray(ranks.to_numpy(), dtype=np.int64)


def designated(lake: Lake, version: int | None = None) -> Mapping[str, Sequence[int]]:
    """Return the catalogue numbers by international designator, as of a version of the catalogue; none without one.

    Also by the number within a navigation system (G01), where the object's name states it.
    """
    columns = ["norad_id", "international_designator", "object_name"]
    rows = lake.log(ORBITAL_CATALOG).rows(columns, version=version)
    found = defaultdict[str, list[int]](list)
    for number, designator, name in zip(*(rows.column(each).to_pylist() for each in columns), strict=True):
        if designator:
            found[designator.strip().upper()].append(number)
        if name and ")" in name and (own := navigation_number(name)):
            found[own].append(number)
    return found


def catalogued(lake: Lake, version: int | None = None) -> frozenset[int]:
    """Return the numbers of all objects, as of a version of the catalogue."""
    return frozenset(lake.log(ORBITAL_CATALOG).rows(["norad_id"], version=version)["norad_id"].to_pylist())
