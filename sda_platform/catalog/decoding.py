"""Element-set segments to bronze rows: decoding, then the question whether SGP4 accepts the set."""

from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.catalog.sources import source_priority
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.segments import SegmentMeta, ranks
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import refusal_reasons

ELEMENT_COLUMNS = tuple(field.name for field in fields(ElementSets))


def decode(data: bytes, meta: SegmentMeta) -> pa.Table:
    """Decode a segment, one row per record; a set that SGP4 refuses at its epoch or at sealing carries the reason.

    The rank of a set is that of the source that brought it: anybody may write another's name as originator. Only of a
    segment that an earlier version of the platform sealed, without its origin, the originator ranks the sets.
    """
    rows = _with_refusals(decode_element_sets(data, segment_format=meta.format), meta.sealed_time_ns)
    if meta.origins is None:
        priority = [source_priority(name) for name in rows.column("originator").to_pylist()]
    else:
        priority = [*ranks(meta.origins), *[0] * rows.num_rows][: rows.num_rows]
    return rows.append_column("source_priority", pa.array(priority, pa.int32()))


def _with_refusals(rows: pa.Table, time_ns: int) -> pa.Table:
    usable = np.flatnonzero(rows.column("error_kind").is_null().to_numpy())
    elements = ElementSets.from_columns(arrays(rows.take(usable), ELEMENT_COLUMNS))
    reasons = np.full(rows.num_rows, None, dtype=object)
    reasons[usable] = refusal_reasons(elements, time_ns)
    refused = pa.array([None if reason is None else "propagation_refused" for reason in reasons], pa.string())
    errors = pa.array(reasons, pa.string())
    for name, found in (("error_kind", refused), ("error", errors)):
        rows = rows.set_column(rows.column_names.index(name), name, pc.coalesce(rows.column(name), found))
    return rows
