"""Cutting a segment into records, and packing records into a segment.

Knows where a record begins and ends in each segment format, not what it means. The cut never raises and never
loses a byte of a record: what cannot be cut becomes one last record that carries its error.

Container of `radar-frames` and `isl-frames`, repeated to the end of the segment, little-endian:
u32 payload length (at most 65,536), u64 received time (ns since the Unix epoch, UTC), payload.
"""

import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sda_platform.formats.errors import ErrorKind

FEED_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "radar": ("radar-frames",),
    "isl": ("isl-frames",),
    "optical": ("optical-jsonl",),
    "elements": ("omm-csv", "omm-json", "tle"),
    "messages": ("cdm-kvn", "cdm-xml"),
}
"""The landing feeds, and the segment formats each may carry."""

MAX_PAYLOAD_BYTES: Final = 65_536
RECORD_HEADER: Final = struct.Struct("<IQ")
MAX_TIME_NS: Final = 2**63 - 1
_JSON_SPACE: Final = " \t\r\n"
BLANK: Final = b" \t\r"


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as landed; `number` counts from 0 in its segment, `error` says why it could not be cut."""

    number: int
    received_time_ns: int | None
    payload: bytes
    error_kind: ErrorKind | None = None
    error: str | None = None


def split_records(data: bytes, segment_format: str) -> Iterator[RawRecord]:
    """Every record of a segment in order; a torn tail or an unknown format is one faulty record."""
    splitter = _SPLITTERS.get(segment_format)
    if splitter is None:
        known = ", ".join(sorted(_SPLITTERS))
        return iter([RawRecord(0, None, data, "unknown_format", f"format {segment_format!r} is none of {known}")])
    return splitter(data)


def pack_records(payloads: Iterable[bytes], received_time_ns: Iterable[int]) -> bytes:
    """The `radar-frames` / `isl-frames` container; raises ValueError when the two lengths differ."""
    parts: list[bytes] = []
    for payload, received in zip(payloads, received_time_ns, strict=True):
        parts += (RECORD_HEADER.pack(len(payload), received), payload)
    return b"".join(parts)


def _split_container(data: bytes) -> Iterator[RawRecord]:
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


def _split_lines(data: bytes) -> Iterator[RawRecord]:
    number = 0
    for line in data.split(b"\n"):
        payload = line.strip(BLANK)
        if payload:
            yield RawRecord(number, None, payload)
            number += 1


def _split_csv(data: bytes) -> Iterator[RawRecord]:
    """Lines after the header line: a record is one line, so a quoted field holds no line break."""
    lines = _split_lines(data)
    next(lines, None)
    for record in lines:
        yield RawRecord(record.number - 1, None, record.payload)


def csv_header(data: bytes) -> bytes:
    """The first non-blank line of a CSV segment, empty if there is none."""
    first = next(_split_lines(data), None)
    return first.payload if first else b""


def _split_json(data: bytes) -> Iterator[RawRecord]:
    """Elements of a JSON array (or one object), each with the exact bytes it had."""
    text = data.decode("utf-8", errors="surrogateescape")
    position = _skip_space(text, 0)
    if position == len(text):
        return
    is_array = text[position] == "["
    position, number = _skip_space(text, position + is_array), 0
    while not (is_array and text[position : position + 1] == "]"):
        try:
            end = _JSON.raw_decode(text, position)[1]
        except (ValueError, RecursionError) as error:
            yield _json_rest(number, text, position, f"JSON array cannot be read from here on: {_short(error)}")
            return
        yield RawRecord(number, None, _to_bytes(text[position:end]))
        number, position = number + 1, _skip_space(text, end)
        if not is_array:
            break
        following = text[position : position + 1]
        if following == ",":
            position = _skip_space(text, position + 1)
        elif following != "]":
            yield _json_rest(number, text, position, "JSON array is not closed after this element")
            return
    rest = _skip_space(text, position + is_array)
    if rest < len(text):
        yield _json_rest(number, text, rest, "unexpected text after the end of the JSON document")


_JSON: Final = json.JSONDecoder()


def _json_rest(number: int, text: str, position: int, error: str) -> RawRecord:
    torn = position >= len(text)
    return RawRecord(number, None, _to_bytes(text[position:]), "torn_record" if torn else "bad_json", error)


def _short(error: BaseException) -> str:
    return str(error)[:200]


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogateescape")


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _JSON_SPACE:
        position += 1
    return position


def _split_tle(data: bytes) -> Iterator[RawRecord]:
    """Groups of (optional name line), line 1, line 2; other lines are torn records, `#` starts a comment."""
    number = 0
    group: list[bytes] = []
    for record in _split_lines(data):
        line = record.payload
        if line.startswith(b"#"):
            continue
        if group and not _continues(group, line):
            yield _torn_group(number, group)
            number, group = number + 1, []
        group.append(line)
        if _is_line(group[-1], b"2") and len(group) > 1:
            yield RawRecord(number, None, b"\n".join(group))
            number, group = number + 1, []
    if group:
        yield _torn_group(number, group)


def _is_line(line: bytes, digit: bytes) -> bool:
    return line.startswith(digit + b" ")


def _continues(group: list[bytes], line: bytes) -> bool:
    last_is_first_line = _is_line(group[-1], b"1")
    if _is_line(group[-1], b"2"):
        return False
    return _is_line(line, b"2") if last_is_first_line else _is_line(line, b"1")


def _torn_group(number: int, group: list[bytes]) -> RawRecord:
    return RawRecord(number, None, b"\n".join(group), "torn_record", "not a line 1 followed by its line 2")


# Where a message in KVN begins: at the line of its version.
KVN_BEGINNING: Final = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t]*CCSDS_\w+_VERS\b", re.MULTILINE)
_XML_PARTS: Final = re.compile(
    rb"(?P<around>\s+|\xef\xbb\xbf|<\?.*?\?>|<!--.*?-->|</?ndm\b[^>]*>)"
    rb"|(?P<message><cdm[\s>].*?</cdm\s*>)"
    rb"|(?P<torn><cdm[\s>].*)"
    rb"|(?P<other>.+?(?=<cdm[\s>]|</ndm\b|\Z))",
    re.DOTALL,
)


def _split_kvn(data: bytes) -> Iterator[RawRecord]:
    """Messages as text of keywords and values; what comes before the first one's version is its own."""
    begins = [found.start() for found in KVN_BEGINNING.finditer(data)][1:]
    messages = (data[start:end].strip() for start, end in pairwise([0, *begins, len(data)]))
    yield from (RawRecord(number, None, message) for number, message in enumerate(filter(None, messages)))


def _split_xml(data: bytes) -> Iterator[RawRecord]:
    """The ``cdm`` elements, each with the exact bytes it had; what is no such element and no wrapping is faulty."""
    parts = (part for part in _XML_PARTS.finditer(data) if part.lastgroup != "around")
    for number, part in enumerate(parts):
        payload = part.group().strip()
        if part.lastgroup == "message":
            yield RawRecord(number, None, payload)
        elif part.lastgroup == "torn":
            yield RawRecord(number, None, payload, "torn_record", "the message ends before its closing </cdm>")
        else:
            yield RawRecord(number, None, payload, "unknown_format", "is no <cdm> element")


_SPLITTERS: Final[Mapping[str, Callable[[bytes], Iterator[RawRecord]]]] = {
    "radar-frames": _split_container,
    "isl-frames": _split_container,
    "optical-jsonl": _split_lines,
    "omm-csv": _split_csv,
    "omm-json": _split_json,
    "tle": _split_tle,
    "cdm-kvn": _split_kvn,
    "cdm-xml": _split_xml,
}
