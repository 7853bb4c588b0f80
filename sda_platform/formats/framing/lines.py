"""Records that are lines: alone, under the header line of a CSV, or in sets of two or three (element sets)."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from sda_platform.formats.framing.streams import split_at
from sda_platform.formats.records import NOT_STAMPED, CutRecords, Framing, RawRecord

_BLANK: Final = b" \t\r"


def _split_lines(data: bytes) -> Iterator[RawRecord]:
    number = 0
    for line, content in enumerate(data.split(b"\n"), 1):
        payload = content.strip(_BLANK)
        if payload:
            yield RawRecord(number, None, payload, line=line)
            number += 1


def _cut_lines(data: bytes) -> CutRecords:
    lines = [line.strip(_BLANK) for line in data.split(b"\n")]
    payloads = [payload for payload in lines if payload]
    count = len(payloads)
    numbers = np.arange(count)
    is_dense = all(lines[:count])
    at = numbers + 1 if is_dense else np.flatnonzero(np.fromiter(map(bool, lines), np.bool_, len(lines))) + 1
    return CutRecords(numbers, payloads, np.full(count, NOT_STAMPED, np.int64), at, {})


def _split_csv(data: bytes) -> Iterator[RawRecord]:
    """Lines after the header line: a record is one line, so a quoted field holds no line break."""
    lines = _split_lines(data)
    header = next(lines, None)
    if header:
        for record in lines:
            yield RawRecord(record.number - 1, None, record.payload, line=record.line, header=header.payload)


def _cut_csv(data: bytes) -> CutRecords:
    cut = _cut_lines(data)
    return CutRecords(
        cut.numbers[: max(len(cut) - 1, 0)], cut.payloads[1:], cut.received_time_ns[1:], cut.lines[1:], {}
    )


def _csv_header(data: bytes) -> bytes:
    """The first non-blank line of a CSV segment, empty if there is none."""
    first = next(_split_lines(data), None)
    return first.payload if first else b""


def _split_sets(data: bytes) -> Iterator[RawRecord]:
    """Groups of (optional name line), line 1, line 2; other lines are torn records, `#` starts a comment."""
    number = 0
    group: list[RawRecord] = []
    for line in _split_lines(data):
        if line.payload.startswith(b"#"):
            continue
        if group and not _continues(group, line.payload):
            yield _set(number, group, is_torn=True)
            number, group = number + 1, []
        group.append(line)
        if _is_line(line.payload, b"2") and len(group) > 1:
            yield _set(number, group)
            number, group = number + 1, []
    if group:
        yield _set(number, group, is_torn=True)


def _cut_sets(data: bytes) -> CutRecords | None:
    """Sets of two lines each, or of three each, and nothing else; None: there is something else."""
    cut = _cut_lines(data)
    lines = cut.payloads
    if _follow(lines, 2):
        size = 2
    elif _follow(lines, 3) and not any(line.startswith((b"#", b"1 ", b"2 ")) for line in lines[::3]):
        size = 3
    else:
        return None
    payloads = [b"\n".join(group) for group in zip(*[iter(lines)] * size, strict=True)]
    count = len(payloads)
    return CutRecords(cut.numbers[:count], payloads, cut.received_time_ns[:count], cut.lines[::size], {})


def _follow(lines: Sequence[bytes], size: int) -> bool:
    """Whether the last two of each ``size`` lines are a line 1 and a line 2."""
    return len(lines) % size == 0 and all(
        line.startswith(begin) for begin, start in ((b"1 ", size - 2), (b"2 ", size - 1)) for line in lines[start::size]
    )


def _is_line(line: bytes, digit: bytes) -> bool:
    return line.startswith(digit + b" ")


def _continues(group: Sequence[RawRecord], line: bytes) -> bool:
    last = group[-1].payload
    if _is_line(last, b"2"):
        return False
    return _is_line(line, b"2" if _is_line(last, b"1") else b"1")


def _set(number: int, group: Sequence[RawRecord], *, is_torn: bool = False) -> RawRecord:
    payload, line = b"\n".join(each.payload for each in group), group[0].line
    if is_torn:
        return RawRecord(number, None, payload, "torn_record", "not a line 1 followed by its line 2", line)
    return RawRecord(number, None, payload, line=line)


def _pack(payloads: Sequence[bytes], received_time_ns: Sequence[int], header: bytes) -> bytes:
    del received_time_ns, header
    return b"".join(payload + b"\n" for payload in payloads)


def _pack_csv(payloads: Sequence[bytes], received_time_ns: Sequence[int], header: bytes) -> bytes:
    return _pack((header, *payloads), received_time_ns, header)


def _header_and_before(head: bytearray) -> bytes:
    """What every segment of a CSV begins with: the first line that is not blank, and what comes before it."""
    start = len(head) - len(head.lstrip())
    end = head.find(b"\n", start) + 1
    return bytes(head[:end]) if end <= len(head) // 2 else b""


def _after_line(buffer: bytearray, room: int) -> int:
    return buffer.rfind(b"\n", 0, room) + 1


def _after_set(buffer: bytearray, room: int) -> int:
    """Where a set of two or three lines ends: after a line 2, or (torn ones) before what can be no second line."""
    line_end = room
    while (line_end := buffer.rfind(b"\n", 0, line_end)) >= 0:
        line_start = buffer.rfind(b"\n", 0, line_end) + 1
        if buffer[line_start : line_start + 2] == b"2 " or buffer[line_end + 1] not in b"12# \t\r\n":
            return line_end + 1
    return 0


def _ends_a_line(tail: bytes) -> bool:
    return tail.endswith(b"\n")


LINES: Final = Framing(_split_lines, _pack, split_at(_after_line), _ends_a_line, cut=_cut_lines)
CSV: Final = Framing(
    _split_csv,
    _pack_csv,
    split_at(_after_line, _header_and_before),
    _ends_a_line,
    header=_csv_header,
    cut=_cut_csv,
)
LINE_SETS: Final = Framing(_split_sets, _pack, split_at(_after_set), _ends_a_line, cut=_cut_sets)
