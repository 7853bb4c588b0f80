"""A conjunction data message as KVN text or XML (CCSDS 508.0-B-1), from the record that the reader makes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement

from sda_platform.formats.cdm import Cdm, CdmObject, Encoding
from sda_platform.formats.cdm_keywords import COVARIANCE, DATA, HEADER, METADATA, RELATIVE, STATE
from sda_platform.formats.keywords import Keyword
from sda_platform.formats.ndm import COMMENT, KeywordEntry
from sda_platform.formats.ndm_writing import add_leaves, add_section, kvn_line, root_element, xml_file

_VERSION: Final = KeywordEntry("CCSDS_CDM_VERS", "1.0")
_SCHEMA: Final = "http://sanaregistry.org/r/ndmxml/ndmxml-1.0-master.xsd"
_KEYWORD_WIDTH: Final = 30


def encode_cdm(message: Cdm, encoding: Encoding) -> bytes:
    """Encode a CDM with all values that have a keyword of the standard; numbers keep their digits."""
    return encode_cdms([message], encoding)


def encode_cdms(messages: Sequence[Cdm], encoding: str) -> bytes:
    """Encode CDMs into one file."""
    if not all(isinstance(message, Cdm) for message in messages):
        raise ValueError("a message is a summary without states and covariances (cdm_public)")
    if encoding == "xml":
        return xml_file([_element(message) for message in messages])
    lines = [kvn_line(entry, _KEYWORD_WIDTH) for message in messages for entry in flat_entries(message)]
    return ("\n".join(lines) + "\n").encode()


def flat_entries(message: Cdm) -> Iterator[KeywordEntry]:
    """Yield the message as a list of keywords in the order of the standard."""
    yield _VERSION
    yield from _rows(HEADER, message.fields)
    yield from _comments(_remarks(message))  # not before OBJECT, where a radius could be of that object
    for _, group in RELATIVE:
        yield from _rows(group, message.fields)
    for each in message.objects:
        values = _object_values(each)
        yield from _rows(METADATA, values)
        yield from _comments(_remarks(each))
        for _, group in DATA:
            yield from _rows(group, values)


def _element(message: Cdm) -> Element:
    root = root_element("cdm", _VERSION.value, _SCHEMA)
    add_section(root, "header", _rows(HEADER, message.fields))
    body = SubElement(root, "body")
    relative = SubElement(body, "relativeMetadataData")
    add_leaves(relative, _comments(_remarks(message)))
    for name, group in RELATIVE:
        _add_group(relative, name, _rows(group, message.fields))
    for each in message.objects:
        values = _object_values(each)
        segment = SubElement(body, "segment")
        add_section(segment, "metadata", _rows(METADATA, values))
        data = SubElement(segment, "data")
        add_leaves(data, _comments(_remarks(each)))
        for name, group in DATA:
            _add_group(data, name, _rows(group, values))
    return root


def _add_group(parent: Element, name: str, entries: Sequence[KeywordEntry]) -> None:
    if name:
        add_section(parent, name, entries)
    else:
        add_leaves(parent, entries)


def _remarks(each: Cdm | CdmObject) -> Sequence[str]:
    """Return the comments; among them the radius that a message gave as a keyword, which the standard does not have."""
    if "HBR" not in each.fields:
        return each.comments
    return (*each.comments, f"HBR = {each.hard_body_radius_m!r} [m]")


def _comments(comments: Sequence[str]) -> list[KeywordEntry]:
    return [KeywordEntry(COMMENT, comment) for comment in comments]


def _rows(keywords: Sequence[Keyword], values: Mapping[str, str]) -> list[KeywordEntry]:
    return [KeywordEntry(each.name, values[each.name], each.unit) for each in keywords if values.get(each.name)]


def _object_values(each: CdmObject) -> dict[str, str]:
    state = [*each.position_km.tolist(), *each.velocity_km_s.tolist()]
    numbers = {name: repr(value) for name, value in zip(STATE, state, strict=True)}
    covariance = {name: f"{each.covariance_rtn[row, column] * 1e6:.15e}" for name, row, column in COVARIANCE}
    return {**each.fields, "REF_FRAME": each.frame, **numbers, **covariance}
