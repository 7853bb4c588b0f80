"""Element sets read by columns: many usual records at once, or nothing.

A block of records is read here only if every one of them is surely what the careful path (`omm`, `tle`) accepts, with
equal values; else the caller reads it record by record, which names what is wrong.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from sda_platform.formats.element_set import SGP4, UNKNOWN
from sda_platform.formats.json_fields import LONGEST_TEXT
from sda_platform.formats.limits import ELEMENT_LIMITS
from sda_platform.formats.omm import OMM_CSV_COLUMNS, csv_header

Columns = Mapping[str, Any]

_NUMBERS: Final = {
    "MEAN_MOTION": "mean_motion_rev_per_day",
    "ECCENTRICITY": "eccentricity",
    "INCLINATION": "inclination_deg",
    "RA_OF_ASC_NODE": "raan_deg",
    "ARG_OF_PERICENTER": "arg_of_pericenter_deg",
    "MEAN_ANOMALY": "mean_anomaly_deg",
    "BSTAR": "bstar_per_earth_radius",
    "MEAN_MOTION_DOT": "mean_motion_dot_rev_per_day2",
    "MEAN_MOTION_DDOT": "mean_motion_ddot_rev_per_day3",
}
_INTEGERS: Final = {
    "NORAD_CAT_ID": "norad_id",
    "ELEMENT_SET_NO": "element_set_number",
    "REV_AT_EPOCH": "revolution_at_epoch",
}
_TEXTS: Final = {
    "OBJECT_NAME": "object_name",
    "OBJECT_ID": "international_designator",
    "ORIGINATOR": "originator",
    "CLASSIFICATION_TYPE": "classification",
}
_MAY_BE_UNKNOWN: Final = ("international_designator", "originator")
_OPTIONAL: Final = {"MEAN_MOTION_DOT", "MEAN_MOTION_DDOT"}
_UNUSED_INTEGERS: Final = ("EPHEMERIS_TYPE",)
_KNOWN: Final = {*OMM_CSV_COLUMNS, "ORIGINATOR"}
_REQUIRED: Final = {"EPOCH", "NORAD_CAT_ID", *(_NUMBERS.keys() - _OPTIONAL)}
_BEFORE_A_NUMBER: Final = np.isin(np.arange(256), np.frombuffer(b",\n-", np.uint8))
USUAL: Final = bytes(range(0x20, 0x7F)) + b"\n"
_TYPES: Final = {
    "EPOCH": pa.timestamp("ns"),
    **dict.fromkeys(_NUMBERS, pa.float64()),
    **dict.fromkeys((*_INTEGERS, *_UNUSED_INTEGERS), pa.int64()),
    **dict.fromkeys(_TEXTS, pa.string()),
}


def read_omm_csv_columns(payloads: pa.Array, header: bytes) -> Columns | None:
    """Columns of the lines ``payloads`` under ``header``, by name as in ELEMENT_SCHEMA; None: not all are usual."""
    names = csv_header(header)
    body = pc.binary_join(pa.ListArray.from_arrays([0, len(payloads)], payloads), b"\n")[0].as_py() + b"\n"
    is_known = _REQUIRED <= set(names) <= _KNOWN and len(set(names)) == len(names)
    if not is_known or not _is_plain(body):
        return None
    options = csv.ConvertOptions(column_types=_TYPES, null_values=[""], strings_can_be_null=True)
    try:
        reading = csv.ReadOptions(use_threads=False, column_names=list(names), block_size=len(body) + 1)
        found = csv.read_csv(pa.BufferReader(body), reading, convert_options=options)
    except pa.ArrowInvalid:
        return None
    if found.num_rows != len(payloads) or any(found[name].null_count for name in _REQUIRED):
        return None
    if not _are_whole(found):
        return None
    present = {**_NUMBERS, **_INTEGERS, **_TEXTS}
    columns = {own: found[name].combine_chunks() for name, own in present.items() if name in found.column_names}
    for own in _TEXTS.values():
        if own in columns:
            columns[own] = trimmed(columns[own])
            if own in _MAY_BE_UNKNOWN:
                columns[own] = known(columns[own])
            if not are_short(columns[own]):
                return None
    columns["epoch_time_ns"] = found["EPOCH"].combine_chunks().cast(pa.int64())
    return columns if are_within_limits(columns) else None


def _is_plain(body: bytes) -> bool:
    """Return whether ``body`` holds nothing that Arrow and the careful path may read in different ways: `"`, `0x1A`."""
    if b'"' in body or body.translate(None, USUAL):
        return False
    text = np.frombuffer(b"\n\n" + body, np.uint8)
    after = np.flatnonzero((text == ord("x")) | (text == ord("X")))
    return not ((text[after - 1] == ord("0")) & _BEFORE_A_NUMBER[text[after - 2]]).any()


def content_of(texts: pa.Array) -> bytes:
    """All texts of a binary array without nulls, one after the other."""
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    content = texts.buffers()[2]
    return content[int(ends[0]) : int(ends[-1])].to_pybytes() if content is not None else b""


def trimmed(text: pa.Array) -> pa.Array:
    """Text without blanks around it; null where nothing is left."""
    found = pc.ascii_trim_whitespace(text)
    return pc.if_else(pc.equal(found, ""), None, found)


def are_short(text: pa.Array) -> bool:
    """Return whether every text can be a column's."""
    return (pc.max(pc.binary_length(text)).as_py() or 0) <= LONGEST_TEXT


def known(text: pa.Array) -> pa.Array:
    """Text, null where it says that nothing is known."""
    return pc.if_else(pc.equal(pc.ascii_upper(text), UNKNOWN), None, text)


def are_within_limits(columns: Columns) -> bool:
    """Return whether every value keeps its limits (`limits.ELEMENT_LIMITS`); an absent one breaks none, NaN breaks
    each.
    """
    for limit in ELEMENT_LIMITS:
        column = columns.get(limit.column)
        if column is None:
            continue
        values = pc.fill_null(column, 0) if isinstance(column, pa.Array) and column.null_count else column
        numbers = np.asarray(values, np.float64)
        allowed = (numbers >= limit.low) & (numbers <= limit.high)
        if isinstance(column, pa.Array) and column.null_count:
            allowed |= np.asarray(pc.is_null(column))
        if not allowed.all():
            return False
    return True


def _are_whole(found: pa.Table) -> bool:
    """Return whether all integers are exact as doubles, as the careful path demands, and the theory is SGP4."""
    for name in (*_INTEGERS, *_UNUSED_INTEGERS):
        if name in found.column_names:
            extremes = pc.min_max(found[name]).as_py()
            if max(abs(extremes["min"] or 0), abs(extremes["max"] or 0)) > 2**53:
                return False
    if "EPHEMERIS_TYPE" not in found.column_names:
        return True
    return not pc.any(pc.not_equal(found["EPHEMERIS_TYPE"], SGP4)).as_py()
