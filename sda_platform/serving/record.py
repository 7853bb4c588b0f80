"""The stored form of one element set: fixed fields, four texts, and a checksum that covers the key as well.

A value that was damaged, or that lies under another key than its own, is refused. Little-endian throughout.
"""

import math
import struct
import zlib
from typing import Final, NamedTuple

from sda_platform.serving.errors import DamagedIndex

_VERSION: Final = 1
# Version; seven integers; nine numbers; lengths of the texts.
_FIXED: Final = struct.Struct("<B7q9d4H")
_CHECKSUM: Final = struct.Struct("<I")
_INTEGERS: Final = 7
_NUMBERS: Final = 9
_NO_NUMBER: Final = -(2**63)
_REQUIRED_NUMBERS: Final = 6


class StoredElements(NamedTuple):
    """One element set as the index holds it; names, units and frame are those of table `orbital_catalog`."""

    norad_id: int
    epoch_time_ns: int
    source_priority: int
    record_number: int
    received_time_ns: int
    commit_sequence: int
    element_set_number: int | None
    mean_motion_rev_per_day: float
    eccentricity: float
    inclination_deg: float
    raan_deg: float
    arg_of_pericenter_deg: float
    mean_anomaly_deg: float
    bstar_per_earth_radius: float | None
    mean_motion_dot_rev_per_day2: float | None
    mean_motion_ddot_rev_per_day3: float | None
    object_name: str | None
    international_designator: str | None
    originator: str | None
    segment_sha256: str


COLUMNS: Final = StoredElements._fields


def encode(key: bytes, record: StoredElements) -> bytes:
    """The value to store under ``key``. Raises ValueError for a text above 65,535 bytes."""
    numbers = [math.nan if x is None else x for x in record[_INTEGERS : _INTEGERS + _NUMBERS]]
    names = (record.object_name, record.international_designator, record.originator, record.segment_sha256)
    texts = [(text or "").encode() for text in names]
    if max(map(len, texts)) > 0xFFFF:
        raise ValueError(f"object {record.norad_id}: a text is longer than 65,535 bytes")
    set_number = _NO_NUMBER if record.element_set_number is None else record.element_set_number
    fixed = _FIXED.pack(_VERSION, *record[: _INTEGERS - 1], set_number, *numbers, *map(len, texts))
    body = fixed + b"".join(texts)
    return body + _CHECKSUM.pack(zlib.crc32(body, zlib.crc32(key)))


def decode(key: bytes, value: bytes) -> StoredElements:
    """The set stored as ``value`` under ``key``. Raises DamagedIndex."""
    body = value[: -_CHECKSUM.size]
    if len(value) < _FIXED.size + _CHECKSUM.size or _CHECKSUM.pack(zlib.crc32(body, zlib.crc32(key))) != value[-4:]:
        raise DamagedIndex(f"the value under key {key.hex()} is not as it was written; rebuild the index")
    found = _FIXED.unpack_from(body)
    if found[0] != _VERSION:
        raise DamagedIndex(f"the value under key {key.hex()} has layout {found[0]}, not {_VERSION}; rebuild the index")
    *integers, set_number = found[1 : 1 + _INTEGERS]
    numbers = found[1 + _INTEGERS : 1 + _INTEGERS + _NUMBERS]
    optional = [None if math.isnan(number) else number for number in numbers[_REQUIRED_NUMBERS:]]
    texts, start = [], _FIXED.size
    for length in found[-4:]:
        texts.append(body[start : start + length].decode() or None)
        start += length
    row = (*integers, None if set_number == _NO_NUMBER else set_number, *numbers[:_REQUIRED_NUMBERS], *optional)
    return StoredElements._make((*row, *texts[:3], texts[3] or ""))
