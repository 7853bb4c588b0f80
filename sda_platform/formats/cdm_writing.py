"""A conjunction data message as KVN text or XML (CCSDS 508.0-B-1), from the record that the reader makes."""

from collections.abc import Iterator, Mapping
from xml.etree import ElementTree as Xml

from sda_platform.formats.cdm import Cdm, CdmObject, Encoding
from sda_platform.formats.cdm_keywords import COVARIANCE, DATA, HEADER, METADATA, RELATIVE, STATE, Keyword
from sda_platform.formats.ndm import COMMENT

_VERSION = "CCSDS_CDM_VERS", "1.0"
_SCHEMA = "http://sanaregistry.org/r/ndmxml/ndmxml-1.0-master.xsd"
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_KEYWORD_WIDTH = 30

Row = tuple[Keyword, str]


def encode_cdm(message: Cdm, encoding: Encoding) -> bytes:
    """The message with everything of it that the standard has a keyword for; numbers keep 15 digits."""
    text = "\n".join(_kvn_lines(message)) + "\n" if encoding == "kvn" else _xml(message)
    return text.encode()


def _kvn_lines(message: Cdm) -> Iterator[str]:
    yield _kvn(Keyword(_VERSION[0]), _VERSION[1])
    groups = [_rows(HEADER, message.fields), *(_rows(group, message.fields) for _, group in RELATIVE)]
    for rows in groups:
        yield from (_kvn(keyword, value) for keyword, value in rows)
    yield from (f"{COMMENT} {comment}" for comment in message.comments)
    for each in message.objects:
        values = _object_values(each)
        yield from (_kvn(keyword, value) for keyword, value in _rows(METADATA, values))
        yield from (f"{COMMENT} {comment}" for comment in each.comments)
        for _, group in DATA:
            yield from (_kvn(keyword, value) for keyword, value in _rows(group, values))


def _kvn(keyword: Keyword, value: str) -> str:
    unit = f" [{keyword.unit}]" if keyword.unit else ""
    return f"{keyword.name:<{_KEYWORD_WIDTH}} = {value}{unit}"


def _xml(message: Cdm) -> str:
    Xml.register_namespace("xsi", _INSTANCE)
    root = Xml.Element("cdm", {"id": _VERSION[0], "version": _VERSION[1]})
    root.set(f"{{{_INSTANCE}}}noNamespaceSchemaLocation", _SCHEMA)
    _leaves(Xml.SubElement(root, "header"), _rows(HEADER, message.fields))
    body = Xml.SubElement(root, "body")
    relative = Xml.SubElement(body, "relativeMetadataData")
    _comments(relative, message.comments)
    for name, group in RELATIVE:
        _group(relative, name, _rows(group, message.fields))
    for each in message.objects:
        values = _object_values(each)
        segment = Xml.SubElement(body, "segment")
        _leaves(Xml.SubElement(segment, "metadata"), _rows(METADATA, values))
        data = Xml.SubElement(segment, "data")
        _comments(data, each.comments)
        for name, group in DATA:
            _group(data, name, _rows(group, values))
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _group(parent: Xml.Element, name: str, rows: list[Row]) -> None:
    if rows:
        _leaves(Xml.SubElement(parent, name) if name else parent, rows)


def _leaves(parent: Xml.Element, rows: list[Row]) -> None:
    for keyword, value in rows:
        leaf = Xml.SubElement(parent, keyword.name, {"units": keyword.unit} if keyword.unit else {})
        leaf.text = value


def _comments(parent: Xml.Element, comments: tuple[str, ...]) -> None:
    for comment in comments:
        Xml.SubElement(parent, COMMENT).text = comment


def _rows(keywords: tuple[Keyword, ...], values: Mapping[str, str]) -> list[Row]:
    return [(keyword, values[keyword.name]) for keyword in keywords if values.get(keyword.name)]


def _object_values(each: CdmObject) -> dict[str, str]:
    state = [*each.position_km.tolist(), *each.velocity_km_s.tolist()]
    numbers = {name: f"{value:.15g}" for name, value in zip(STATE, state, strict=True)}
    covariance = {name: f"{each.covariance_rtn[row, column] * 1e6:.15e}" for name, row, column in COVARIANCE}
    return {**each.fields, "REF_FRAME": each.frame, **numbers, **covariance}
