"""Navigation data messages as CCSDS writes them (KVN text, XML), reduced to keywords, values and units.

A message or a file of several becomes lists of entries in file order. Nothing here knows what a keyword means.
Sources: CCSDS 502.0-B-3 (KVN), 505.0-B-3 (XML).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from defusedxml import DefusedXmlException, ElementTree

from sda_platform.formats.errors import RecordError

COMMENT = "COMMENT"
_USER_DEFINED = "USER_DEFINED"
_VERSION_PREFIX, _VERSION_SUFFIX = "CCSDS_", "_VERS"


@dataclass(frozen=True, slots=True)
class Entry:
    """One keyword, its value as text, its unit where one is given ("" else), and where it stands ("line 7", "<X>").

    A comment is an entry with the keyword COMMENT.
    """

    keyword: str
    value: str
    unit: str
    place: str


def omm_as_json(data: bytes, encoding: str) -> bytes:
    """OMMs in ``kvn`` or ``xml`` as the JSON array of the format ``omm-json``.

    Raises RecordError: the text as a whole is not of that encoding.
    """
    messages = kvn_messages(data) if encoding == "kvn" else xml_messages(data, "omm")
    fields = [{e.keyword: e.value for e in message if e.keyword != COMMENT} for message in messages]
    return json.dumps(fields).encode()


def kvn_messages(data: bytes) -> Iterator[list[Entry]]:
    """Each message of a KVN file: one begins at every ``CCSDS_…_VERS``.

    Raises RecordError for text that is not UTF-8, a line that is neither keyword nor comment, and a missing version.
    """
    message: list[Entry] = []
    for number, line in enumerate(_text(data).splitlines(), 1):
        if not line.strip():
            continue
        entry = _kvn_entry(line, f"line {number}")
        is_version = entry.keyword.startswith(_VERSION_PREFIX) and entry.keyword.endswith(_VERSION_SUFFIX)
        if is_version and any(e.keyword != COMMENT for e in message):
            yield message
            message = []
        elif not is_version and not message and entry.keyword != COMMENT:
            reason = f"{entry.place}: a message begins with CCSDS_…_VERS, not with {ascii(entry.keyword)[1:-1][:40]}"
            raise RecordError("missing_field", reason)
        message.append(entry)
    if message:
        yield message


def xml_messages(data: bytes, kind: str) -> Iterator[list[Entry]]:
    """The leaves of each ``kind`` element (``omm``, ``cdm``) of an XML file, alone or inside an ``ndm``.

    As in KVN the version comes first, where the element has one, and a user-defined parameter is a keyword of its own.

    Raises RecordError for text that is no XML, or XML with entities of its own.
    """
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise RecordError("bad_field", f"cannot be read as XML: {error}") from error
    for message in root.iter(kind):
        leaves = [leaf for leaf in message.iter() if leaf is not message and len(leaf) == 0]
        version = (
            [Entry(message.get("id", ""), message.get("version", ""), "", f"<{kind}>")] if message.get("id") else []
        )
        yield version + [Entry(_keyword(e), (e.text or "").strip(), e.get("units", ""), f"<{e.tag}>") for e in leaves]


def _keyword(leaf: Element) -> str:
    parameter = leaf.get("parameter")
    return f"{leaf.tag}_{parameter}" if leaf.tag == _USER_DEFINED and parameter else leaf.tag


def _kvn_entry(line: str, place: str) -> Entry:
    words = line.split(maxsplit=1)
    if words[0] == COMMENT:
        return Entry(COMMENT, words[1].strip() if len(words) > 1 else "", "", place)
    keyword, equals, rest = (part.strip() for part in line.partition("="))
    if not equals:
        raise RecordError("bad_field", f"{place} is not KEYWORD = VALUE: {ascii(line)[:80]}")
    value, _, unit = rest.partition("[")
    return Entry(keyword, value.strip(), unit.removesuffix("]").strip(), place)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordError("bad_field", f"is not UTF-8 text: {error}") from error
