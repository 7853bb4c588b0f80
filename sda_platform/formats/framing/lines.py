"""Records that are lines: alone, under the header line of a CSV, or in sets of two or three (element sets)."""

import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Final

import numpy as np

from sda_platform.formats.framing.line_spans import BLANK, LineSpans, Positions, line_spans
from sda_platform.formats.framing.streams import split_at
from sda_platform.formats.records import NOT_STAMPED, CutRecords, Framing, RawRecord

_FIRST_LINE: Final = re.compile(rb"[^ \t\r\n][^\n]*")
# Lines 1 and 2 of a set have the number of the object in columns 3 to 7. A name may begin like them: 1 WEB SAT.
_NUMBERED: Final = re.compile(
    rb"(?:1 (?=.{0,4}\d)[ A-Za-z\d][ \d]{4}[A-Za-z ]|2 (?=.{0,4}\d)[ A-Za-z\d][ \d]{4})(?: |\Z)"
)
_LONGEST_NAME: Final = 40
_BLANK_OR_END: Final = BLANK + b"\n"


def _split_lines(data: bytes) -> Iterator[RawRecord]:
    number = 0
    for line, content in enumerate(BytesIO(data), 1):
        payload = content.strip(_BLANK_OR_END)
        if payload:
            yield RawRecord(number, None, payload, line=line)
            number += 1


def _cut_lines(data: bytes) -> CutRecords:
    texts = [line.strip(BLANK) for line in data.split(b"\n")]
    return _cut(list(filter(None, texts)), np.flatnonzero(list(map(len, texts))) + 1)


def _count_lines(data: bytes) -> int:
    return sum(1 for line in data.split(b"\n") if line.strip(BLANK))


def _cut(payloads: list[bytes], lines: Positions) -> CutRecords:
    count = len(payloads)
    return CutRecords(np.arange(count), payloads, np.full(count, NOT_STAMPED, np.int64), lines, {})


def _split_csv(data: bytes) -> Iterator[RawRecord]:
    """Lines after the header line: a record is one line, so a quoted field holds no line break."""
    lines = _split_lines(data)
    header = next(lines, None)
    if header:
        for record in lines:
            yield RawRecord(record.number - 1, None, record.payload, line=record.line, header=header.payload)


def _cut_csv(data: bytes) -> CutRecords:
    lines = line_spans(data)
    return _cut(lines.texts()[1:], lines.numbers[1:])


def _csv_header(data: bytes) -> bytes:
    """Return the first non-blank line of a CSV segment, empty if there is none."""
    first = _FIRST_LINE.search(data)
    return first[0].strip(BLANK) if first else b""


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
    lines = line_spans(data)
    size = _lines_of_a_set(lines)
    if size is None:
        return None
    begins, ends = lines.begins.reshape(-1, size), lines.ends.reshape(-1, size)
    payloads = [lines.data[begin:end] for begin, end in zip(begins[:, 0].tolist(), ends[:, -1].tolist(), strict=True)]
    has_blanks = (ends[:, :-1] + 1 < begins[:, 1:]).any(axis=1)
    texts = lines.texts() if has_blanks.any() else []
    for row in np.flatnonzero(has_blanks).tolist():
        payloads[row] = b"\n".join(texts[size * row : size * (row + 1)])
    return _cut(payloads, lines.numbers[::size])


def _lines_of_a_set(lines: LineSpans) -> int | None:
    """2 or 3 where every so many lines are a set; None: they are not."""
    first, second = lines.begin_with(b"1 "), lines.begin_with(b"2 ")
    is_long = lines.ends - lines.begins > _LONGEST_NAME
    for size in (2, 3):
        ones, twos = (slice(size - digit, None, size) for digit in (2, 1))
        if len(first) % size == 0 and (first & is_long)[ones].all() and (second & is_long)[twos].all():
            names = (first | second | lines.begin_with(b"#"))[::size]
            return size if size == 2 or not names.any() else None
    return None


def _is_line(line: bytes, digit: bytes) -> bool:
    """Return whether it is line 1 or 2 of a set, by ``digit``: it is too long for a name, or has an object's number."""
    return line.startswith(digit + b" ") and (len(line) > _LONGEST_NAME or _NUMBERED.match(line) is not None)


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
    """Return what every segment of a CSV begins with: the first line that is not blank, and what comes before it."""
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
        line = bytes(buffer[line_start:line_end]).strip(BLANK)
        if _is_line(line, b"2") or buffer[line_end + 1] not in b"12# \t\r\n":
            return line_end + 1
    return 0


def _ends_a_line(tail: bytes) -> bool:
    return tail.endswith(b"\n")


LINES: Final = Framing(_split_lines, _pack, split_at(_after_line), _ends_a_line, cut=_cut_lines, count=_count_lines)
CSV: Final = Framing(
    _split_csv,
    _pack_csv,
    split_at(_after_line, _header_and_before),
    _ends_a_line,
    header=_csv_header,
    cut=_cut_csv,
)
LINE_SETS: Final = Framing(_split_sets, _pack, split_at(_after_set), _ends_a_line, cut=_cut_sets)
