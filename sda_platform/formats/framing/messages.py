"""Records that are navigation data messages: in KVN from version to version, in XML element by element."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from sda_platform.formats.errors import ErrorKind
from sda_platform.formats.framing.line_numbers import LineNumbers
from sda_platform.formats.framing.marks import Marks
from sda_platform.formats.framing.streams import split_at
from sda_platform.formats.records import Framing, RawRecord

# Where a message in KVN begins: at the line of its version.
_BEGINNING: Final = re.compile(rb"^[ \t]*CCSDS_\w+_VERS\b", re.MULTILINE)


PREFIX: Final = rb"(?:[A-Za-z_][\w.-]*:)?"
"""The prefix of a namespace that the name of any element may have (505.0-B-3, 4.3.5)."""
REMARK: Final = re.compile(rb"<!--")
REMARK_END: Final = re.compile(rb"-->")
_WRAPPING: Final = re.compile(rb"\s+|(?P<instruction><\?)|(?P<remark><!--)|(?P<ndm></?%bndm(?=[\s>/]))" % PREFIX)
_CLOSING: Final = {"instruction": re.compile(rb"\?>"), "remark": REMARK_END, "ndm": re.compile(rb">")}
"""What ends each of these."""
_NDM: Final = re.compile(rb"</%bndm[\s>]" % PREFIX)


def message_spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Begin and end of each message in KVN, without the blanks around it.

    What comes before the first one's version is its own.
    """
    begins = [found.start() for found in _BEGINNING.finditer(data)][1:]
    for start, end in pairwise([0, *begins, len(data)]):
        text = data[start:end]
        first = start + len(text) - len(text.lstrip())
        last = start + len(text.rstrip())
        if first < last:
            yield first, last


def _split_kvn(data: bytes) -> Iterator[RawRecord]:
    lines = LineNumbers(data)
    for number, (start, end) in enumerate(message_spans(data)):
        yield RawRecord(number, None, data[start:end], line=lines.at(start))


def pack_kvn(payloads: Sequence[bytes], received_time_ns: Sequence[int], header: bytes) -> bytes:
    """Join messages in KVN, one after the other."""
    del received_time_ns, header
    return b"".join(payload + b"\n" for payload in payloads)


def _after_kvn_message(buffer: bytearray, room: int) -> int:
    """Where the last message begins whose version is seen whole."""
    begins = [found.start() for found in _BEGINNING.finditer(buffer, 0, room)]
    return begins[-1] if begins else 0


def _ends_kvn(tail: bytes) -> bool:
    """Many writers end with the last covariance's unit or with a block's end, without a line feed."""
    text = tail.rstrip(b" \t")
    return text[-1:] in (b"\n", b"]") or text.endswith(b"_STOP")


split_kvn_stream: Final = split_at(_after_kvn_message)
KVN: Final = Framing(_split_kvn, pack_kvn, split_kvn_stream, _ends_kvn)


def opening(tag: str) -> re.Pattern[bytes]:
    """Return the pattern of the beginning of a ``tag`` element."""
    return re.compile(rb"<%b%b[\s>]" % (PREFIX, tag.encode()))


def closing(tag: str) -> re.Pattern[bytes]:
    """Return the pattern of the end of a ``tag`` element."""
    return re.compile(rb"</%b%b\s*>" % (PREFIX, tag.encode()))


def xml_elements(tag: str) -> Framing:
    """Return the framing of XML files whose records are ``tag`` elements, alone or inside an ``ndm``."""
    return Framing(
        partial(_split_xml, tag, opening(tag), closing(tag)),
        pack_xml,
        split_at(partial(_after_element, closing(tag))),
        lambda tail: tail.rstrip()[-1:] == b">",
    )


def _split_xml(tag: str, opens: re.Pattern[bytes], closes: re.Pattern[bytes], data: bytes) -> Iterator[RawRecord]:
    """Yield the ``tag`` elements, each with the exact bytes it had; what is no such element and no wrapping is
    faulty.
    """
    lines, marks, number, at = LineNumbers(data), Marks(data), 0, 0
    while (at := _after_wrapping(marks, at)) < len(data):
        begin, reason = at, None
        kind: ErrorKind | None = None
        if opens.match(data, at):
            closed = marks.next(closes, at)
            at = closed[1] if closed else len(data)
            if not closed:
                kind, reason = "torn_record", f"the message ends before its closing </{tag}>"
        else:
            kind, reason = "unknown_format", f"is no <{tag}> element"
            following = [marks.next(mark, at + 1) for mark in (opens, _NDM)]
            at = min((span[0] for span in following if span), default=len(data))
        yield RawRecord(number, None, data[begin:at].strip(), kind, reason, lines.at(begin))
        number += 1


def _after_wrapping(marks: Marks, at: int) -> int:
    """Return where what is no message and needs none ends: blanks, remarks, instructions, tags of ``ndm``."""
    while found := _WRAPPING.match(marks.data, at):
        closes = _CLOSING.get(found.lastgroup or "")
        closed = marks.next(closes, found.end()) if closes else found.span()
        if closed is None:
            break
        at = closed[1]
    return at


def pack_xml(payloads: Sequence[bytes], received_time_ns: Sequence[int], header: bytes) -> bytes:
    """Wrap elements in one ``ndm`` document."""
    del received_time_ns, header
    return b"<ndm>\n" + b"\n".join(payloads) + b"\n</ndm>\n"


def _after_element(closing: re.Pattern[bytes], buffer: bytearray, room: int) -> int:
    return max((found.end() for found in closing.finditer(buffer, 0, room)), default=0)
