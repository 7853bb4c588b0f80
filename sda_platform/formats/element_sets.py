"""Segments of SGP4 mean element sets (OMM as CSV or JSON, TLE) as one Arrow table: a row for every record.

Holds the schema and the one decode; the keywords and columns of each format are in `omm` and `tle`. Whether
SGP4 accepts a set is not asked here.
"""

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sda_platform.formats.cutting import cut_records
from sda_platform.formats.errors import RecordError
from sda_platform.formats.limits import ELEMENT_LIMITS, note_violations
from sda_platform.formats.omm import (
    ElementSet,
    parse_omm_csv_header,
    parse_omm_csv_line,
    parse_omm_json_object,
)
from sda_platform.formats.records import csv_header
from sda_platform.formats.tle import parse_tle

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
    ]
)
_ELEMENT_FIELDS: Final = ELEMENT_SCHEMA.names[4:]


def decode_element_sets(data: bytes, *, segment_format: str) -> pa.Table:
    """Every record of the segment as a row of ELEMENT_SCHEMA; never raises for any bytes.

    A row either has `error_kind` and `error`, or an element set within the physical limits.
    """
    parse = _parser(data, segment_format)
    records = cut_records(data, segment_format if parse else "")
    errors = dict(records.errors)
    sets: list[ElementSet | None] = [None] * len(records)
    for row, payload in enumerate(records.payloads):
        if parse is not None and row not in errors:
            try:
                sets[row] = parse(payload)
            except RecordError as refusal:
                errors[row] = refusal
    _note_limits(errors, sets)
    told = [errors.get(row) for row in range(len(records))]
    columns: dict[str, Any] = {
        "record_number": records.numbers,
        "payload": records.payloads,
        "error_kind": [error and error.kind for error in told],
        "error": [error and error.text for error in told],
    }
    good = [None if error else element for error, element in zip(told, sets, strict=True)]
    for name in _ELEMENT_FIELDS:
        columns[name] = [None if element is None else getattr(element, name) for element in good]
    return pa.Table.from_pydict(columns, schema=ELEMENT_SCHEMA)


def _parser(data: bytes, segment_format: str) -> Callable[[bytes], ElementSet] | None:
    if segment_format == "omm-csv":
        header = parse_omm_csv_header(csv_header(data))
        return lambda payload: parse_omm_csv_line(header, payload)
    return _PARSERS.get(segment_format)


_PARSERS: Final[Mapping[str, Callable[[bytes], ElementSet]]] = {
    "omm-json": parse_omm_json_object,
    "tle": parse_tle,
}


def _note_limits(errors: MutableMapping[int, RecordError], sets: list[ElementSet | None]) -> None:
    """A value that is absent (None) breaks no limit: required ones were asked for on reading."""
    for limit in ELEMENT_LIMITS:
        values = [None if element is None else getattr(element, limit.column) for element in sets]
        column = np.array([limit.low if value is None else value for value in values], dtype=np.float64)
        note_violations(errors, {limit.column: column}, [limit])
