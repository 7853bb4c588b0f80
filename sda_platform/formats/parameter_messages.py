"""Messages that hold one set of parameters (OPM, OMM): read from KVN or XML into sections, written from them.

In both encodings a section is known by its keywords: KVN has no marks for it, and in XML its element adds nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, SubElement

from sda_platform.formats.errors import RecordError
from sda_platform.formats.keywords import checked_section, shown, values_of
from sda_platform.formats.ndm import COMMENT, USER_DEFINED, KeywordEntry, kvn_messages, xml_messages
from sda_platform.formats.ndm_writing import add_section, kvn_lines, root_element, xml_file
from sda_platform.formats.orbit_keywords import Layout, MessageSection
from sda_platform.formats.records import RawRecord

_OBJECT_ID: Final = "OBJECT_ID"


@dataclass(frozen=True, slots=True)
class ParameterMessage:
    """One message: its version, and its sections that are present, in the standard's order, each checked."""

    layout: Layout
    version: str
    sections: tuple[tuple[str, tuple[KeywordEntry, ...]], ...]

    def section(self, name: str) -> dict[str, str]:
        """Return the values of the first section of this name by keyword; empty where there is none."""
        return values_of(self.entries(name))

    def entries(self, name: str) -> tuple[KeywordEntry, ...]:
        """Return the entries of the first section of this name; none where there is none."""
        return next((entries for found, entries in self.sections if found == name), ())

    def values(self) -> dict[str, str]:
        """All values by keyword; of sections that repeat, the last one's."""
        return {keyword: value for _, entries in self.sections for keyword, value in values_of(entries).items()}


def read_parameters(record: RawRecord, layout: Layout, encoding: str) -> ParameterMessage:
    """Return the one message of a record in ``kvn`` or ``xml``.

    Raises RecordError for what is no message of this kind, several, or one that breaks the layout.
    """
    is_xml = encoding == "xml"
    lines = record.line_of
    messages = list(xml_messages(record.payload, layout.kind, lines) if is_xml else kvn_messages(record.payload, lines))
    if len(messages) != 1:
        raise RecordError("bad_length", f"holds {len(messages)} messages, must be one")
    version, entries = taken_version(messages[0], layout.kind)
    return ParameterMessage(layout, version, tuple(_checked(_grouped(entries, layout), layout)))


def taken_version(entries: Sequence[KeywordEntry], kind: str) -> tuple[str, list[KeywordEntry]]:
    """Return the version of a message of this ``kind``, and its other entries. Raises RecordError for another kind."""
    first = next((entry for entry in entries if entry.keyword != COMMENT), None)
    name = f"CCSDS_{kind.upper()}_VERS"
    if first is None or first.keyword != name:
        found = "nothing" if first is None else shown(first.keyword)
        raise RecordError("unknown_format", f"is no {kind.upper()}: begins with {found}, not {name}")
    return first.value, [entry for entry in entries if entry is not first]


def _grouped(entries: Iterable[KeywordEntry], layout: Layout) -> Iterator[tuple[MessageSection, list[KeywordEntry]]]:
    """Return the entries by section, those of a section together; a comment belongs to the section of what
    follows it.
    """
    of_keyword = {keyword.name: section for section in layout.sections for keyword in section.keywords}
    groups: list[tuple[MessageSection, list[KeywordEntry]]] = []
    last: dict[str, list[KeywordEntry]] = {}
    comments: list[KeywordEntry] = []
    for entry in entries:
        if entry.keyword == COMMENT:
            comments.append(entry)
            continue
        name = USER_DEFINED if entry.keyword.startswith(f"{USER_DEFINED}_") else entry.keyword
        section = of_keyword.get(name)
        if section is None:
            reason = f"{entry.place}: {shown(entry.keyword)} is no keyword of an {layout.kind.upper()}"
            raise RecordError("bad_field", reason)
        group = last.get(section.name)
        if group is None or (section.repeats and entry.keyword == section.keywords[0].name):
            group = last[section.name] = []
            groups.append((section, group))
        group += [*comments, entry]
        comments = []
    if groups:
        groups[-1][1].extend(comments)
    return iter(groups)


def _checked(
    groups: Iterable[tuple[MessageSection, list[KeywordEntry]]], layout: Layout
) -> Iterator[tuple[str, tuple[KeywordEntry, ...]]]:
    found = list(groups)
    for section in layout.sections:
        parts = [entries for known, entries in found if known.name == section.name]
        for entries in parts or ([[]] if section.is_required else []):
            yield section.name, checked_section(_with_object(entries, section), section.keywords, section.name)


def _with_object(entries: Sequence[KeywordEntry], section: MessageSection) -> Sequence[KeywordEntry]:
    """Return the entries, with the OBJECT_ID that the standard demands: UNKNOWN where the message has none."""
    is_stated = any(entry.keyword == _OBJECT_ID and entry.value for entry in entries)
    if is_stated or not entries or all(keyword.name != _OBJECT_ID for keyword in section.keywords):
        return entries
    return [*(entry for entry in entries if entry.keyword != _OBJECT_ID), KeywordEntry(_OBJECT_ID, "UNKNOWN")]


def write_parameters(messages: Sequence[ParameterMessage], encoding: str) -> bytes:
    """Write messages of orbit parameters into one file."""
    if encoding == "xml":
        return xml_file([_element(message) for message in messages])
    return "".join(_kvn(message) for message in messages).encode()


def _kvn(message: ParameterMessage) -> str:
    name = f"CCSDS_{message.layout.kind.upper()}_VERS"
    blocks = [kvn_lines(entries) for _, entries in message.sections]
    return (
        "\n".join([*kvn_lines([KeywordEntry(name, message.version)]), *(line for block in blocks for line in block)])
        + "\n"
    )


def _element(message: ParameterMessage) -> Element:
    root = root_element(message.layout.kind, message.version)
    header, metadata, *data = message.sections
    add_section(root, *header)
    segment = SubElement(SubElement(root, "body"), "segment")
    add_section(segment, *metadata)
    parent = SubElement(segment, "data")
    for name, entries in data:
        add_section(parent, name, entries)
    return root
