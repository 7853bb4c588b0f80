"""Observation ids: the UUIDv5 of what makes a reading itself, for whole columns of readings.

The name that is hashed is source kind, source id, native id, sensor time and the payload's SHA-256 (erratum E1). So a
reading that is delivered twice has one id.
"""

import hashlib
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:sda-platform:observation:1").bytes
_SHA1_BYTES: Final = 20
_UUID_BYTES: Final = 16
_UUID_TEXT: Final = 36
_HYPHENS: Final = (8, 13, 18, 23)
_DIGITS: Final = np.setdiff1d(np.arange(_UUID_TEXT), _HYPHENS)
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)


def observation_ids(
    source_kind: str, source_id: pa.Array, native_id: pa.Array, sensor_time_ns: pa.Array, payloads: Sequence[bytes]
) -> pa.Array:
    """Return the UUIDv5 (as `uuid.uuid5` would give) of n readings; columns without nulls. Equal readings have equal
    ids.
    """
    texts = (source_id, native_id, pc.cast(sensor_time_ns, pa.string()), pa.scalar(""))
    begin = pa.scalar(_NAMESPACE + source_kind.encode())
    names = pc.binary_join_element_wise(begin, *(pc.cast(text, pa.binary()) for text in texts), pa.scalar(b"|"))
    sha1, sha256 = partial(hashlib.sha1, usedforsecurity=False), hashlib.sha256
    digests = [
        sha1(name + sha256(payload).hexdigest().encode()).digest()
        for name, payload in zip(names.to_pylist(), payloads, strict=True)
    ]
    return _as_uuids(b"".join(digests), len(payloads))


def _as_uuids(sha1_digests: bytes, count: int) -> pa.Array:
    value = np.frombuffer(sha1_digests, np.uint8).reshape(count, _SHA1_BYTES)[:, :_UUID_BYTES].copy()
    value[:, 6] = value[:, 6] & 0x0F | 0x50
    value[:, 8] = value[:, 8] & 0x3F | 0x80
    text = np.full((count, _UUID_TEXT), ord("-"), np.uint8)
    text[:, _DIGITS[0::2]] = _HEX[value >> 4]
    text[:, _DIGITS[1::2]] = _HEX[value & 0x0F]
    ends = np.arange(count + 1, dtype=np.int32) * _UUID_TEXT
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(text))
