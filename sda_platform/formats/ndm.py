"""Navigation data messages as CCSDS writes them (KVN text, XML), reduced to keywords, values and units.

A message becomes a list of entries in file order. This module does not interpret keywords. Sources: CCSDS 502.0-B-3
(KVN), 505.0-B-3 (XML).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from sda_platform.formats.errors import RecordError
from sda_platform.formats.json_fields import with_exponent

COMMENT = "COMMENT"
USER_DEFINED = "USER_DEFINED"
NAMES: Final = frozenset(
    ("OBJECT_NAME", "OBJECT_ID", "OBJECT_DESIGNATOR", "INTERNATIONAL_DESIGNATOR", "CATALOG_NAME", "ORIGINATOR",
     "MESSAGE_ID", *(f"PARTICIPANT_{number}" for number in range(1, 6)))
)  # fmt: skip
"""Keywords whose values name one thing; those of others may be lists."""
_VERSION_PREFIX, _VERSION_SUFFIX = "CCSDS_", "_VERS"
_PREFIX: Final = re.compile(rb"[\s</]([A-Za-z_][\w.-]*):\w")
_DECLARATION: Final = re.compile(rb"\sxmlns:([\w.-]+)\s*=")
_REPLACED: Final = "\ufffd"
# How lines begin that are comments: of CCSDS, of STK, of SP3.
_COMMENTS: Final = (COMMENT, "#", "/*", "%/")
# No attribute of a file can have this name.
_LINE: Final = " line"

# The line of a file, from the line of the text that is read.
LineOf = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class KeywordEntry:
    """One keyword, its value as text, its unit where one is given ("" else), and its place ("line 7").

    A comment is an entry with the keyword COMMENT.
    """

    keyword: str
    value: str
    unit: str = ""
    place: str = ""

    @property
    def is_version(self) -> bool:
        """Whether it is the entry that begins a message."""
        return self.keyword.startswith(_VERSION_PREFIX) and self.keyword.endswith(_VERSION_SUFFIX)


def same_line(line: int) -> int:
    """Return the line of a file that is read from its beginning."""
    return line


def kvn_messages(data: bytes, line_of: LineOf = same_line) -> Iterator[list[KeywordEntry]]:
    """Each message of a KVN file: one begins at every ``CCSDS_…_VERS``.

    Raises RecordError for text that is not UTF-8, a line that is neither keyword nor comment, and a missing version.
    """
    message: list[KeywordEntry] = []
    for number, line in enumerate(text_lines(data), 1):
        if not line.strip():
            continue
        entry = kvn_entry(line, f"line {line_of(number)}")
        if entry.is_version and any(e.keyword != COMMENT for e in message):
            yield message
            message = []
        elif not entry.is_version and not message and entry.keyword != COMMENT:
            reason = f"{entry.place}: a message begins with CCSDS_…_VERS, not with {ascii(entry.keyword)[1:-1][:40]}"
            raise RecordError("missing_field", reason)
        message.append(entry)
    if message:
        yield message


def kvn_entry(line: str, place: str) -> KeywordEntry:
    """Parse one line of KVN. Raises RecordError for what is neither a comment nor KEYWORD = VALUE."""
    words = line.split(maxsplit=1)
    if words[0] == COMMENT:
        return KeywordEntry(COMMENT, words[1].strip() if len(words) > 1 else "", "", place)
    keyword, equals, rest = (part.strip() for part in line.partition("="))
    if not equals:
        raise RecordError("bad_field", f"{place} is not KEYWORD = VALUE: {ascii(line)[:80]}")
    value, bracket, unit = (part.strip() for part in rest.partition("["))
    # Only a number has a unit: the brackets of "STARLINK-11072 [DTC]" belong to the name.
    if bracket and value and not _is_number(value):
        value, unit = rest, ""
    return KeywordEntry(keyword, value, unit.removesuffix("]").strip(), place)


def _is_number(text: str) -> bool:
    try:
        float(with_exponent(text))
    except ValueError:
        return False
    return True


def text_lines(data: bytes) -> list[str]:
    """Return the lines of a KVN text. Raises RecordError for what is not UTF-8, but in comments, which are for
    people.
    """
    try:
        return data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        lines = data.decode("utf-8", "replace").split("\n")
        for line, given in zip(lines, data.split(b"\n"), strict=True):
            if _REPLACED in line and _REPLACED.encode() not in given and not line.strip().startswith(_COMMENTS):
                raise RecordError("bad_field", f"{ascii(line)[1:60]} is not UTF-8 text: {error}") from error
        return lines


def xml_messages(data: bytes, kind: str, line_of: LineOf = same_line) -> Iterator[list[KeywordEntry]]:
    """Yield the leaves of each ``kind`` element (``omm``, ``cdm``) of an XML file, alone or inside an ``ndm``.

    As in KVN the version comes first, where the element has one, and a user-defined parameter is a keyword of its own.

    Raises RecordError for text that is no XML, or XML with entities of its own.
    """
    for message in xml_elements(data, kind, line_of):
        yield [*version_entry(message), *leaves(message)]


def xml_elements(data: bytes, kind: str, line_of: LineOf = same_line) -> Iterator[Element]:
    """Each ``kind`` element of an XML file.

    Raises RecordError; also where a segment has two sections of one name, or a message or segment is inside another.
    """
    for message in _side_by_side(_parsed(data, line_of), kind):
        for segment in _side_by_side(message, "segment"):
            for name, count in Counter(child.tag for child in segment).items():
                if count > 1:
                    raise RecordError("bad_field", f"{place_of(segment)}: the segment has {count} <{name}> sections")
        yield message


def _side_by_side(root: Element, tag: str) -> Iterator[Element]:
    """Each ``tag`` element, none of which holds another: all that is read of each is read once. Raises RecordError."""
    for element in root.iter(tag):
        if next(islice(element.iter(tag), 1, None), None) is not None:
            raise RecordError("bad_field", f"{place_of(element)}: <{tag}> holds another <{tag}>")
        yield element


def the_segment(data: bytes, kind: str, line_of: LineOf) -> tuple[Element, Element, Element, Element]:
    """Return the one message of an XML record, its header, and the metadata and the data of its one segment.

    Raises RecordError where there are more or none of them.
    """
    messages = list(xml_elements(data, kind, line_of))
    segments = [segment for message in messages for segment in message.iter("segment")]
    if len(messages) != 1 or len(segments) != 1:
        raise RecordError("bad_length", f"holds {len(segments)} segments in {len(messages)} messages, must be one")
    header, (metadata, content) = messages[0].find("header"), map(segments[0].find, ("metadata", "data"))
    if header is None or metadata is None or content is None:
        raise RecordError("missing_field", f"{place_of(messages[0])}: header, metadata or data is missing")
    return messages[0], header, metadata, content


def version_entry(message: Element) -> list[KeywordEntry]:
    """Return the version of an XML message as KVN writes it; none where the element has none."""
    name = message.get("id")
    return [KeywordEntry(name, message.get("version", ""), "", place_of(message))] if name else []


def leaves(element: Element) -> list[KeywordEntry]:
    """Return the elements without children inside ``element``, as entries in their order."""
    found = (leaf for leaf in element.iter() if leaf is not element and len(leaf) == 0)
    return [
        KeywordEntry(_keyword(leaf), one_line(leaf.text or ""), leaf.get("units", ""), place_of(leaf)) for leaf in found
    ]


def one_line(text: str) -> str:
    """``text`` without blanks around it, on one line."""
    stripped = text.strip()
    return stripped if len(stripped.splitlines()) < 2 else " ".join(stripped.split())


def place_of(element: Element) -> str:
    """Return where an element begins: "line 7"."""
    return f"line {element.get(_LINE, '1')}"


def _keyword(leaf: Element) -> str:
    parameter = leaf.get("parameter")
    return f"{leaf.tag}_{parameter}" if leaf.tag == USER_DEFINED and parameter else leaf.tag


class _BuilderWithLines(TreeBuilder):
    """Builds elements that record their line numbers, with names without a namespace."""

    def __init__(self, line_of: LineOf) -> None:
        super().__init__()
        self._line_of = line_of
        self.parser: DefusedXMLParser | None = None

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        element = super().start(tag.rpartition("}")[2], attrs)
        if self.parser is not None:
            element.set(_LINE, str(self._line_of(self.parser.parser.CurrentLineNumber)))
        return element

    def end(self, tag: str, /) -> Element:
        return super().end(tag.rpartition("}")[2])


def _with_declared_prefixes(data: bytes) -> bytes:
    """``data`` inside an element that declares the prefixes that it uses: a record's may be declared around it."""
    undeclared = {*_PREFIX.findall(data)} - {*_DECLARATION.findall(data), b"xml", b"xmlns"}
    if not undeclared or data.lstrip().startswith(b"<?"):
        return data
    return b"<ndm%b>%b</ndm>" % (b"".join(b' xmlns:%b="%b"' % (name, name) for name in sorted(undeclared)), data)


def _parsed(data: bytes, line_of: LineOf) -> Element:
    builder = _BuilderWithLines(line_of)
    parser = builder.parser = DefusedXMLParser(target=builder)
    try:
        parser.feed(_with_declared_prefixes(data))
        root: Element = parser.close()
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise RecordError("bad_field", f"cannot be read as XML: {error}") from error
    return root
