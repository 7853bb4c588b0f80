"""Navigation data messages as CCSDS writes them (KVN text, XML), reduced to keywords and values.

A message or a file of several becomes a list of mappings in file order. Nothing here knows what a keyword means.
Sources: CCSDS 502.0-B-3 (KVN), 505.0-B-3 (XML).
"""

import json
from collections.abc import Iterator

from defusedxml import DefusedXmlException, ElementTree

from sda_platform.formats.errors import RecordError

_VERSION_PREFIX, _VERSION_SUFFIX = "CCSDS_", "_VERS"


def omm_as_json(data: bytes, encoding: str) -> bytes:
    """OMMs in ``kvn`` or ``xml`` as the JSON array of the format ``omm-json``.

    Raises RecordError: the text as a whole is not of that encoding.
    """
    messages = kvn_messages(data) if encoding == "kvn" else xml_messages(data, "omm")
    return json.dumps(list(messages)).encode()


def kvn_messages(data: bytes) -> Iterator[dict[str, str]]:
    """Each message of a KVN file: one begins at every ``CCSDS_…_VERS``; units in brackets are left out.

    Raises RecordError for text that is not UTF-8, a line that is neither keyword nor comment, and a missing version.
    """
    message: dict[str, str] = {}
    for number, line in enumerate(_text(data).splitlines(), 1):
        if not line.strip() or line.split(maxsplit=1)[0] == "COMMENT":
            continue
        keyword, equals, value = (part.strip() for part in line.partition("="))
        if not equals:
            raise RecordError("bad_field", f"line {number} is not KEYWORD = VALUE: {ascii(line)[:80]}")
        if keyword.startswith(_VERSION_PREFIX) and keyword.endswith(_VERSION_SUFFIX) and message:
            yield message
            message = {}
        elif not message and not keyword.endswith(_VERSION_SUFFIX):
            raise RecordError("missing_field", f"line {number}: a message begins with CCSDS_…_VERS, not with {keyword}")
        message[keyword] = value.partition("[")[0].strip()
    if message:
        yield message


def xml_messages(data: bytes, kind: str) -> Iterator[dict[str, str]]:
    """The leaves of each ``kind`` element (``omm``, ``cdm``) of an XML file, alone or inside an ``ndm``.

    Raises RecordError for text that is no XML, or XML with entities of its own.
    """
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, DefusedXmlException, ValueError) as error:
        raise RecordError("bad_field", f"cannot be read as XML: {error}") from error
    for message in root.iter(kind):
        yield {leaf.tag: (leaf.text or "").strip() for leaf in message.iter() if len(leaf) == 0}


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordError("bad_field", f"is not UTF-8 text: {error}") from error
