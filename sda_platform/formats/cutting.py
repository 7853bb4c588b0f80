"""The records of a segment of a named format: one by one, as columns, and back into a segment.

Decoders work on columns, and on those of several segments joined. A call per record or per small segment would cost
more than the decoding.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np

from sda_platform.formats.errors import RecordError
from sda_platform.formats.format import Format
from sda_platform.formats.records import NOT_STAMPED, CutRecords, RawRecord
from sda_platform.formats.registry import FORMATS, format_named, known_format
from sda_platform.formats.text import as_text, stream_as_text, to_be_read_again

LEAST_RECORD_BYTES: Final = 16
"""Fewer bytes than any format needs for a record."""
_HEAD_BYTES: Final = 2**16
_FEW_RECORDS: Final = 100_000


def split_records(data: bytes, segment_format: str) -> Iterator[RawRecord]:
    """Every record of a segment in order; a torn tail or an unknown format is one faulty record."""
    known = format_named(segment_format)
    if known is None:
        names = ", ".join(sorted(each.name for each in FORMATS))
        return iter([RawRecord(0, None, data, "unknown_format", f"format {segment_format!r} is none of {names}")])
    return known.framing.split(_text(data, known))


def cut_records(data: bytes, segment_format: str) -> CutRecords:
    """Cut records as `split_records` does, into columns; much faster for lines and for frames of one length."""
    known = format_named(segment_format)
    cut = known.framing.cut(_text(data, known)) if known else None
    return _as_columns(list(split_records(data, segment_format))) if cut is None else cut


def count_records(data: bytes, segment_format: str) -> int:
    """Count the records that `split_records` yields."""
    known = format_named(segment_format)
    if known and known.framing.count:
        return known.framing.count(_text(data, known))
    return len(cut_records(data, segment_format))


def most_records(size: int) -> int:
    """Return the most records that ``size`` bytes of somebody else may hold."""
    return max(_FEW_RECORDS, size // LEAST_RECORD_BYTES)


def join_cuts(cuts: Iterable[CutRecords]) -> CutRecords:
    """Return the records of several segments, one after the other."""
    parts = [*cuts, _as_columns([])]
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    return CutRecords(
        np.concatenate([part.numbers for part in parts]),
        list(chain.from_iterable(part.payloads for part in parts)),
        np.concatenate([part.received_time_ns for part in parts]),
        np.concatenate([part.lines for part in parts]),
        {start + row: error for start, part in zip(starts, parts, strict=False) for row, error in part.errors.items()},
    )


def segment_header(data: bytes, segment_format: str) -> bytes:
    """Return what a record needs to be read apart from its segment; empty for most formats."""
    known = format_named(segment_format)
    if known is None or not known.framing.has_header:
        return b""
    head = _text(data[:_HEAD_BYTES], known)
    is_whole = b"\n" in head.lstrip() or len(data) <= _HEAD_BYTES
    return known.framing.header(head if is_whole else _text(data, known))


def pack_segment(
    payloads: Sequence[bytes], received_time_ns: Sequence[int], segment_format: str, *, header: bytes = b""
) -> bytes:
    """A segment of exactly these records, which were cut from other segments with this ``header``.

    Raises UnknownFormat.
    """
    return known_format(segment_format).framing.pack(payloads, received_time_ns, header)


def can_be_packed(payload: bytes, segment_format: str, *, header: bytes = b"") -> bool:
    """Return whether a segment gives the record back as it is, so that it cannot harm its neighbours there."""
    if format_named(segment_format) is None:
        return False
    return _payloads(pack_segment([payload], [0], segment_format, header=header), segment_format) == [payload]


def is_segment_of_itself(payload: bytes, segment_format: str) -> bool:
    """Return whether the bytes of the record, alone, are a segment of this one record."""
    return _payloads(payload, segment_format) == [payload]


def split_stream(chunks: Iterable[bytes], segment_format: str, max_bytes: int) -> Iterator[bytes]:
    """Return the stream as segments of at most ``max_bytes``, equal for equal content however it is chunked.

    A stream that fits into one segment is that segment, byte for byte; segments of a longer one are text in UTF-8. A
    byte order mark, where one has to say so, comes on top of ``max_bytes``. Raises UnknownFormat.
    """
    framing, rest = known_format(segment_format).framing, iter(chunks)
    head: list[bytes] = []
    while sum(map(len, head)) <= max_bytes and (chunk := next(rest, None)) is not None:
        head.append(chunk)
    whole = chain([b"".join(head)], rest)
    fits = sum(map(len, head)) <= max_bytes
    if fits or not framing.is_text:
        return framing.split_stream(whole, max_bytes)
    return map(to_be_read_again, framing.split_stream(stream_as_text(whole), max_bytes))


def looks_ended(tail: bytes, segment_format: str) -> bool:
    """Return whether a stream that ends with ``tail`` may be complete: its last line or its document is closed."""
    framing = known_format(segment_format).framing
    if framing.is_text:  # the zero bytes of UTF-16 and UTF-32 say nothing of where a record ends
        tail = tail.replace(b"\0", b"").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return framing.looks_ended(tail)


def _text(data: bytes, known: Format) -> bytes:
    return as_text(data) if known.framing.is_text else data


def _payloads(data: bytes, segment_format: str) -> list[bytes]:
    return [record.payload for record in split_records(data, segment_format)]


def _as_columns(records: Sequence[RawRecord]) -> CutRecords:
    times = [NOT_STAMPED if r.received_time_ns is None else r.received_time_ns for r in records]
    return CutRecords(
        np.array([r.number for r in records], np.int64),
        [r.payload for r in records],
        np.array(times, np.int64),
        np.array([r.line for r in records], np.int64),
        {row: RecordError(r.error_kind, r.error or "") for row, r in enumerate(records) if r.error_kind},
    )
