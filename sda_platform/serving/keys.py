"""Keys of the serving index: fixed width or terminated, so that plain byte order is the order of their parts.

Numbers are big-endian. A key of variable length would let the lookup of one object find another whose number begins
with the same digits. Each space of keys begins with its own letter.
"""

import struct
from typing import Final

CURRENT: Final = b"c"
DESIGNATOR: Final = b"d"
EPOCH: Final = b"e"
HELD: Final = b"g"
HISTORY: Final = b"h"
META: Final = b"m"
NAME: Final = b"n"

SEGMENT_DIGITS: Final = 16
"""So many hexadecimal digits of a segment's hash are part of the key of a set."""
_ID = struct.Struct(">Q")
_PAIR = struct.Struct(">QQ")
_HISTORY = struct.Struct(">QQ8sI")
_SIGN: Final = 1 << 63  # times before 1970 sort before later ones
_MOST: Final = 2**64 - 1
_TEXT_BYTES: Final = 200


def current(norad_id: int) -> bytes:
    """Return the key of an object's set in force."""
    return CURRENT + _ID.pack(norad_id)


def epoch(epoch_ns: int, norad_id: int = 0) -> bytes:
    """Return the key by which an object is found by the epoch of its set in force."""
    return EPOCH + _PAIR.pack(epoch_ns + _SIGN, norad_id)


def last_of_epoch(epoch_ns: int) -> bytes:
    """Return the greatest key of that epoch."""
    return EPOCH + _PAIR.pack(epoch_ns + _SIGN, _MOST)


def history(norad_id: int, epoch_ns: int, segment_sha256: str, record_number: int) -> bytes:
    """Return the key of one set of an object; the record that it came in makes it unique."""
    return HISTORY + _HISTORY.pack(
        norad_id, epoch_ns + _SIGN, bytes.fromhex(segment_sha256[:SEGMENT_DIGITS]), record_number
    )


def held(norad_id: int, epoch_ns: int, segment_sha256: str, record_number: int) -> bytes:
    """Return the key of a set that is held: it has no part in the object's history."""
    return HELD + history(norad_id, epoch_ns, segment_sha256, record_number)[1:]


def history_from(norad_id: int, epoch_ns: int) -> bytes:
    """Return the least key of an object's sets with this epoch."""
    return HISTORY + _PAIR.pack(norad_id, epoch_ns + _SIGN)


def history_upto(norad_id: int, epoch_ns: int) -> bytes:
    """Return a key above all of an object's sets with this epoch, and below later ones."""
    return HISTORY + _PAIR.pack(norad_id, epoch_ns + _SIGN) + b"\xff" * 13


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
    if key[:1] in (CURRENT, HISTORY, HELD) and len(key) > _ID.size:
        what = {CURRENT: "set in force", HISTORY: "history", HELD: "held sets"}[key[:1]]
        return f"the {what} of object {_ID.unpack_from(key, 1)[0]}"
    return f"the value under key {key.hex()}"


def text_of(key: bytes) -> str:
    """Return the text that a key of `text` holds."""
    return key[1 : -_ID.size - 1].decode(errors="replace")
