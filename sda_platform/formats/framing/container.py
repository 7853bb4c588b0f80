"""The container of binary frames, repeated to the end of the segment, little-endian.

u32 payload length (at most 65,536), u64 received time (ns since the Unix epoch, UTC), payload.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from sda_platform.formats.framing.streams import split_at
from sda_platform.formats.records import MAX_TIME_NS, NOT_STAMPED, CutRecords, Framing, RawRecord

MAX_PAYLOAD_BYTES: Final = 65_536
RECORD_HEADER: Final = struct.Struct("<IQ")


def pack_records(payloads: Iterable[bytes], received_time_ns: Iterable[int]) -> bytes:
    """A segment of these payloads; raises ValueError when the two lengths differ."""
    parts: list[bytes] = []
    for payload, received in zip(payloads, received_time_ns, strict=True):
        parts += (RECORD_HEADER.pack(len(payload), received), payload)
    return b"".join(parts)


def _split(data: bytes) -> Iterator[RawRecord]:
    offset, number, size = 0, 0, len(data)
    while offset < size:
        start = offset + RECORD_HEADER.size
        if start > size:
            text = f"{size - offset} bytes left, a record header has {RECORD_HEADER.size}"
            yield RawRecord(number, None, data[offset:], "torn_record", text)
            return
        length, received = RECORD_HEADER.unpack_from(data, offset)
        offset = start + length
        if length > MAX_PAYLOAD_BYTES or offset > size:
            text = f"header announces {length} bytes, {size - start} are left, {MAX_PAYLOAD_BYTES} allowed"
            yield RawRecord(number, None, data[start - RECORD_HEADER.size :], "torn_record", text)
            return
        yield RawRecord(number, received if received <= MAX_TIME_NS else None, data[start:offset])
        number += 1


def _cut(data: bytes) -> CutRecords | None:
    """A container whole to its end, all of whose payloads have the length of the first; None: it is not."""
    length = RECORD_HEADER.unpack_from(data)[0] if len(data) >= RECORD_HEADER.size else 0
    size = RECORD_HEADER.size + length
    if length > MAX_PAYLOAD_BYTES or len(data) % size:
        return None
    frames = np.frombuffer(data, [("length", "<u4"), ("received", "<u8"), ("payload", f"V{length}")])
    if not np.all(frames["length"] == length):
        return None
    received = frames["received"]
    stamped = np.where(received <= MAX_TIME_NS, received.astype(np.int64), NOT_STAMPED)
    payloads = [data[start : start + length] for start in range(RECORD_HEADER.size, len(data) + 1, size)]
    return CutRecords(np.arange(len(payloads)), payloads, stamped, np.zeros(len(payloads), np.int64), {})


def _pack(payloads: Sequence[bytes], received_time_ns: Sequence[int], header: bytes) -> bytes:
    del header
    return pack_records(payloads, received_time_ns)


def _after_frame(buffer: bytearray, room: int) -> int:
    end = 0
    while end + RECORD_HEADER.size <= room:
        length = RECORD_HEADER.unpack_from(buffer, end)[0]
        following = end + RECORD_HEADER.size + length
        if length > MAX_PAYLOAD_BYTES or following > room:
            break
        end = following
    return end


def _may_be_complete(tail: bytes) -> bool:
    """A torn frame shows when the container is split, not in its last bytes."""
    del tail
    return True


CONTAINER: Final = Framing(
    _split, _pack, split_at(_after_frame), _may_be_complete, cut=_cut, is_stamped=True, is_text=False
)
