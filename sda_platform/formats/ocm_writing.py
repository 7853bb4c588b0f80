"""Orbit comprehensive messages (CCSDS 502.0-B-3, OCM) as KVN text: the states and covariances of one object."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from sda_platform.formats.ephemeris import EphemerisSegment
from sda_platform.formats.instants import format_epoch
from sda_platform.formats.ndm import COMMENT, KeywordEntry
from sda_platform.formats.ndm_writing import kvn_lines

_VERSION: Final = "3.0"
_STATE_UNITS: Final = "[km,km,km,km/s,km/s,km/s]"
_LOWER: Final = "LTM"
_OF_CURVE: Final = ("INTERPOLATION", "INTERPOLATION_DEGREE", "CENTER_NAME")
_USABLE: Final = ("USEABLE_START_TIME", "USEABLE_STOP_TIME")


def write_ocm(segments: Sequence[EphemerisSegment], designator: str | None = None) -> bytes:
    """Write the segments of one object's ephemeris as one OCM; each is a trajectory, with a history of covariances.

    ``designator`` is the international one. States are of predictions; the header is that of the first segment.
    """
    first, last = segments[0], segments[-1]
    lines = kvn_lines([KeywordEntry("CCSDS_OCM_VERS", _VERSION), *first.header])
    metadata = {
        "OBJECT_NAME": first.value("OBJECT_NAME"),
        "INTERNATIONAL_DESIGNATOR": designator or "UNKNOWN",
        "CATALOG_NAME": "SATCAT",
        "OBJECT_DESIGNATOR": first.value("OBJECT_ID"),
        "TIME_SYSTEM": first.value("TIME_SYSTEM"),
        "EPOCH_TZERO": first.value("START_TIME"),
        "START_TIME": first.value("START_TIME"),
        "STOP_TIME": last.value("STOP_TIME"),
    }
    lines += ["META_START", *_entries(metadata), "META_STOP"]
    for number, each in enumerate(segments, 1):
        lines += _trajectory(each, number)
    for number, each in enumerate(segments, 1):
        lines += _covariances(each, number)
    return ("\n".join(lines) + "\n").encode()


def _trajectory(each: EphemerisSegment, number: int) -> Iterator[str]:
    yield "TRAJ_START"
    yield from kvn_lines(KeywordEntry(COMMENT, comment) for comment in each.comments)
    values = {
        "TRAJ_ID": f"T{number}",
        "TRAJ_BASIS": "PREDICTED",
        **{name: each.value(name) for name in _OF_CURVE},
        "TRAJ_REF_FRAME": each.value("REF_FRAME"),
        **{name: each.value(name) for name in _USABLE},
        "TRAJ_TYPE": "CARTPV",
        "TRAJ_UNITS": _STATE_UNITS,
    }
    yield from _entries(values)
    yield from map(_line, each.time_ns.tolist(), each.states[:, :6].tolist())
    yield "TRAJ_STOP"


def _covariances(each: EphemerisSegment, number: int) -> Iterator[str]:
    frames = [frame or each.value("REF_FRAME") for frame in each.covariance_frames]
    rows = zip(frames, each.covariance_time_ns.tolist(), each.covariances.tolist(), strict=True)
    for part, (frame, of_frame) in enumerate(groupby(rows, key=lambda row: row[0]), 1):
        yield "COV_START"
        values = {"COV_ID": f"C{number}.{part}", "COV_BASIS": "PREDICTED", "COV_REF_FRAME": frame}
        yield from _entries({**values, "COV_TYPE": "CARTPV", "COV_ORDERING": _LOWER})
        yield from (_line(time_ns, terms) for _, time_ns, terms in of_frame)
        yield "COV_STOP"


def _entries(values: dict[str, str]) -> list[str]:
    return kvn_lines(KeywordEntry(name, value) for name, value in values.items() if value)


def _line(time_ns: int, numbers: Sequence[float]) -> str:
    return " ".join((format_epoch(time_ns), *map(repr, numbers)))
