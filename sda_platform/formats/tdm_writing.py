"""Tracking data messages (CCSDS 503.0-B-2, TDM) as KVN text or XML. Numbers are written as they were read."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement

from sda_platform.formats.ndm import COMMENT, KeywordEntry
from sda_platform.formats.ndm_writing import add_leaves, add_section, kvn_lines, root_element, xml_file
from sda_platform.formats.tracking_data import TrackingData, segments_of

Segment = Sequence[TrackingData]


def write_tdm_kvn(measurements: Sequence[TrackingData]) -> bytes:
    """Write measurements as TDM in KVN: one message a header, one segment a set of metadata."""
    lines = [line for message in _messages(measurements) for line in _kvn(message)]
    return ("\n".join(lines) + "\n").encode()


def write_tdm_xml(measurements: Sequence[TrackingData]) -> bytes:
    """Write measurements as TDM in XML: one message a header, one segment a set of metadata."""
    return xml_file([_element(message) for message in _messages(measurements)])


def _messages(measurements: Sequence[TrackingData]) -> Iterator[list[Segment]]:
    segments = segments_of(measurements)
    for _, group in groupby(
        segments, key=lambda each: (each[0].version, [(e.keyword, e.value) for e in each[0].header])
    ):
        yield list(group)


def _kvn(segments: Sequence[Segment]) -> Iterator[str]:
    first = segments[0][0]
    yield from kvn_lines([KeywordEntry("CCSDS_TDM_VERS", first.version), *first.header])
    for segment in segments:
        yield from ("META_START", *kvn_lines(segment[0].metadata), "META_STOP", "DATA_START")
        for each in segment:
            yield from kvn_lines(_comments(each))
            yield from (f"{entry.keyword} = {each.epoch} {entry.value}" for entry in each.measured)
        yield "DATA_STOP"


def _element(segments: Sequence[Segment]) -> Element:
    first = segments[0][0]
    root = root_element("tdm", first.version)
    add_section(root, "header", first.header)
    body = SubElement(root, "body")
    for measurements in segments:
        segment = SubElement(body, "segment")
        add_section(segment, "metadata", measurements[0].metadata)
        data = SubElement(segment, "data")
        for each in measurements:
            add_leaves(data, _comments(each))
            for entry in each.measured:
                add_section(data, "observation", [KeywordEntry("EPOCH", each.epoch), entry])
    return root


def _comments(each: TrackingData) -> list[KeywordEntry]:
    return [KeywordEntry(COMMENT, comment) for comment in each.comments]
