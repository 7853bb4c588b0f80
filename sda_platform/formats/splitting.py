"""Cutting a stream of any length into segments at record boundaries, holding no more than one segment.

What `records.split_records` finds in the segments, one after the other, is what it finds in the whole stream. A stretch
without a boundary that is longer than a segment (a line without an end, a document that breaks off) is cut where the
segment is full: no byte of it is lost, and its pieces fail as records.
"""

import codecs
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final

from sda_platform.formats.records import KVN_BEGINNING, MAX_PAYLOAD_BYTES, RECORD_HEADER

_LINES: Final = frozenset({"optical-jsonl", "omm-csv", "tle"})
_JSON_SPACE: Final = " \t\r\n"
_AFTER_ELEMENT: Final = frozenset(_JSON_SPACE + ",]")
_JSON: Final = json.JSONDecoder()

# The end of the last whole record within the first bytes of a buffer, 0 where there is none.
Boundary = Callable[[bytearray, int], int]


def split_stream(chunks: Iterable[bytes], segment_format: str, max_bytes: int) -> Iterator[bytes]:
    """The stream as segments of at most ``max_bytes``, equal for equal content however it is chunked.

    A stream that fits into one segment is that segment, byte for byte.
    """
    rest = iter(chunks)
    head = bytearray()
    for chunk in rest:
        head += chunk
        if len(head) > max_bytes:
            break
    if len(head) <= max_bytes:
        yield bytes(head)
        return
    if segment_format == "omm-json":
        yield from _split_json(chain([bytes(head)], rest), max_bytes)
        return
    prefix = _header(head) if segment_format == "omm-csv" else b""
    del head[: len(prefix)]
    yield from _split(head, rest, prefix, max_bytes - len(prefix), _BOUNDARIES.get(segment_format, _after_line))


def looks_ended(tail: bytes, segment_format: str) -> bool:
    """Whether a stream that ends with ``tail`` may be complete: its last line or its document is closed."""
    if segment_format == "omm-json":
        return tail.rstrip()[-1:] in (b"]", b"}")
    if segment_format == "cdm-xml":
        return tail.rstrip()[-1:] == b">"
    if segment_format == "cdm-kvn":  # many writers end with the last covariance's unit, without a line feed
        return tail.rstrip(b" \t")[-1:] in (b"\n", b"]")
    return segment_format not in _LINES or tail.endswith(b"\n")


def _split(buffer: bytearray, chunks: Iterable[bytes], prefix: bytes, room: int, boundary: Boundary) -> Iterator[bytes]:
    for chunk in chain([b""], chunks):
        buffer += chunk
        while len(buffer) > room:
            end = boundary(buffer, room) or room
            yield prefix + buffer[:end]
            del buffer[:end]
    if buffer:
        yield prefix + buffer


def _header(head: bytearray) -> bytes:
    """What every segment of a CSV begins with: the first line that is not blank, and what comes before it."""
    start = len(head) - len(head.lstrip())
    end = head.find(b"\n", start) + 1
    return bytes(head[:end]) if end <= len(head) // 2 else b""


def _after_line(buffer: bytearray, room: int) -> int:
    return buffer.rfind(b"\n", 0, room) + 1


def _after_element_set(buffer: bytearray, room: int) -> int:
    """Where a set of two or three lines ends: after a line 2, or (torn ones) before what can be no second line."""
    line_end = room
    while (line_end := buffer.rfind(b"\n", 0, line_end)) >= 0:
        line_start = buffer.rfind(b"\n", 0, line_end) + 1
        if buffer[line_start : line_start + 2] == b"2 " or buffer[line_end + 1] not in b"12# \t\r\n":
            return line_end + 1
    return 0


def _after_frame(buffer: bytearray, room: int) -> int:
    end = 0
    while end + RECORD_HEADER.size <= room:
        length = RECORD_HEADER.unpack_from(buffer, end)[0]
        following = end + RECORD_HEADER.size + length
        if length > MAX_PAYLOAD_BYTES or following > room:
            break
        end = following
    return end


def _after_kvn_message(buffer: bytearray, room: int) -> int:
    """Where the last message begins whose version is seen whole."""
    begins = [found.start() for found in KVN_BEGINNING.finditer(buffer, 0, room)]
    return begins[-1] if begins else 0


def _after_xml_message(buffer: bytearray, room: int) -> int:
    end = buffer.rfind(b"</cdm>", 0, room)
    return end + len(b"</cdm>") if end >= 0 else 0


_BOUNDARIES: Final = {
    "tle": _after_element_set,
    "radar-frames": _after_frame,
    "isl-frames": _after_frame,
    "cdm-kvn": _after_kvn_message,
    "cdm-xml": _after_xml_message,
}


def _split_json(chunks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    """Arrays of the elements of one array, each element with the bytes it had; then what is no element any more."""
    document = _Document(chunks, max_bytes - len(b"[]"))
    elements: list[bytes] = []
    size = 0
    for element in document.elements():
        if elements and size + len(element) > max_bytes - len(b"[]"):
            yield b"[" + b",".join(elements) + b"]"
            elements, size = [], 0
        elements.append(element)
        size += len(element) + len(b",")
    if elements:
        yield b"[" + b",".join(elements) + b"]"
    yield from document.rest(max_bytes)


class _Document:
    """A JSON document that is read as far as it is asked for; elements are at most ``limit`` bytes."""

    def __init__(self, chunks: Iterable[bytes], limit: int) -> None:
        self._chunks = iter(chunks)
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._text, self._at = "", 0
        self._limit = limit
        self._has_more = True
        self._is_closed = False

    def elements(self) -> Iterator[bytes]:
        """The elements of the array (or the one document that is none), up to what cannot be read."""
        is_array = self._took("[")
        while not (is_array and self._took("]")):
            element = self._element()
            if element is None:
                return
            yield element
            if not is_array:
                break
            if not self._took(",") and self._next() != "]":
                return
        self._is_closed = True

    def rest(self, max_bytes: int) -> Iterator[bytes]:
        """What follows the last element, in pieces; nothing where the document is closed and only blanks follow."""
        if not self._next():
            if not self._is_closed:
                yield b"["  # fails as a document that breaks off
            return
        rest = b""
        while self._text or self._read(max_bytes):
            rest += self._text[self._at :].encode("utf-8", "surrogateescape")
            self._text, self._at = "", 0
            while len(rest) > max_bytes:
                yield rest[:max_bytes]
                rest = rest[max_bytes:]
        yield rest

    def _element(self) -> bytes | None:
        """The element that comes next, taken; None where it cannot be read, is too long, or the document ends."""
        self._next()
        while True:
            length = len(self._text) - self._at
            try:
                end = _JSON.raw_decode(self._text, self._at)[1]
                if self._text[end : end + 1] in _AFTER_ELEMENT or not self._has_more or length > self._limit:
                    break  # else it may be the beginning of a number
            except (ValueError, RecursionError):
                if not self._has_more or length > self._limit:
                    return None
            self._read(2 * length)
        element = self._text[self._at : end].encode("utf-8", "surrogateescape")
        if len(element) > self._limit:
            return None
        self._at = end
        return element

    def _took(self, character: str) -> bool:
        """Whether ``character`` comes next; it is taken."""
        found = self._next() == character
        self._at += found
        return found

    def _next(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _JSON_SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._read(1):
                return ""

    def _read(self, length: int) -> bool:
        """Have at least ``length`` characters ahead; False where nothing comes any more."""
        parts = [self._text[self._at :]]
        before = size = len(parts[0])
        while self._has_more and size < length:
            chunk = next(self._chunks, None)
            self._has_more = chunk is not None
            parts.append(self._decoder.decode(chunk or b"", final=chunk is None))
            size += len(parts[-1])
        self._text, self._at = "".join(parts), 0
        return size > before
