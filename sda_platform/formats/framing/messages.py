"""Records that are navigation data messages: in KVN from version to version, in XML element by element."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from sda_platform.formats.framing.line_numbers import LineNumbers
from sda_platform.formats.framing.streams import split_at
from sda_platform.formats.records import Framing, RawRecord

# Where a message in KVN begins: at the line of its version.
_BEGINNING: Final = re.compile(rb"^[ \t]*CCSDS_\w+_VERS\b", re.MULTILINE)


PREFIX: Final = rb"(?:[A-Za-z_][\w.-]*:)?"
"""The prefix of a namespace that the name of any element may have (505.0-B-3, 4.3.5)."""


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


def xml_elements(tag: str) -> Framing:
    """Return the framing of XML files whose records are ``tag`` elements, alone or inside an ``ndm``."""
    return Framing(
        partial(_split_xml, tag, _xml_parts(tag)),
        pack_xml,
        split_at(partial(_after_element, re.compile(rb"</%b%b\s*>" % (PREFIX, tag.encode())))),
        lambda tail: tail.rstrip()[-1:] == b">",
    )


def _xml_parts(tag: str) -> re.Pattern[bytes]:
    name = PREFIX + tag.encode()
    return re.compile(
        rb"(?P<around>\s+|<\?.*?\?>|<!--.*?-->|</?%bndm(?=[\s>/])[^>]*>)"
        rb"|(?P<message><%b[\s>].*?</%b\s*>)"
        rb"|(?P<torn><%b[\s>].*)"
        rb"|(?P<other>.+?(?=<%b[\s>]|</%bndm[\s>]|\Z))" % (PREFIX, name, name, name, name, PREFIX),
        re.DOTALL,
    )


def _split_xml(tag: str, parts_of: re.Pattern[bytes], data: bytes) -> Iterator[RawRecord]:
    """Yield the ``tag`` elements, each with the exact bytes it had; what is no such element and no wrapping is
    faulty.
    """
    lines = LineNumbers(data)
    parts = (part for part in parts_of.finditer(data) if part.lastgroup != "around")
    for number, part in enumerate(parts):
        line, payload = lines.at(part.start()), part.group().strip()
        if part.lastgroup == "message":
            yield RawRecord(number, None, payload, line=line)
        elif part.lastgroup == "torn":
            reason = f"the message ends before its closing </{tag}>"
            yield RawRecord(number, None, payload, "torn_record", reason, line)
        else:
            yield RawRecord(number, None, payload, "unknown_format", f"is no <{tag}> element", line)


def pack_xml(payloads: Sequence[bytes], received_time_ns: Sequence[int], header: bytes) -> bytes:
    """Wrap elements in one ``ndm`` document."""
    del received_time_ns, header
    return b"<ndm>\n" + b"\n".join(payloads) + b"\n</ndm>\n"


def _after_element(closing: re.Pattern[bytes], buffer: bytearray, room: int) -> int:
    return max((found.end() for found in closing.finditer(buffer, 0, room)), default=0)
