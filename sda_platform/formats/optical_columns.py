"""Optical records as columns: Arrow parses plain lines, `optical` the others, with equal results.

Plain is a line of printable ASCII without an escape, that is one whole object of known keys whose values
have the expected JSON types: there Arrow's parser and Python's cannot differ. A block of lines that Arrow refuses is
halved until the lines at fault are few.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from sda_platform.arrays import FloatArray
from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.formats.decoded import Decoded
from sda_platform.formats.errors import RecordError
from sda_platform.formats.isl import CLOCK_KINDS
from sda_platform.formats.limits import EARTH_POLAR_RADIUS_M
from sda_platform.formats.optical import (
    OBSERVER,
    RADIANS_PER_ARCSECOND,
    STATE_OF_OBSERVER,
    OpticalRecord,
    encode_optical_record,
    parse_optical_record,
)

_FIELDS: Final = pa.schema(
    [
        ("obs_id", pa.string()),
        ("timestamp_ns", pa.int64()),
        ("ra_rad", pa.float64()),
        ("dec_rad", pa.float64()),
        ("sigma_arcsec", pa.float64()),
        ("site_id", pa.string()),
        ("received_ns", pa.int64()),
        ("clock_quality", pa.string()),
        ("clock_age_s", pa.float64()),
        *((name, pa.string()) for name in ANGLE_REFERENCES),
        *((name, pa.float64()) for name in OBSERVER),
    ]
)
_PARSE: Final = arrow_json.ParseOptions(explicit_schema=_FIELDS, unexpected_field_behavior="error")
_FEW_LINES: Final = 16
_DEFAULTS: Final = {"clock_quality": "ntp_synced", "clock_age_s": 0.0}
_OPTIONAL: Final = ("received_ns", *ANGLE_REFERENCES, *OBSERVER)
# In this span Arrow writes a number as Python does; elsewhere the digits are the same, but not the exponent.
_LEAST_ALIKE, _GREATEST_ALIKE = 1e-4, 1e9


@dataclass(frozen=True, slots=True)
class _Block:
    """Some lines: the columns of _FIELDS, each line's identity, and what is wrong with which."""

    columns: pa.Table
    identity: pa.Array
    errors: Mapping[int, RecordError]


def decode_optical_records(payloads: Sequence[bytes]) -> Decoded:
    """Columns of every line; a line that is no valid record is an error row.

    The identity bytes leave `received_ns` out, so a record polled twice keeps its observation id (erratum
    E1).
    """
    blocks = [each if isinstance(each, _Block) else _one_by_one(each) for each in _decode(payloads)]
    blocks.append(_one_by_one([]))
    starts = np.cumsum([0, *(block.columns.num_rows for block in blocks)]).tolist()
    columns = pa.concat_tables(block.columns for block in blocks).combine_chunks()
    numbers = {name: np.asarray(columns[name]) for name in ("ra_rad", "dec_rad", "sigma_arcsec", "clock_age_s")}
    observer, checks = _observers(columns)
    site = _chunk(columns["site_id"])
    named = pc.binary_join_element_wise(pa.scalar("optical-"), site, pa.scalar(""))
    return Decoded(
        errors={s + row: e for s, block in zip(starts, blocks, strict=False) for row, e in block.errors.items()},
        source_id=pc.if_else(pc.starts_with(site, "optical-"), site, named),
        native_track_id=_chunk(columns["obs_id"]),
        sensor_time_ns=np.asarray(columns["timestamp_ns"]).astype(np.uint64),
        values={
            "right_ascension_rad": numbers["ra_rad"],
            "declination_rad": numbers["dec_rad"],
            "angle_sigma_rad": numbers["sigma_arcsec"] * RADIANS_PER_ARCSECOND,
            "clock_age_s": numbers["clock_age_s"],
            **observer,
        },
        checks=checks,
        clock_quality=_chunk(columns["clock_quality"]),
        received_time_ns=_chunk(columns["received_ns"]),
        angle_references={name: _chunk(columns[name]) for name in ANGLE_REFERENCES},
        identity=pa.concat_arrays([block.identity for block in blocks]).to_pylist(),
    )


def _observers(columns: pa.Table) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Return the states of orbiting observers by column, NaN of others, and what limits look at; nothing if all are
    others.
    """
    if columns[OBSERVER[0]].null_count == columns.num_rows:
        return {}, {}
    values = {
        name: np.asarray(columns[field], np.float64) for name, field in zip(STATE_OF_OBSERVER, OBSERVER, strict=True)
    }
    is_other = np.isnan(values["x_m"])
    place, speed = (
        np.stack([values[name] for name in names]) for names in (STATE_OF_OBSERVER[:3], STATE_OF_OBSERVER[3:6])
    )
    with np.errstate(over="ignore", invalid="ignore"):
        distance_m, speed_m_s = np.sqrt(np.sum(place**2, axis=0)), np.sqrt(np.sum(speed**2, axis=0))
    checks = {
        "geocentric_distance_m": np.where(is_other, EARTH_POLAR_RADIUS_M, distance_m),
        "speed_m_s": np.where(is_other, 0.0, speed_m_s),
        "position_sigma_m": np.where(is_other, 1.0, values["position_sigma_m"]),
    }
    return values, checks


def _decode(payloads: Sequence[bytes]) -> list[_Block | list[bytes]]:
    """Blocks of plain lines, and the lines between them."""
    if len(payloads) <= _FEW_LINES:
        return [list(payloads)]
    block = _all_at_once(payloads)
    if block is not None:
        return [block]
    half = len(payloads) // 2
    first, second = _decode(payloads[:half]), _decode(payloads[half:])
    if isinstance(first[-1], list) and isinstance(second[0], list):  # a block for each few lines takes longer than they
        first[-1] += second.pop(0)  # type: ignore[arg-type]
    return first + second


def _one_by_one(payloads: Sequence[bytes]) -> _Block:
    blank = OpticalRecord("", 0, 0.0, 0.0, 1.0, "")
    errors: dict[int, RecordError] = {}
    records: list[OpticalRecord] = []
    identity: list[bytes] = []
    for row, payload in enumerate(payloads):
        try:
            record = parse_optical_record(payload)
            identity.append(encode_optical_record(replace(record, received_ns=None)))
            records.append(record)
        except RecordError as error:
            errors[row] = error.alone()
            identity.append(payload)
            records.append(blank)
    columns = {name: [getattr(record, name) for record in records] for name in _FIELDS.names}
    return _Block(pa.table(columns, schema=_FIELDS), pa.array(identity, pa.binary()), errors)


def _all_at_once(payloads: Sequence[bytes]) -> _Block | None:
    """Return the lines by Arrow; None where one of them is not plain."""
    data = b"\n".join(payloads)
    if not _are_plain(payloads, data):
        return None
    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    try:
        columns = arrow_json.read_json(pa.BufferReader(data), reading, _PARSE).select(_FIELDS.names).combine_chunks()
    except (pa.ArrowInvalid, KeyError):
        return None
    if columns.num_rows != len(payloads) or (_is_defaulted(columns) and b"null" in data):
        return None
    for name, default in _DEFAULTS.items():
        filled = pc.fill_null(columns[name], default)
        columns = columns.set_column(columns.column_names.index(name), name, filled)
    return _Block(columns, _identities(columns), {}) if _is_usable(columns) else None


def _are_plain(payloads: Sequence[bytes], data: bytes) -> bool:
    """Return whether every line is printable ASCII without an escape, from its first brace to its last."""
    codes = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero(codes < ord(" "))
    return (
        b"\\" not in data
        and int(codes.max()) <= ord("~")
        and len(breaks) == len(payloads) - 1
        and data[:1] + data[-1:] == b"{}"
        and bool(np.all(codes[breaks] == ord("\n")))
        and bool(np.all((codes[breaks - 1] == ord("}")) & (codes[breaks + 1] == ord("{"))))
    )


def _is_defaulted(columns: pa.Table) -> bool:
    """Return whether a field with a default is absent somewhere, or null; Arrow does not distinguish the two."""
    return any(columns[name].null_count for name in _DEFAULTS)


def _is_usable(columns: pa.Table) -> bool:
    required = [name for name in _FIELDS.names if name not in _OPTIONAL]
    if any(columns[name].null_count for name in required):
        return False
    texts = all(pc.min(pc.binary_length(columns[name])).as_py() > 0 for name in ("obs_id", "site_id"))
    times = all((pc.min(columns[name]).as_py() or 0) >= 0 for name in ("timestamp_ns", "received_ns"))
    kinds = set(pc.unique(columns["clock_quality"]).to_pylist()) <= set(CLOCK_KINDS)
    kinds &= all(set(pc.unique(columns[name]).to_pylist()) <= {None, *v} for name, v in ANGLE_REFERENCES.items())
    absent = columns[OBSERVER[0]].is_null()
    times &= all(columns[name].is_null().equals(absent) for name in OBSERVER)
    return texts and times and kinds and all(_are_certain(columns[f.name]) for f in _FIELDS if f.type == pa.float64())


def _are_certain(column: pa.ChunkedArray) -> bool:
    """Finite, and no -0.0, which Python reads from `-0.0` but not from `-0`."""
    values = np.asarray(column.drop_null())
    return bool(np.all(np.isfinite(values) & ((values != 0.0) | ~np.signbit(values))))


def _identities(columns: pa.Table) -> pa.Array:
    """Return what `encode_optical_record` would write without `received_ns`."""
    parts: list[pa.Array | pa.Scalar] = []
    for field in _FIELDS:
        if field.name in ANGLE_REFERENCES and columns[field.name].null_count < columns.num_rows:
            stated = [pa.scalar(f',"{field.name}":"'), _chunk(columns[field.name]), pa.scalar('"'), pa.scalar("")]
            parts.append(pc.fill_null(pc.binary_join_element_wise(*stated), ""))
        if field.name in OBSERVER and columns[field.name].null_count < columns.num_rows:
            stated = [pa.scalar(f',"{field.name}":'), _as_json(_chunk(columns[field.name])), pa.scalar("")]
            parts.append(pc.fill_null(pc.binary_join_element_wise(*stated), ""))
        if field.name in _OPTIONAL:
            continue
        quote = '"' if field.type == pa.string() else ""
        parts += [pa.scalar(f'{"," if parts else "{"}"{field.name}":{quote}'), _as_json(_chunk(columns[field.name]))]
        parts.append(pa.scalar(quote))
    return pc.cast(pc.binary_join_element_wise(*parts, pa.scalar("}"), pa.scalar("")), pa.binary())


def _as_json(column: pa.Array) -> pa.Array:
    text = pc.cast(column, pa.string())
    if column.type != pa.float64():
        return text
    point = pc.if_else(pc.match_substring(text, "."), pa.scalar(""), pa.scalar(".0"))
    written, size = pc.binary_join_element_wise(text, point, pa.scalar("")), np.abs(np.asarray(column))
    other = (size != 0.0) & ((size < _LEAST_ALIKE) | (size >= _GREATEST_ALIKE))
    if not other.any():
        return written
    return pc.replace_with_mask(written, pa.array(other), pa.array(map(repr, np.asarray(column)[other].tolist())))


def _chunk(column: pa.ChunkedArray) -> pa.Array:
    """Return the one chunk of a combined column."""
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
