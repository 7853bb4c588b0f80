"""Orbit comprehensive messages (CCSDS 502.0-B-3, OCM) as KVN text or XML: states and covariances of one object."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import SubElement

from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.instants import format_epoch
from sda_platform.formats.ndm import COMMENT, KeywordEntry
from sda_platform.formats.ndm_writing import add_section, kvn_lines, root_element, xml_file

_VERSION: Final = "3.0"
_STATE_UNITS: Final = "[km,km,km,km/s,km/s,km/s]"
_LOWER: Final = "LTM"
_OF_CURVE: Final = ("INTERPOLATION", "INTERPOLATION_DEGREE", "CENTER_NAME")
_USABLE: Final = ("USEABLE_START_TIME", "USEABLE_STOP_TIME")


@dataclass(frozen=True)
class _Block:
    """A trajectory (``name`` traj) or a history of covariances (cov): its keywords, and a line for each time."""

    name: str
    entries: Sequence[KeywordEntry]
    lines: Sequence[str]


def write_ocm_kvn(segments: Sequence[EphemerisSegment], designator: str | None = None) -> bytes:
    """Write the segments of one object's ephemeris as one OCM in KVN.

    Each is a trajectory, with a history of covariances. ``designator`` is the international one. States are of
    predictions; the header is that of the first segment.
    """
    lines = kvn_lines([KeywordEntry("CCSDS_OCM_VERS", _VERSION), *segments[0].header])
    lines += ["META_START", *kvn_lines(_metadata(segments, designator)), "META_STOP"]
    for block in _blocks(segments):
        name = block.name.upper()
        lines += [f"{name}_START", *kvn_lines(block.entries), *block.lines, f"{name}_STOP"]
    return ("\n".join(lines) + "\n").encode()


def write_ocm_xml(segments: Sequence[EphemerisSegment], designator: str | None = None) -> bytes:
    """Write the same in XML. Raises ValueError for a value with characters that XML cannot hold."""
    root = root_element("ocm", _VERSION)
    add_section(root, "header", segments[0].header)
    segment = SubElement(SubElement(root, "body"), "segment")
    add_section(segment, "metadata", _metadata(segments, designator))
    data = SubElement(segment, "data")
    for block in _blocks(segments):
        section = add_section(data, block.name, block.entries)
        for line in block.lines:
            SubElement(section, f"{block.name}Line").text = line
    return xml_file([root])


def _metadata(segments: Sequence[EphemerisSegment], designator: str | None) -> list[KeywordEntry]:
    first, last = segments[0], segments[-1]
    return _entries(
        {
            "OBJECT_NAME": first.value("OBJECT_NAME"),
            "INTERNATIONAL_DESIGNATOR": designator or "UNKNOWN",
            "CATALOG_NAME": "SATCAT",
            "OBJECT_DESIGNATOR": first.value("OBJECT_ID"),
            "TIME_SYSTEM": first.value("TIME_SYSTEM"),
            "EPOCH_TZERO": first.value("START_TIME"),
            "START_TIME": first.value("START_TIME"),
            "STOP_TIME": last.value("STOP_TIME"),
        }
    )


def _blocks(segments: Sequence[EphemerisSegment]) -> Iterator[_Block]:
    for number, each in enumerate(segments, 1):
        yield _trajectory(each, number)
    for number, each in enumerate(segments, 1):
        yield from _covariances(each, number)


def _trajectory(each: EphemerisSegment, number: int) -> _Block:
    comments = [KeywordEntry(COMMENT, comment) for comment in each.comments]
    values = {
        "TRAJ_ID": f"T{number}",
        "TRAJ_BASIS": "PREDICTED",
        **{name: each.value(name) for name in _OF_CURVE},
        "TRAJ_REF_FRAME": each.value("REF_FRAME"),
        **{name: each.value(name) for name in _USABLE},
        "TRAJ_TYPE": "CARTPV",
        "TRAJ_UNITS": _STATE_UNITS,
    }
    lines = list(map(_line, each.time_ns.tolist(), each.states[:, :6].tolist()))
    return _Block("traj", [*comments, *_entries(values)], lines)


def _covariances(each: EphemerisSegment, number: int) -> Iterator[_Block]:
    frames = [frame or each.value("REF_FRAME") for frame in each.covariance_frames]
    rows = zip(frames, each.covariance_time_ns.tolist(), each.covariances.tolist(), strict=True)
    for part, (frame, of_frame) in enumerate(groupby(rows, key=lambda row: row[0]), 1):
        values = {"COV_ID": f"C{number}.{part}", "COV_BASIS": "PREDICTED", "COV_REF_FRAME": frame}
        values |= {"COV_TYPE": "CARTPV", "COV_ORDERING": _LOWER}
        yield _Block("cov", _entries(values), [_line(time_ns, terms) for _, time_ns, terms in of_frame])


def _entries(values: Mapping[str, str]) -> list[KeywordEntry]:
    return [KeywordEntry(name, value) for name, value in values.items() if value]


def _line(time_ns: int, numbers: Sequence[float]) -> str:
    return " ".join((format_epoch(time_ns), *map(repr, numbers)))
