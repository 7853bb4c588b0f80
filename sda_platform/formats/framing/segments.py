"""Records that are parts of a message of many segments (OEM, TDM): each a whole message of its own.

A record repeats the message's header, so that it can be read, rejected and reprocessed alone: an ephemeris for each
segment of an OEM, a set of measurements at one time for each of a TDM. Every line of a record is as it came.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from sda_platform.formats.errors import RecordError
from sda_platform.formats.framing.line_numbers import LineNumbers
from sda_platform.formats.framing.messages import (
    KVN,
    PREFIX,
    message_spans,
    pack_kvn,
    pack_xml,
    split_kvn_stream,
    xml_elements,
)
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.records import Framing, RawRecord

# A stretch of the segment: the line on which it begins, and its bytes.
Piece = tuple[int, bytes]
# The stretches that make each record of a segment of a message, header first.
Divide = Callable[[Sequence[Piece]], Iterator[Sequence[Piece]]]

_META_START: Final = re.compile(rb"^[ \t]*META_START\b", re.MULTILINE)
_DATA: Final = re.compile(
    rb"^[ \t]*DATA_START[ \t]*$(?P<lines>.*?)^(?P<stop>[ \t]*DATA_STOP\b.*)", re.MULTILINE | re.DOTALL
)
_TIME_SYSTEM: Final = re.compile(rb"TIME_SYSTEM\s*[=>]\s*([\w-]+)")
_XML_SEGMENT: Final = re.compile(rb"<P:segment[\s>].*?</P:segment\s*>".replace(b"P:", PREFIX), re.DOTALL)
_XML_DATA: Final = re.compile(rb"<P:data\s*>(?P<content>.*)</P:data\s*>".replace(b"P:", PREFIX), re.DOTALL)
_XML_OBSERVATION: Final = re.compile(
    rb"(?:<P:COMMENT>(?:(?!<P:observation[\s>]).)*)?<P:observation[\s>].*?</P:observation\s*>".replace(b"P:", PREFIX),
    re.DOTALL,
)
_XML_BODY: Final = re.compile(rb"<P:body\s*>(?P<content>.*)</P:body\s*>".replace(b"P:", PREFIX), re.DOTALL)
_XML_REMARK: Final = re.compile(rb"<!--.*?-->", re.DOTALL)
_XML_EPOCH: Final = re.compile(rb"<P:EPOCH>\s*(\S+?)\s*</P:EPOCH\s*>".replace(b"P:", PREFIX))


def kvn_segments(divide: Divide) -> Framing:
    """Return the framing of KVN messages of many segments."""
    return Framing(partial(_split_kvn, divide), pack_kvn, split_kvn_stream, KVN.looks_ended)


def xml_segments(tag: str, divide: Divide) -> Framing:
    """Return the framing of XML messages of many segments: ``tag`` elements, alone or inside an ``ndm``."""
    whole = xml_elements(tag)
    return Framing(partial(_split_xml, whole, divide), pack_xml, whole.split_stream, whole.looks_ended)


def one_record(segment: Sequence[Piece]) -> Iterator[Sequence[Piece]]:
    """A segment is one record: an ephemeris."""
    yield segment


def kvn_observations(segment: Sequence[Piece]) -> Iterator[Sequence[Piece]]:
    """Yield the lines between DATA_START and DATA_STOP by their epoch, one record for each."""
    *before, (line, text) = segment
    data = _DATA.search(text)
    if data is None:
        yield segment
        return
    groups: dict[int | bytes, list[Piece]] = {}
    comments: list[Piece] = []
    numbers = LineNumbers(text, line)
    for number, content in enumerate(data["lines"].split(b"\n"), numbers.at(data.start("lines"))):
        if content.strip().startswith(b"COMMENT"):
            comments.append((number, content))
        elif content.strip():
            epoch = b"".join(content.partition(b"=")[2].split()[:1]) or content
            groups.setdefault(_instant(epoch), []).extend([*comments, (number, content)])
            comments = []
    start = (line, text[: data.start("lines")])
    stop = (numbers.at(data.start("stop")), data["stop"].strip())
    for lines in groups.values():
        yield [*before, start, *lines, stop]


def xml_observations(segment: Sequence[Piece]) -> Iterator[Sequence[Piece]]:
    """Yield the ``observation`` elements, with the comments before them, by their epoch, one record for each."""
    *before, (line, text), after = segment
    data = _XML_DATA.search(text)
    if data is None or not _XML_OBSERVATION.search(text, *data.span("content")):
        yield segment
        return
    numbers = LineNumbers(text, line)
    groups: dict[int | bytes, list[Piece]] = {}
    for begin, end in _parts(_XML_OBSERVATION, text, *data.span("content")):
        epoch = _XML_EPOCH.search(text, begin, end)
        piece = (numbers.at(begin), text[begin:end])
        groups.setdefault(_instant(epoch[1]) if epoch else piece[1], []).append(piece)
    start = (line, text[: data.start("content")])
    stop = (numbers.at(data.end("content")), text[data.end("content") :])
    for observations in groups.values():
        yield [*before, start, *observations, stop, after]


def _instant(epoch: bytes) -> int | bytes:
    """Return the instant that ``epoch`` states, so that its digits and its notation make no difference; else
    its text.
    """
    try:
        return parse_epoch_ns(epoch.decode("ascii", "replace"))
    except RecordError:
        return epoch


def _split_kvn(divide: Divide, data: bytes) -> Iterator[RawRecord]:
    number, numbers = 0, LineNumbers(data)
    for start, end in message_spans(data):
        starts = [found.start() for found in _META_START.finditer(data, start, end)]
        header = _piece(data, start, starts[0] if starts else end, numbers)
        segments = [_piece(data, first, last, numbers) for first, last in pairwise([*starts, end])]
        for parts, defect in _records([[header, each] for each in segments] or [[header]], divide):
            yield _record(number, parts, defect)
            number += 1


def _split_xml(whole: Framing, divide: Divide, data: bytes) -> Iterator[RawRecord]:
    number = 0
    for message in whole.split(data):
        text, line = message.payload, message.line
        body = None if message.error_kind else _XML_BODY.search(text)
        found = [] if body is None else list(_parts(_XML_SEGMENT, text, *body.span("content")))
        if not found:
            yield RawRecord(number, None, text, message.error_kind, message.error, line)
            number += 1
            continue
        numbers = LineNumbers(text, line)
        header = _piece(text, 0, found[0][0], numbers)
        own = [_piece(text, *span, numbers) for span in found]
        after = _piece(text, found[-1][1], len(text), numbers)
        for parts, defect in _records([[header, each, after] for each in own], divide):
            yield _record(number, parts, defect)
            number += 1


def _parts(element: re.Pattern[bytes], text: bytes, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the elements are in ``text`` from ``begin`` to ``end``, and what is none, in order; comments are left out.

    What is no element is a record too, and a faulty one: nothing between elements is lost.
    """
    for found in element.finditer(text, begin, end):
        yield from _rest(text, begin, found.start())
        yield found.span()
        begin = found.end()
    yield from _rest(text, begin, end)


def _rest(text: bytes, begin: int, end: int) -> Iterator[tuple[int, int]]:
    if _XML_REMARK.sub(b"", text[begin:end]).strip():
        yield begin, end


def _records(segments: Sequence[Sequence[Piece]], divide: Divide) -> Iterator[tuple[Sequence[Piece], str | None]]:
    """Yield the records of the segments of one message, whose time system must be that of the first segment."""
    first = _time_system(segments[0])
    for segment in segments:
        own = _time_system(segment)
        defect = None if own == first else f"TIME_SYSTEM is {own}, that of the message's first segment is {first}"
        for parts in divide(segment):
            yield parts, defect


def _time_system(segment: Sequence[Piece]) -> str:
    found = _TIME_SYSTEM.search(segment[min(1, len(segment) - 1)][1])
    return found[1].decode("ascii", "replace") if found else ""


def _piece(data: bytes, start: int, end: int, numbers: LineNumbers) -> Piece:
    text = data[start:end]
    return numbers.at(start + len(text) - len(text.lstrip())), text.strip()


def _record(number: int, parts: Sequence[Piece], defect: str | None) -> RawRecord:
    """One record of these stretches, a line after the other."""
    pieces, line = [], 1
    for in_segment, text in parts:
        pieces.append((line, in_segment))
        line += text.count(b"\n") + 1
    payload = b"\n".join(text for _, text in parts)
    # The line of what is the record's own: its first measurement, else its segment.
    own = parts[2 if len(parts) > 3 else min(1, len(parts) - 1)][0]
    return RawRecord(number, None, payload, "bad_field" if defect else None, defect, own, pieces=tuple(pieces))
