"""The object that each element set is of, by the edits that a version of the catalogue had consumed.

`element_sets` keeps the number under which a set was published. Reading it by object goes through this module.
"""

from collections.abc import Collection, Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.edit_decoding import edit_of
from sda_platform.catalog.identities import IDENTIFYING, NO_IDENTITIES, Identities, identities_of
from sda_platform.catalog.tables import CATALOG_EDITS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE

SET_KEY = ("norad_id", "segment_sha256", "record_number")
"""What identifies a set among those that corrections name."""


def identities_at(store: Lake, manifest: CommitManifest | None) -> Identities:
    """Return the identities by which a commit of `orbital_catalog` or `catalog_conflicts` was made."""
    window = manifest.window(CATALOG_EDITS.name) if manifest else None
    return _upto(store, window.upto_sequence if window else 0)


def identities_around(store: Lake, plan: Plan) -> tuple[Identities, Identities]:
    """Return the identities before ``plan``, and with the edits that it consumes.

    A plan that repeats a commit of a version without edits consumes none.
    """
    window = next((each for each in plan.windows if each.table == CATALOG_EDITS.name), None)
    if window is None:
        return NO_IDENTITIES, NO_IDENTITIES
    now = _upto(store, window.upto_sequence)
    return (now if window.is_empty else _upto(store, window.after_sequence)), now


def identified(sets: pa.Table, identities: Identities) -> pa.Table:
    """``sets`` with the numbers of their objects; the table has SET_KEY."""
    if not identities:
        return sets
    numbers = identities.sources(identities.merges.values()) | {key[0] for key in identities.corrections}
    column = sets["norad_id"].combine_chunks()
    touched = pc.fill_null(pc.is_in(column, pa.array(sorted(numbers), column.type)), False)
    keys = zip(*(sets[name].filter(touched).to_pylist() for name in SET_KEY), strict=True)
    found = pa.array([identities.of(*key) for key in keys], column.type)
    return sets.set_column(
        sets.column_names.index("norad_id"), "norad_id", pc.replace_with_mask(column, touched, found)
    )


def published_as(identities: Identities, objects: Iterable[int]) -> ds.Expression:
    """Make the condition on `element_sets` that selects every set of ``objects``, and some sets of other objects."""
    return ds.field("norad_id").isin(sorted(identities.sources(objects)))


def moved_entries(
    current: pa.Table, identities: Identities, before: Identities, others: Collection[int] = ()
) -> tuple[pa.Table, pa.Table]:
    """Split ``current`` rows (Arrow, with norad_id): unaffected objects, and objects that edits gave or took sets.

    Objects ``others`` are affected as well.
    """
    moved = pc.is_in(current["norad_id"], pa.array(sorted(identities.changed(before) | {*others}), pa.int64()))
    return current.filter(pc.invert(moved)), current.filter(moved)


def _upto(store: Lake, sequence: int) -> Identities:
    if not sequence:
        return NO_IDENTITIES
    where = (ds.field(COMMIT_SEQUENCE) <= sequence) & ds.field("error_kind").is_null()
    rows = store.log(CATALOG_EDITS).rows(None, where & ds.field("attribute").isin(IDENTIFYING))
    return identities_of(map(edit_of, rows.to_pylist()))
