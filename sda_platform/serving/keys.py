"""Keys of the serving index: fixed width or terminated, so that plain byte order is the order of their parts.

Numbers are big-endian. A key of variable length would let the lookup of one object find another whose number begins
with the same digits. Each space of keys begins with its own letter.
"""

import struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

CURRENT: Final = b"c"
DESIGNATOR: Final = b"d"
EPOCH: Final = b"e"
HISTORY: Final = b"h"
META: Final = b"m"
NAME: Final = b"n"
PERIOD: Final = b"p"

PERIOD_NS: Final = 1 << 49
"""Length of a period, some 6.5 days: the sets of one lie together, so that a history is loaded and read by periods."""
SEGMENT_BYTES: Final = 8
"""So many bytes of a segment's hash are part of the key of a set."""
PLACE: Final = struct.Struct(f">QQ{SEGMENT_BYTES}sI")
"""Object, epoch, segment and record: what makes a set unique, and the end of its key."""
PLACES: Final = np.dtype(
    [("norad_id", ">u8"), ("epoch", ">u8"), ("segment", "u1", (SEGMENT_BYTES,)), ("record_number", ">u4")]
)
"""`PLACE` of many sets."""
SIGN: Final = 1 << 63
"""Added to times: those before 1970 sort before later ones."""
_ID = struct.Struct(">Q")
_PAIR = struct.Struct(">QQ")
_OF_PERIOD = struct.Struct(">HB")
_PERIOD_OF = struct.Struct(">QH")
_SETS: Final = np.dtype([("space", "S1"), ("period", ">u2"), ("is_held", "u1"), ("place", PLACES)])
_PERIODS: Final = np.dtype([("space", "S1"), ("norad_id", ">u8"), ("period", ">u2")])
_MOST: Final = 2**64 - 1
_TEXT_BYTES: Final = 200


def current(norad_id: int) -> bytes:
    """Return the key of an object's set in force."""
    return CURRENT + _ID.pack(norad_id)


def epoch(epoch_ns: int, norad_id: int = 0) -> bytes:
    """Return the key by which an object is found by the epoch of its set in force."""
    return EPOCH + _PAIR.pack(epoch_ns + SIGN, norad_id)


def last_of_epoch(epoch_ns: int) -> bytes:
    """Return the greatest key of that epoch."""
    return EPOCH + _PAIR.pack(epoch_ns + SIGN, _MOST)


def history(norad_id: int, epoch_ns: int, segment_sha256: str, record_number: int, *, is_held: bool = False) -> bytes:
    """Return the key of one set of an object; a set that is held has no part in the object's history."""
    place = PLACE.pack(norad_id, epoch_ns + SIGN, bytes.fromhex(segment_sha256)[:SEGMENT_BYTES], record_number)
    return HISTORY + _OF_PERIOD.pack(_period(epoch_ns), is_held) + place


def histories(places: npt.NDArray[Any], are_held: npt.NDArray[np.bool_]) -> npt.NDArray[np.void]:
    """Return `history` of each of many `PLACES`, as an array of the keys' bytes."""
    rows = np.empty(len(places), _SETS)
    rows["space"], rows["is_held"], rows["place"] = HISTORY, are_held, places
    rows["period"] = places["epoch"].astype(np.uint64) // np.uint64(PERIOD_NS)
    return rows.view(f"V{_SETS.itemsize}")


def other_place(key: bytes) -> bytes:
    """Return the key that a set has when it is held, or is not any more."""
    return key[:3] + bytes([1 - key[3]]) + key[4:]


def history_from(norad_id: int, epoch_ns: int) -> bytes:
    """Return the least key of an object's sets with this epoch."""
    return HISTORY + _OF_PERIOD.pack(_period(epoch_ns), 0) + _PAIR.pack(norad_id, epoch_ns + SIGN)


def history_upto(norad_id: int, epoch_ns: int) -> bytes:
    """Return a key above all of an object's sets with this epoch, and below later ones."""
    return history_from(norad_id, epoch_ns) + b"\xff" * (PLACE.size - _PAIR.size + 1)


def period(norad_id: int, epoch_ns: int) -> bytes:
    """Return the key that says that an object has sets in the period of an epoch."""
    return PERIOD + _PERIOD_OF.pack(norad_id, _period(epoch_ns))


def periods(of_sets: npt.NDArray[np.void]) -> list[bytes]:
    """Return `period` of each of `histories`, each once, ascending."""
    sets = of_sets.view(_SETS)
    rows = np.empty(len(sets), _PERIODS)
    rows["space"], rows["norad_id"], rows["period"] = PERIOD, sets["place"]["norad_id"], sets["period"]
    # Of a sorted history, most rows are as the one before.
    is_new = np.ones(len(rows), np.bool_)
    is_new[1:] = rows[1:] != rows[:-1]
    return listed(np.unique(rows[is_new].view(f"S{_PERIODS.itemsize}")))


def listed(of_one_width: npt.NDArray[Any]) -> list[bytes]:
    """Return the bytes of each item of an array."""
    data, width = of_one_width.tobytes(), of_one_width.itemsize
    return [data[start : start + width] for start in range(0, len(data), width)]


def span_of(key: bytes) -> tuple[int, int]:
    """Return the first and the last epoch of a key of `period`."""
    begin_ns = _PERIOD_OF.unpack_from(key, 1)[1] * PERIOD_NS - SIGN
    return begin_ns, begin_ns + PERIOD_NS - 1


def place_in(key: bytes) -> bytes:
    """Return what a value begins with that lies under a key of `current` or `history`: its place, or the beginning."""
    return key[1:] if key[:1] == CURRENT else key[-PLACE.size :]


def _period(epoch_ns: int) -> int:
    return (epoch_ns + SIGN) // PERIOD_NS


def text(space: bytes, value: str, norad_id: int) -> bytes:
    """Return the key by which an object is found by a text, in capitals; the terminator keeps prefixes apart."""
    return text_prefix(space, value) + b"\0" + _ID.pack(norad_id)


def text_prefix(space: bytes, value: str) -> bytes:
    """Return the prefix of the keys of all texts that begin with ``value``."""
    return space + value.upper().replace("\0", " ").encode()[:_TEXT_BYTES]


def norad_id_at_end(key: bytes) -> int:
    """Return the object that a key of `epoch` or `text` names."""
    return int(_ID.unpack_from(key, len(key) - _ID.size)[0])


def described(key: bytes) -> str:
    """Describe what lies under a key, for messages."""
    if key[:1] in (CURRENT, HISTORY) and len(key) > _ID.size:
        what = "set in force" if key[:1] == CURRENT else "history"
        return f"the {what} of object {_ID.unpack_from(place_in(key))[0]}"
    return f"the value under key {key.hex()}"


def text_of(key: bytes) -> str:
    """Return the text that a key of `text` holds."""
    return key[1 : -_ID.size - 1].decode(errors="replace")
