"""The stored form of one element set: fixed fields, eight texts, and a checksum that covers the key as well.

A value that was damaged, or that lies under another key than its own, is refused. Little-endian throughout.
"""

import math
import struct
import zlib
from typing import Final, NamedTuple

from sda_platform.serving.errors import DamagedIndex
from sda_platform.serving.keys import described

_VERSION: Final = 3
# Version; nine integers, the last three may be absent; nine numbers; lengths of the texts.
_FIXED: Final = struct.Struct("<B9q9d8H")
_CHECKSUM: Final = struct.Struct("<I")
_INTEGERS: Final = 9
_OPTIONAL_INTEGERS: Final = 3
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
    revolution_at_epoch: int | None
    decay_time_ns: int | None
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
    classification: str | None
    data_mode: str | None
    owner: str | None
    source_name: str | None
    segment_sha256: str


COLUMNS: Final = StoredElements._fields


def encode(key: bytes, record: StoredElements) -> bytes:
    """Return the value to store under ``key``. Raises ValueError for a text above 65,535 bytes."""
    numbers = [math.nan if x is None else x for x in record[_INTEGERS : _INTEGERS + _NUMBERS]]
    texts = [str(text or "").encode() for text in record[_INTEGERS + _NUMBERS :]]
    if max(map(len, texts)) > 0xFFFF:
        raise ValueError(f"object {record.norad_id}: a text is longer than 65,535 bytes")
    integers = [_NO_NUMBER if x is None else x for x in record[:_INTEGERS]]
    fixed = _FIXED.pack(_VERSION, *integers, *numbers, *map(len, texts))
    body = fixed + b"".join(texts)
    return body + _CHECKSUM.pack(zlib.crc32(body, zlib.crc32(key)))


def decode(key: bytes, value: bytes) -> StoredElements:
    """Return the set stored as ``value`` under ``key``. Raises DamagedIndex."""
    body = value[: -_CHECKSUM.size]
    if len(value) < _FIXED.size + _CHECKSUM.size or _CHECKSUM.pack(zlib.crc32(body, zlib.crc32(key))) != value[-4:]:
        raise DamagedIndex(f"{described(key)} is not as it was written to the index; rebuild it")
    found = _FIXED.unpack_from(body)
    if found[0] != _VERSION:
        raise DamagedIndex(f"{described(key)} has layout {found[0]} in the index, not {_VERSION}; rebuild it")
    integers = list(found[1 : 1 + _INTEGERS])
    integers[-_OPTIONAL_INTEGERS:] = [None if x == _NO_NUMBER else x for x in integers[-_OPTIONAL_INTEGERS:]]
    numbers = found[1 + _INTEGERS : 1 + _INTEGERS + _NUMBERS]
    optional = [None if math.isnan(number) else number for number in numbers[_REQUIRED_NUMBERS:]]
    texts, start = [], _FIXED.size
    for length in found[1 + _INTEGERS + _NUMBERS :]:
        texts.append(body[start : start + length].decode() or None)
        start += length
    row = (*integers, *numbers[:_REQUIRED_NUMBERS], *optional)
    return StoredElements._make((*row, *texts[:-1], texts[-1] or ""))
