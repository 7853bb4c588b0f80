"""Lines under a first line that states what their columns mean, and under what the file has before its first record.

That first line is of the platform, so lines are counted without it: as in the file that was sent. Everything before the
first record, with the mapping, is the header of the segment.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sda_platform.formats.errors import RecordError
from sda_platform.formats.framing.streams import split_at
from sda_platform.formats.records import Framing, RawRecord

PREFIX: Final = b"# mapping: "
_BLANK: Final = b" \t\r\n"
_LONGEST_HEAD_BYTES: Final = 2**20


@dataclass(frozen=True, slots=True)
class LinesBefore:
    """What is before the first record: its length in bytes, its number of lines, and the last of them, the header."""

    length: int
    lines: int
    last: bytes


@dataclass(frozen=True, slots=True)
class MappedHead:
    """The header of a segment: the mapping as JSON, the line with the names of columns, its length and its lines."""

    mapping: bytes
    columns: bytes
    comment: bytes
    length: int
    lines: int


def lines_before(text: bytes, skip_lines: int, comment: str, *, has_header: bool) -> LinesBefore:
    """Return what precedes the first record of ``text``: lines to be skipped, and a header."""
    at = lines = 0
    last = b""
    for _ in range(min(skip_lines, len(text))):
        at, lines = _after(text, at), lines + 1
    while has_header and at < len(text) and not last:
        after = _after(text, at)
        line = text[at:after].strip(b"\r\n")
        if not _is_left_out(line, comment.encode()):
            last = line
        at, lines = after, lines + 1
    return LinesBefore(at, lines, last)


def head_of(data: bytes) -> MappedHead:
    """Return the header that ``data``, text with line feeds, begins with. Raises RecordError where there is none."""
    data = data[:_LONGEST_HEAD_BYTES]
    begin = len(data) - len(data.lstrip(_BLANK))
    first = _after(data, begin)
    line = data[begin:first].strip(_BLANK)
    if not line.startswith(PREFIX):
        raise RecordError("missing_field", "no mapping of its columns landed with the file: land it with one")
    mapping = line.removeprefix(PREFIX)
    try:
        options = json.loads(mapping)
        skipped, comment, has_header = options["skip_lines"], options["comment"], options["header"]
        before, mark = lines_before(data[first:], int(skipped), comment, has_header=bool(has_header)), comment.encode()
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
        raise RecordError("bad_json", "the mapping of its columns is none") from None
    length = first + before.length
    return MappedHead(mapping, before.last, mark, length, data[:length].count(b"\n") - 1)


def _split(data: bytes) -> Iterator[RawRecord]:
    if not data.strip(_BLANK):
        return
    try:
        head = head_of(data)
    except RecordError as error:
        yield RawRecord(0, None, data, error.kind, error.text, line=1)
        return
    header, number = data[: head.length].strip(_BLANK), 0
    for line, text in enumerate(data[head.length :].split(b"\n"), head.lines + 1):
        payload = text.strip(b"\r")
        if not _is_left_out(payload, head.comment) and (not head.columns or payload != head.columns):
            yield RawRecord(number, None, payload, line=line, header=header)
            number += 1


def _is_left_out(line: bytes, comment: bytes) -> bool:
    return not line.strip(_BLANK) or (bool(comment) and line.lstrip(_BLANK).startswith(comment))


def _after(text: bytes, at: int) -> int:
    return (text.find(b"\n", at) + 1) or len(text)


def _header(data: bytes) -> bytes:
    try:
        return data[: head_of(data).length].strip(_BLANK)
    except RecordError:
        return b""


def _pack(payloads: Sequence[bytes], received_time_ns: Sequence[int], header: bytes) -> bytes:
    del received_time_ns
    return b"".join(line + b"\n" for line in (header, *payloads))


def _prefix_of(head: bytearray) -> bytes:
    try:
        end = head_of(bytes(head)).length
    except RecordError:
        return b""
    return bytes(head[:end]) if end <= len(head) // 2 else b""


MAPPED_LINES: Final = Framing(
    _split,
    _pack,
    split_at(lambda buffer, room: buffer.rfind(b"\n", 0, room) + 1, _prefix_of),
    lambda tail: tail.endswith(b"\n"),
    header=_header,
)
