"""Records that are the elements of a JSON array, each with the exact bytes it had; or one JSON value alone."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from sda_platform.formats.framing.json_document import JSON_SPACE, JsonDocument
from sda_platform.formats.records import Framing, RawRecord

_DECODER: Final = json.JSONDecoder()


def _split(data: bytes) -> Iterator[RawRecord]:
    """Elements of a JSON array (or one object), each with the exact bytes it had."""
    text = data.decode("utf-8", errors="surrogateescape")
    position = _skip_space(text, 0)
    if position == len(text):
        return
    is_array = text[position] == "["
    position, number = _skip_space(text, position + is_array), 0
    line, counted = 1, 0
    while not (is_array and text[position : position + 1] == "]"):
        line, counted = line + text.count("\n", counted, position), position
        try:
            end = _DECODER.raw_decode(text, position)[1]
        except (ValueError, RecursionError) as error:
            yield _rest(number, text, position, line, f"JSON array cannot be read from here on: {str(error)[:200]}")
            return
        yield RawRecord(number, None, _to_bytes(text[position:end]), line=line)
        number, position = number + 1, _skip_space(text, end)
        if not is_array:
            break
        following = text[position : position + 1]
        if following == ",":
            position = _skip_space(text, position + 1)
        elif following != "]":
            yield _rest(number, text, position, line, "JSON array is not closed after this element")
            return
    rest = _skip_space(text, position + is_array)
    if rest < len(text):
        yield _rest(number, text, rest, line, "unexpected text after the end of the JSON document")


def _rest(number: int, text: str, position: int, line: int, error: str) -> RawRecord:
    torn = position >= len(text)
    return RawRecord(number, None, _to_bytes(text[position:]), "torn_record" if torn else "bad_json", error, line)


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogateescape")


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in JSON_SPACE:
        position += 1
    return position


def _segments(chunks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    """Arrays of the elements of one array, each element with the bytes it had; then what is no element any more.

    A stream that fits into one segment is that segment, byte for byte.
    """
    rest, head = iter(chunks), bytearray()
    while len(head) <= max_bytes and (chunk := next(rest, None)) is not None:
        head += chunk
    if len(head) <= max_bytes:
        yield bytes(head)
        return
    document = JsonDocument(chain([bytes(head)], rest), max_bytes - len(b"[]"))
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


def _pack(payloads: Sequence[bytes], received_time_ns: Sequence[int], header: bytes) -> bytes:
    del received_time_ns, header
    return b"[" + b",\n".join(payloads) + b"]\n"


def _is_closed(tail: bytes) -> bool:
    return tail.rstrip()[-1:] in (b"]", b"}")


JSON_ARRAY: Final = Framing(_split, _pack, _segments, _is_closed)
