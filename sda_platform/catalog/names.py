"""Names that edits give to objects of the catalogue, in the place of those that sources give."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.edit_decoding import edit_of
from sda_platform.catalog.edits import settled
from sda_platform.catalog.tables import CATALOG_EDITS
from sda_platform.formats.edits import NAME
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.elements import FOREVER_NS

_IS_NAME: Final = (ds.field("attribute") == NAME) & ds.field("error_kind").is_null()


class EditedNames:
    """The names of objects by edits (rows of `catalog_edits`), at any time since the first of them was received."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        ordered = sorted(rows, key=lambda row: (row["received_time_ns"], row["segment_sha256"], row["record_number"]))
        self._times_ns = [row["received_time_ns"] for row in ordered]
        edits = [edit_of(row) for row in ordered]
        self._of_first = cache(lambda count: {edit.norad_id: edit.value for edit in settled(edits[:count])})

    def at(self, time_ns: int) -> Mapping[int, str]:
        """Return the names by object, of what had been received at a time; empty: an edit has removed the name."""
        found: Mapping[int, str] = self._of_first(bisect_right(self._times_ns, time_ns))
        return found


def names_upto(store: Lake, sequence: int) -> EditedNames:
    """Return the names by the edits that commits up to ``sequence`` of `catalog_edits` have."""
    consumed = _IS_NAME & (ds.field(COMMIT_SEQUENCE) <= sequence)
    return EditedNames(store.log(CATALOG_EDITS).rows(None, consumed).to_pylist() if sequence else ())


def with_names(store: Lake, plan: Plan, entries: pa.Table) -> pa.Table:
    """``entries`` of the catalogue with the names that the edits give which a plan has consumed."""
    window = next((each for each in plan.windows if each.table == CATALOG_EDITS.name), None)
    names = names_upto(store, window.upto_sequence).at(FOREVER_NS) if window else {}
    given = {number: name for number, name in names.items() if name}
    place, numbers = entries.column_names.index("object_name"), pa.array([*given], pa.int64())
    at = pc.index_in(entries["norad_id"].combine_chunks(), numbers)
    found = pa.array([*given.values()], pa.string()).take(at)
    return entries.set_column(place, "object_name", pc.coalesce(found, entries["object_name"].combine_chunks()))


def renamed_objects(store: Lake, plan: Plan) -> set[int]:
    """Return the objects whose name edits in the plan's window set or remove."""
    if all(each.table != CATALOG_EDITS.name for each in plan.windows):
        return set()
    edits = store.new_rows(plan, CATALOG_EDITS, ["norad_id"], _IS_NAME)
    return set(edits["norad_id"].to_pylist())
