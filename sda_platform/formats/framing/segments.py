"""Records that are parts of a message of many segments (OEM, TDM): each a whole message of its own.

A record repeats the message's header, so that it can be read, rejected and reprocessed alone: an ephemeris for each
segment of an OEM, a set of measurements at one time for each of a TDM. Every line of a record is as it came.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from sda_platform.formats.errors import RecordError
from sda_platform.formats.framing.line_numbers import LineNumbers
from sda_platform.formats.framing.marks import Marks
from sda_platform.formats.framing.messages import (
    KVN,
    PREFIX,
    REMARK,
    REMARK_END,
    closing,
    message_spans,
    opening,
    pack_kvn,
    pack_xml,
    split_kvn_stream,
    xml_elements,
)
from sda_platform.formats.framing.repeated import Repetition
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.records import Framing, RawRecord

# A stretch of the segment: the line on which it begins, and its bytes.
Piece = tuple[int, bytes]
# The stretches of a record, and what is wrong with it.
Record = tuple[Sequence[Piece], str | None]
# The stretches that make each record of a segment of a message, header first.
Divide = Callable[[Sequence[Piece]], Iterator[Sequence[Piece]]]

_META_START: Final = re.compile(rb"^[ \t]*META_START\b", re.MULTILINE)
_DATA_START: Final = re.compile(rb"^[ \t]*DATA_START[ \t]*$", re.MULTILINE)
_DATA_STOP: Final = re.compile(rb"^[ \t]*DATA_STOP\b", re.MULTILINE)
_TIME_SYSTEM: Final = re.compile(rb"TIME_SYSTEM\s*[=>]\s*([\w-]+)")
_COMMENT: Final = re.compile(rb"<%bCOMMENT>" % PREFIX)
_XML_EPOCH: Final = re.compile(rb"<P:EPOCH>\s*([^\s<]+)\s*</P:EPOCH\s*>".replace(b"P:", PREFIX))
_XML_BODY, _XML_DATA = (
    (re.compile(rb"<%b%b\s*>" % (PREFIX, tag)), closing(tag.decode())) for tag in (b"body", b"data")
)
_XML_SEGMENT, _XML_OBSERVATION = ((opening(tag), closing(tag)) for tag in ("segment", "observation"))
# How an element begins and ends.
Element = tuple[re.Pattern[bytes], re.Pattern[bytes]]
Span = tuple[int, int]


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
    marks = Marks(text)
    starts = marks.next(_DATA_START, 0)
    stops = marks.next(_DATA_STOP, starts[1]) if starts else None
    if not starts or not stops:
        yield segment
        return
    groups: dict[int | bytes, list[Piece]] = {}
    comments: list[Piece] = []
    numbers = LineNumbers(text, line)
    for number, content in enumerate(text[starts[1] : stops[0]].split(b"\n"), numbers.at(starts[1])):
        if content.strip().startswith(b"COMMENT"):
            comments.append((number, content))
        elif content.strip():
            epoch = b"".join(content.partition(b"=")[2].split()[:1]) or content
            groups.setdefault(_instant(epoch), []).extend([*comments, (number, content)])
            comments = []
    start = (line, text[: starts[1]])
    stop = (numbers.at(stops[0]), text[stops[0] :].strip())
    for lines in groups.values():
        yield [*before, start, *lines, stop]


def xml_observations(segment: Sequence[Piece]) -> Iterator[Sequence[Piece]]:
    """Yield the ``observation`` elements, with the comments before them, by their epoch, one record for each."""
    *before, (line, text), after = segment
    data = _content(text, _XML_DATA)
    found = list(_observations(text, *data)) if data else []
    if not data or not found:
        yield segment
        return
    numbers = LineNumbers(text, line)
    groups: dict[int | bytes, list[Piece]] = {}
    for begin, end in _parts(found, text, *data):
        epoch = _XML_EPOCH.search(text, begin, end)
        piece = (numbers.at(begin), text[begin:end])
        groups.setdefault(_instant(epoch[1]) if epoch else piece[1], []).append(piece)
    start = (line, text[: data[0]])
    stop = (numbers.at(data[1]), text[data[1] :])
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
    number, numbers, repetition = 0, LineNumbers(data), Repetition(len(data))
    for start, end in message_spans(data):
        starts = [found.start() for found in _META_START.finditer(data, start, end)]
        header = _piece(data, start, starts[0] if starts else end, numbers)
        segments = [_piece(data, first, last, numbers) for first, last in pairwise([*starts, end])]
        records = list(_records([[header, each] for each in segments] or [[header]], divide))
        if reason := _excess(records, repetition):
            records = [([(header[0], data[start:end])], reason)]
        for parts, defect in records:
            yield _record(number, parts, defect)
            number += 1


def _split_xml(whole: Framing, divide: Divide, data: bytes) -> Iterator[RawRecord]:
    number, repetition = 0, Repetition(len(data))
    for message in whole.split(data):
        text, line = message.payload, message.line
        body = None if message.error_kind else _content(text, _XML_BODY)
        found = list(_parts(_elements(text, _XML_SEGMENT, *body), text, *body)) if body else []
        if not found:
            yield RawRecord(number, None, text, message.error_kind, message.error, line)
            number += 1
            continue
        numbers = LineNumbers(text, line)
        header = _piece(text, 0, found[0][0], numbers)
        own = [_piece(text, *span, numbers) for span in found]
        after = _piece(text, found[-1][1], len(text), numbers)
        records = list(_records([[header, each, after] for each in own], divide))
        if reason := _excess(records, repetition):
            records = [([(line, text)], reason)]
        for parts, defect in records:
            yield _record(number, parts, defect)
            number += 1


def _content(text: bytes, element: Element) -> Span | None:
    """Return where the content of the one ``element`` is, from its first beginning to its last end; None: it is not
    there whole.
    """
    marks, (opens, closes) = Marks(text), element
    begin = marks.next(opens, 0)
    end = marks.last(closes, begin[1]) if begin else None
    return (begin[1], end[0]) if begin and end else None


def _elements(text: bytes, element: Element, begin: int, end: int) -> Iterator[Span]:
    """Where each whole ``element`` is in ``text`` from ``begin`` to ``end``."""
    marks, (opens, closes) = Marks(text, end), element
    while (first := marks.next(opens, begin)) and (last := marks.next(closes, first[1])):
        yield first[0], last[1]
        begin = last[1]


def _observations(text: bytes, begin: int, end: int) -> Iterator[Span]:
    """Where each ``observation`` is, from the first comment after the one before."""
    comments = Marks(text, end)
    for first, last in _elements(text, _XML_OBSERVATION, begin, end):
        comment = comments.next(_COMMENT, begin)
        yield min(first, comment[0] if comment else first), last
        begin = last


def _parts(elements: Iterable[Span], text: bytes, begin: int, end: int) -> Iterator[Span]:
    """Where the ``elements`` are in ``text`` from ``begin`` to ``end``, and what is none, in order; remarks are left
    out.

    What is no element is a record too, and a faulty one: nothing between elements is lost.
    """
    for first, last in elements:
        yield from _rest(text, begin, first)
        yield first, last
        begin = last
    yield from _rest(text, begin, end)


def _rest(text: bytes, begin: int, end: int) -> Iterator[Span]:
    """Where something is from ``begin`` to ``end``, unless it is only blanks and remarks."""
    marks, at = Marks(text, end), begin
    while (remark := marks.next(REMARK, at)) and not text[at : remark[0]].strip():
        closed = marks.next(REMARK_END, remark[1])
        if not closed:
            break
        at = closed[1]
    if text[at:end].strip():
        yield begin, end


def _excess(records: Sequence[Record], repetition: Repetition) -> str | None:
    """Return the reason where ``records`` would hold too much."""
    pieces = [text for parts, _ in records for _, text in parts]
    return repetition.excess(sum(map(len, pieces)), len(pieces))


def _records(segments: Sequence[Sequence[Piece]], divide: Divide) -> Iterator[Record]:
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
