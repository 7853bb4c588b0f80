"""Transforms of package catalog: Arrow in, Arrow out, no Spark."""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.catalog.merge import best_sets
from sda_platform.catalog.tables import HISTORY_COLUMNS, ORBITAL_CATALOG
from sda_platform.lake.selections import Above, OneOf, Selection
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS

_COLUMNS = [c.name for c in ORBITAL_CATALOG.columns if c.name not in (COMMIT_SEQUENCE, *HISTORY_COLUMNS)]

SET_COLUMNS = (*_COLUMNS, "error_kind")
"""The columns of `element_sets` that `improvements` takes."""


def improvements(element_sets: pa.Table, current: pa.Table, *, as_of_ns: int) -> pa.Table:
    """Return the catalogue entries that ``element_sets`` replace or add: of each object the set in force, unless it has
    that.

    ``element_sets``: rows of `element_sets` that are new or came into force. ``current``: the rows of
    `orbital_catalog` of their objects. The result has the columns of `orbital_catalog` without ``commit_sequence``, one
    row for each object that changes; HISTORY_COLUMNS are null.
    """
    usable = element_sets.filter(pc.is_null(element_sets["error_kind"])).select(_COLUMNS)
    # A set that is in the catalogue stays before one that equals it.
    both = pa.concat_tables([current.select(_COLUMNS), usable], promote_options="permissive")
    best = best_sets(both, as_of_ns)
    chosen = both.take(pa.array(best[best >= current.num_rows]))
    for name in HISTORY_COLUMNS:
        chosen = chosen.append_column(name, pa.nulls(chosen.num_rows, ORBITAL_CATALOG.arrow_schema.field(name).type))
    return chosen.select(ORBITAL_CATALOG.content_schema.names)


def in_play(
    *, after_sequence: int, previous_as_of_ns: int | None, as_of_ns: int, again: Collection[int] = ()
) -> Selection:
    """Select the rows of `element_sets` that may change the catalogue: new ones, and those that came into force.

    Of the numbers ``again`` all rows are: edits changed which object they are of.
    """
    chosen: Selection = Above(COMMIT_SEQUENCE, after_sequence)
    if again:
        chosen |= OneOf("norad_id", pa.array(sorted(again), pa.int64()))
    if previous_as_of_ns is not None:
        chosen |= Above("epoch_time_ns", previous_as_of_ns + EPOCH_TOLERANCE_NS, as_of_ns + EPOCH_TOLERANCE_NS)
    return chosen
