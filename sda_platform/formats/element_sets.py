"""Segments of SGP4 mean element sets as one Arrow table: a row for every record, whatever the format.

Holds the schema and the one decode. This module does not test whether SGP4 accepts a set.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sda_platform.formats.cutting import cut_records, segment_header, split_records
from sda_platform.formats.element_columns import Columns, read_omm_csv_columns
from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.errors import RecordError
from sda_platform.formats.limits import ELEMENT_LIMITS, note_violations
from sda_platform.formats.reading import error_text, read_records
from sda_platform.formats.records import CutRecords, RawRecord
from sda_platform.formats.tle_columns import read_tle_columns

ELEMENT_SCHEMA: Final = pa.schema(
    [
        pa.field("record_number", pa.int64(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("error_kind", pa.string()),
        pa.field("error", pa.string()),
        pa.field("norad_id", pa.int64()),
        pa.field("object_name", pa.string()),
        pa.field("international_designator", pa.string()),
        pa.field("epoch_time_ns", pa.int64()),
        pa.field("mean_motion_rev_per_day", pa.float64()),
        pa.field("eccentricity", pa.float64()),
        pa.field("inclination_deg", pa.float64()),
        pa.field("raan_deg", pa.float64()),
        pa.field("arg_of_pericenter_deg", pa.float64()),
        pa.field("mean_anomaly_deg", pa.float64()),
        pa.field("bstar_per_earth_radius", pa.float64()),
        pa.field("mean_motion_dot_rev_per_day2", pa.float64()),
        pa.field("mean_motion_ddot_rev_per_day3", pa.float64()),
        pa.field("element_set_number", pa.int64()),
        pa.field("originator", pa.string()),
        pa.field("classification", pa.string()),
        pa.field("revolution_at_epoch", pa.int64()),
        pa.field("decay_time_ns", pa.int64()),
        pa.field("data_mode", pa.string()),
        pa.field("owner", pa.string()),
    ]
)
_ELEMENT_FIELDS: Final = ELEMENT_SCHEMA.names[4:]
_BLOCK: Final = 16_384
_FEW: Final = 256
"""Of a block with an unusual record each half is tried again, down to so many, which are read one by one."""
_READ_BY_COLUMNS: Final[Mapping[str, Callable[[pa.Array, bytes], Columns | None]]] = MappingProxyType(
    {"omm-csv": read_omm_csv_columns, "tle": read_tle_columns}
)


def decode_element_sets(data: bytes, *, segment_format: str) -> pa.Table:
    """Every record of the segment as a row of ELEMENT_SCHEMA; never raises for any bytes.

    A row either has `error_kind` and `error`, or an element set within the physical limits. Blocks of usual records
    are read by columns; one with anything else is read record by record.
    """
    if segment_format not in _READ_BY_COLUMNS:
        return _one_by_one(list(split_records(data, segment_format)), segment_format)
    records, header = cut_records(data, segment_format), segment_header(data, segment_format)
    read, all_payloads = _READ_BY_COLUMNS[segment_format], pa.array(records.payloads, pa.binary())

    def decoded(rows: range) -> list[pa.Table]:
        payloads = all_payloads.slice(rows.start, len(rows))
        is_whole = not records.errors or records.errors.keys().isdisjoint(rows)
        columns = read(payloads, header) if is_whole else None
        if columns is not None:
            return [_table(columns, records.numbers[rows.start : rows.stop], payloads)]
        if len(rows) <= _FEW:
            return [_one_by_one([_record(records, row, header) for row in rows], segment_format)]
        middle = len(rows) // 2
        return [*decoded(rows[:middle]), *decoded(rows[middle:])]

    blocks = [range(len(records))[start : start + _BLOCK] for start in range(0, len(records), _BLOCK)]
    return pa.concat_tables([ELEMENT_SCHEMA.empty_table(), *(table for rows in blocks for table in decoded(rows))])


def _table(columns: Columns, numbers: NDArray[np.int64], payloads: pa.Array) -> pa.Table:
    complete = {**columns, "record_number": numbers, "payload": payloads}
    arrays = [
        pa.array(complete[field.name], field.type) if field.name in complete else pa.nulls(len(numbers), field.type)
        for field in ELEMENT_SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=ELEMENT_SCHEMA)


def _record(records: CutRecords, row: int, header: bytes) -> RawRecord:
    error = records.errors.get(row)
    kind, text = (error.kind, error.text) if error else (None, None)
    line = int(records.lines[row])
    return RawRecord(int(records.numbers[row]), None, records.payloads[row], kind, text, line, header)


def _one_by_one(records: Sequence[RawRecord], segment_format: str) -> pa.Table:
    sets, errors = read_records(records, segment_format, "elements")
    _note_limits(errors, sets)
    columns: dict[str, Any] = {
        "record_number": [record.number for record in records],
        "payload": [record.payload for record in records],
        "error_kind": [errors[row].kind if row in errors else None for row in range(len(records))],
        "error": [error_text(record, errors.get(row)) for row, record in enumerate(records)],
    }
    good = [None if row in errors else element for row, element in enumerate(sets)]
    for name in _ELEMENT_FIELDS:
        columns[name] = [None if element is None else getattr(element, name) for element in good]
    return pa.Table.from_pydict(columns, schema=ELEMENT_SCHEMA)


def _note_limits(errors: MutableMapping[int, RecordError], sets: Sequence[ElementSet | None]) -> None:
    """An absent value (None) breaks no limit: the reader has checked required values."""
    for limit in ELEMENT_LIMITS:
        values = [None if element is None else getattr(element, limit.column) for element in sets]
        column = np.array([limit.low if value is None else value for value in values], dtype=np.float64)
        note_violations(errors, {limit.column: column}, [limit])
