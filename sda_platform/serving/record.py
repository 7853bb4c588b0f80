"""The stored form of one element set: its place as in the key, fixed fields, and texts.

A value that lies under another key than its own is refused; damage is the engine's to find. That the place is there as
in the key costs nothing: compression finds it twice.
"""

import math
import struct
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.serving.errors import DamagedIndex
from sda_platform.serving.keys import PLACE, PLACES, SEGMENT_BYTES, SIGN, described, place_in

_VERSION: Final = 4
_HASH_BYTES: Final = 32
# After the place: the rest of the segment's hash, the version, integers, of which the last three may be absent,
# numbers, of which the last three may be, and the lengths of the texts.
_FIXED: Final = struct.Struct("<24sB6q9d7H")
_ROWS: Final = np.dtype(
    [
        ("place", PLACES),
        ("segment", "u1", (_HASH_BYTES - SEGMENT_BYTES,)),
        ("version", "u1"),
        ("integers", "<i8", (6,)),
        ("numbers", "<f8", (9,)),
        ("lengths", "<u2", (7,)),
    ]
)
_OPTIONAL_INTEGERS: Final = 3
_NO_NUMBER: Final = -(2**63)
_REQUIRED_NUMBERS: Final = 6
_LONGEST_TEXT: Final = 0xFFFF


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
_INTEGERS: Final = ("source_priority", "received_time_ns", "commit_sequence", *COLUMNS[6:9])
_NUMBERS: Final = COLUMNS[9:18]
_TEXTS: Final = COLUMNS[18:25]


def places(sets: pa.Table) -> npt.NDArray[Any]:
    """Return `keys.PLACES` of a table that has COLUMNS."""
    return _places(sets, _hashes(sets))


def encode(sets: pa.Table) -> list[bytes]:
    """Return the value to store of each row of a table that has COLUMNS.

    Raises ValueError for a text above 65,535 bytes, and a segment's hash that is none.
    """
    rows, hashes = np.empty(sets.num_rows, _ROWS), _hashes(sets)
    rows["place"], rows["segment"], rows["version"] = _places(sets, hashes), hashes[:, SEGMENT_BYTES:], _VERSION
    for number, name in enumerate(_INTEGERS):
        rows["integers"][:, number] = _filled(sets, name, pa.int64(), _NO_NUMBER)
    for number, name in enumerate(_NUMBERS):
        rows["numbers"][:, number] = _filled(sets, name, pa.float64(), math.nan)
    texts = [pc.fill_null(pc.cast(sets[name], pa.binary()), b"") for name in _TEXTS]
    for number, text in enumerate(texts):
        lengths = pc.binary_length(text).to_numpy()
        if lengths.max(initial=0) > _LONGEST_TEXT:
            raise ValueError(f"{_TEXTS[number]}: a text is longer than {_LONGEST_TEXT:,} bytes")
        rows["lengths"][:, number] = lengths
    fixed, joined = rows.tobytes(), pc.binary_join_element_wise(*texts, b"").to_pylist()
    starts = range(0, len(fixed), _ROWS.itemsize)
    return [fixed[start : start + _ROWS.itemsize] + text for start, text in zip(starts, joined, strict=True)]


def decode(key: bytes, value: bytes) -> StoredElements:
    """Return the set stored as ``value`` under ``key``. Raises DamagedIndex."""
    if not value.startswith(place_in(key)) or len(value) < _ROWS.itemsize:
        raise DamagedIndex(f"{described(key)} is not as it was written to the index; rebuild it")
    norad_id, epoch, segment, record_number = PLACE.unpack_from(value)
    found = _FIXED.unpack_from(value, PLACE.size)
    if found[1] != _VERSION:
        raise DamagedIndex(f"{described(key)} has layout {found[1]} in the index, not {_VERSION}; rebuild it")
    priority, received_ns, sequence, *more = found[2:8]
    more = [None if x == _NO_NUMBER else x for x in more]
    required, optional = found[8 : 8 + _REQUIRED_NUMBERS], found[8 + _REQUIRED_NUMBERS : 17]
    maybe = [None if math.isnan(number) else number for number in optional]
    texts, start = [], _ROWS.itemsize
    for length in found[17:]:
        texts.append(value[start : start + length].decode() or None)
        start += length
    whole = (norad_id, epoch - SIGN, priority, record_number, received_ns, sequence)
    return StoredElements._make(chain(whole, more, required, maybe, texts, [(segment + found[0]).hex()]))


def _places(sets: pa.Table, hashes: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    found = np.empty(sets.num_rows, PLACES)
    found["norad_id"] = sets["norad_id"].to_numpy()
    found["epoch"] = sets["epoch_time_ns"].to_numpy().astype(np.int64).view(np.uint64) ^ np.uint64(SIGN)
    found["segment"] = hashes[:, :SEGMENT_BYTES]
    found["record_number"] = sets["record_number"].to_numpy()
    return found


def _hashes(sets: pa.Table) -> npt.NDArray[np.uint8]:
    data = bytes.fromhex("".join(sets["segment_sha256"].to_pylist()))
    return np.frombuffer(data, np.uint8).reshape(sets.num_rows, _HASH_BYTES)


def _filled(sets: pa.Table, name: str, data_type: pa.DataType, absent: float) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = pc.fill_null(pc.cast(sets[name], data_type), pa.scalar(absent, data_type)).to_numpy()
    return found
