"""Navigation data messages as text: lines of KVN, elements of XML. What a message holds is not known here."""

import re
from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, register_namespace, tostring

from sda_platform.formats.ndm import COMMENT, USER_DEFINED, KeywordEntry

_INSTANCE: Final = "http://www.w3.org/2001/XMLSchema-instance"
_SCHEMA_LOCATION: Final = f"{{{_INSTANCE}}}noNamespaceSchemaLocation"
_SCHEMA: Final = "https://sanaregistry.org/r/ndmxml_unqualified/ndmxml-3.0.0-master-3.0.xsd"
_KEYWORD_WIDTH: Final = 20
_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
register_namespace("xsi", _INSTANCE)


def kvn_line(entry: KeywordEntry, width: int = _KEYWORD_WIDTH) -> str:
    """``KEYWORD = value [unit]``, or a comment."""
    if entry.keyword == COMMENT:
        return f"{COMMENT} {entry.value}".rstrip()
    unit = f" [{entry.unit}]" if entry.unit else ""
    return f"{entry.keyword:<{width}} = {entry.value}{unit}"


def kvn_lines(entries: Iterable[KeywordEntry]) -> list[str]:
    """Write one line of KVN for each entry."""
    return [kvn_line(entry) for entry in entries]


def root_element(kind: str, version: str, schema: str = _SCHEMA) -> Element:
    """Return the element of a message of this ``kind`` ("oem")."""
    root = Element(kind, {"id": f"CCSDS_{kind.upper()}_VERS", "version": version})
    root.set(_SCHEMA_LOCATION, schema)
    return root


def add_section(parent: Element, name: str, entries: Sequence[KeywordEntry]) -> Element:
    """A section with a leaf for each entry; the section is left out where there are none."""
    section = SubElement(parent, name) if entries else Element(name)
    add_leaves(section, entries)
    return section


def add_leaves(parent: Element, entries: Iterable[KeywordEntry]) -> None:
    """A leaf for each entry. Raises ValueError for a value with characters that XML cannot hold."""
    for entry in entries:
        is_user_defined = entry.keyword.startswith(f"{USER_DEFINED}_")
        name = USER_DEFINED if is_user_defined else entry.keyword
        leaf = SubElement(parent, name, {"units": entry.unit} if entry.unit else {})
        if is_user_defined:
            leaf.set("parameter", entry.keyword.removeprefix(f"{USER_DEFINED}_"))
        leaf.text = entry.value
        if _NOT_IN_XML.search(entry.value):
            raise ValueError(f"{entry.keyword} has characters that XML cannot hold: {ascii(entry.value)[:80]}")


def xml_file(messages: Sequence[Element]) -> bytes:
    """A file of one message, or of several, or of none, inside an ``ndm``."""
    if len(messages) == 1:
        root = messages[0]
    else:
        root = Element("ndm", {_SCHEMA_LOCATION: messages[0].attrib[_SCHEMA_LOCATION]} if messages else {})
        for message in messages:
            del message.attrib[_SCHEMA_LOCATION]
        root.extend(messages)
    indent(root)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode").encode() + b"\n"
