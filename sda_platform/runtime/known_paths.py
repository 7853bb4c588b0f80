"""Ephemerides of one object from the lake's tables: what operators submitted, and what orbit determination refined."""

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.catalog.tables import EPHEMERIDES, EPHEMERIS_COLUMNS
from sda_platform.conjunction.operator_ephemerides import OperatorEphemerides
from sda_platform.conjunction.refined_ephemerides import REFINED_COLUMNS, REFINED_EPHEMERIS, refined_ephemerides
from sda_platform.fusion.tables import ALIVE, TRACKS
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES
from sda_platform.orbits.elements import FOREVER_NS
from sda_platform.runtime.current_rows import version_at
from sda_platform.serving.source import KnownPath


def known_paths(lake: Lake, norad_id: int, span_ns: tuple[int, int], as_of_ns: int | None) -> list[KnownPath]:
    """Return the ephemerides of an object that reach into ``span_ns``, ranked as for assessments, the best one last.

    Of the past are those that were known at ``as_of_ns``. Raises NotKept: versions of that time are gone.
    """
    begin_ns, end_ns = span_ns
    is_of_object = ds.field("norad_id") == norad_id
    is_near = is_of_object & (ds.field("usable_until_ns") >= begin_ns) & (ds.field("usable_from_ns") <= end_ns)
    refined = _rows_at(lake, REFINED_EPHEMERIDES, REFINED_COLUMNS, is_near, as_of_ns)
    tracks = _rows_at(
        lake, TRACKS, ("norad_id", "manoeuvre_time_ns"), is_of_object & ds.field("state").isin(ALIVE), as_of_ns
    )
    is_known = ds.field("error_kind").is_null() & (ds.field("received_time_ns") <= (as_of_ns or FOREVER_NS))
    stated = _rows_at(lake, EPHEMERIDES, EPHEMERIS_COLUMNS, is_near & is_known, None)
    own = refined_ephemerides(refined, None, tracks, begin_ns)
    found = own.and_paths(OperatorEphemerides.of(stated.to_pylist()))
    columns = zip(found.source, found.ephemeris_id, found.ephemerides, strict=True)
    return [
        KnownPath(origin, name, path, origin == REFINED_EPHEMERIS, found.marking(number))
        for number, (origin, name, path) in enumerate(columns)
    ]


def _rows_at(
    lake: Lake, table: Table, columns: tuple[str, ...], where: ds.Expression, as_of_ns: int | None
) -> pa.Table:
    log = lake.log(table)
    version = log.version() if as_of_ns is None else version_at(lake, table, as_of_ns)
    if version < 0:
        return table.arrow_schema.empty_table().select(list(columns))
    return log.rows(list(columns), where, version=version)
