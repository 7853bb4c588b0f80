"""Orbit ephemeris messages (CCSDS 502.0-B-3, OEM) as KVN text or XML. Numbers keep every digit."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement

from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.instants import format_epoch
from sda_platform.formats.ndm import COMMENT, KeywordEntry
from sda_platform.formats.ndm_writing import add_leaves, add_section, kvn_lines, root_element, xml_file
from sda_platform.formats.orbit_keywords import ACCELERATION, COVARIANCE_TERMS, STATE

_STATE_NAMES = tuple(keyword.name for keyword in (*STATE[1:], *ACCELERATION))


def write_oem_kvn(ephemerides: Sequence[EphemerisSegment]) -> bytes:
    """Write ephemerides as OEM in KVN; ephemerides with one header are segments of one message."""
    lines = [line for message in _messages(ephemerides) for line in _kvn(message)]
    return ("\n".join(lines) + "\n").encode()


def write_oem_xml(ephemerides: Sequence[EphemerisSegment]) -> bytes:
    """Write ephemerides as OEM in XML; ephemerides with one header are segments of one message."""
    return xml_file([_element(message) for message in _messages(ephemerides)])


def _messages(ephemerides: Sequence[EphemerisSegment]) -> Iterator[list[EphemerisSegment]]:
    for _, segments in groupby(ephemerides, key=lambda each: (each.version, _bare(each.header))):
        yield list(segments)


def _bare(entries: Sequence[KeywordEntry]) -> tuple[tuple[str, str], ...]:
    return tuple((entry.keyword, entry.value) for entry in entries)


def _comments(ephemeris: EphemerisSegment) -> list[KeywordEntry]:
    return [KeywordEntry(COMMENT, comment) for comment in ephemeris.comments]


def _kvn(segments: Sequence[EphemerisSegment]) -> Iterator[str]:
    yield from kvn_lines([KeywordEntry("CCSDS_OEM_VERS", segments[0].version), *segments[0].header])
    for each in segments:
        yield from ("META_START", *kvn_lines(each.metadata), "META_STOP", *kvn_lines(_comments(each)))
        for time_ns, state in zip(each.time_ns.tolist(), each.states.tolist(), strict=True):
            yield " ".join((format_epoch(time_ns), *map(repr, state)))
        if len(each.covariances):
            yield "COVARIANCE_START"
            yield from _kvn_covariances(each)
            yield "COVARIANCE_STOP"


def _kvn_covariances(each: EphemerisSegment) -> Iterator[str]:
    rows = zip(each.covariance_time_ns.tolist(), each.covariance_frames, each.covariances.tolist(), strict=True)
    for time_ns, frame, terms in rows:
        yield f"EPOCH = {format_epoch(time_ns)}"
        yield f"COV_REF_FRAME = {frame or each.value('REF_FRAME')}"
        for row in range(6):
            start = row * (row + 1) // 2
            yield " ".join(map(repr, terms[start : start + row + 1]))


def _element(segments: Sequence[EphemerisSegment]) -> Element:
    root = root_element("oem", segments[0].version)
    add_section(root, "header", segments[0].header)
    body = SubElement(root, "body")
    for each in segments:
        segment = SubElement(body, "segment")
        add_section(segment, "metadata", each.metadata)
        data = SubElement(segment, "data")
        add_leaves(data, _comments(each))
        for time_ns, state in zip(each.time_ns.tolist(), each.states.tolist(), strict=True):
            add_section(data, "stateVector", [_epoch(time_ns), *map(KeywordEntry, _STATE_NAMES, map(repr, state))])
        rows = zip(each.covariance_time_ns.tolist(), each.covariance_frames, each.covariances.tolist(), strict=True)
        for time_ns, frame, terms in rows:
            named = [KeywordEntry("COV_REF_FRAME", frame or each.value("REF_FRAME"))]
            numbers = map(KeywordEntry, COVARIANCE_TERMS, map(repr, terms))
            add_section(data, "covarianceMatrix", [_epoch(time_ns), *named, *numbers])
    return root


def _epoch(time_ns: int) -> KeywordEntry:
    return KeywordEntry("EPOCH", format_epoch(time_ns))
