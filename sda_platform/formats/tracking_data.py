"""Tracking data: what one path of stations measured at one time, as a message gives it.

Values are in the units of the standard (km, km/s, degrees). This module does not check whether the platform supports
them. What the standard has no keyword for, such as the noise, is a comment of the metadata: STATED and a JSON object.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.isl import CLOCK_KINDS
from sda_platform.formats.json_fields import json_object, number_field
from sda_platform.formats.keywords import checked_section, values_of
from sda_platform.formats.ndm import COMMENT, KeywordEntry
from sda_platform.formats.optical import STATE_OF_OBSERVER
from sda_platform.formats.parameter_messages import taken_version
from sda_platform.formats.tdm_keywords import HEADER, METADATA
from sda_platform.formats.time_systems import require_time_system, to_utc_ns

STATED: Final = "sda-observation "
_STATED_NUMBERS: Final = (
    "range_sigma_m", "range_rate_sigma_m_s", "angle_sigma_rad", "clock_age_s", *STATE_OF_OBSERVER,
)  # fmt: skip
_STATED_TEXTS: Final = {
    "clock_quality": CLOCK_KINDS,
    **{name: ANGLE_REFERENCES[name] for name in ("angle_aberration", "angle_refraction")},
}


@dataclass(frozen=True, slots=True)
class TrackingData:
    """Measurements at one time, with the header and the metadata of their segment.

    ``epoch`` is the time tag as text, in the time system of the metadata; ``measured`` holds keywords and values.
    """

    version: str
    header: tuple[KeywordEntry, ...]
    metadata: tuple[KeywordEntry, ...]
    comments: tuple[str, ...]
    epoch: str
    measured: tuple[KeywordEntry, ...]

    def values(self) -> dict[str, str]:
        """Return the metadata by keyword."""
        return values_of(self.metadata)

    def utc_ns(self) -> int:
        """Return the time tag as Unix time UTC. Raises RecordError for a time system that cannot be converted."""
        time_ns = np.array([parse_epoch_ns(self.epoch)], np.int64)
        return int(to_utc_ns(time_ns, self.values()["TIME_SYSTEM"])[0])

    def numbers(self) -> dict[str, float]:
        """Return the measured values by keyword; of a keyword that is given twice, the last."""
        return {entry.keyword: float(entry.value) for entry in self.measured}

    def stated(self) -> dict[str, Any]:
        """Columns of the observation that comments of the metadata state, by name. Raises RecordError.

        The state of an orbiting observer (STATE_OF_OBSERVER) is in the frame of the angles.
        """
        found: dict[str, Any] = {}
        for entry in self.metadata:
            if entry.keyword == COMMENT and entry.value.startswith(STATED):
                found |= json_object(entry.value.removeprefix(STATED).encode())
        for name, value in found.items():
            if name in _STATED_NUMBERS:
                found[name] = float(number_field(found, name))
            elif value not in _STATED_TEXTS.get(name, ()):
                allowed = ", ".join((*_STATED_NUMBERS, *_STATED_TEXTS))
                raise RecordError("bad_field", f"a comment states {name[:40]!a} {ascii(value)[:40]}; it may: {allowed}")
        return found


def stated_comment(columns: Mapping[str, Any]) -> KeywordEntry:
    """Return the comment by which metadata state these columns of an observation."""
    return KeywordEntry(COMMENT, STATED + json.dumps(columns, sort_keys=True))


@dataclass(frozen=True, slots=True)
class TrackingParts:
    """What a reader collects of one record; ``header`` begins with the version, ``measured`` pairs epoch and entry."""

    header: list[KeywordEntry] = field(default_factory=list)
    metadata: list[KeywordEntry] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    measured: list[tuple[str, KeywordEntry]] = field(default_factory=list)


def assembled(parts: TrackingParts) -> TrackingData:
    """Return the measurements that these parts make. Raises RecordError: a keyword is wrong, or several epochs."""
    version, header = taken_version(parts.header, "tdm")
    metadata = tuple(map(_without_blanks, checked_section(parts.metadata, METADATA, "metadata")))
    instants = {parse_epoch_ns(epoch) for epoch, _ in parts.measured}
    if len(instants) != 1:
        found = "no measurement" if not instants else f"measurements at {len(instants)} times"
        raise RecordError("missing_field" if not instants else "bad_length", f"the segment has {found}")
    epoch = parts.measured[0][0]
    require_time_system(values_of(metadata)["TIME_SYSTEM"])
    measured = tuple(entry for _, entry in parts.measured)
    return TrackingData(
        version,
        checked_section(header, HEADER, "header"),
        metadata,
        tuple(parts.comments),
        epoch,
        measured,
    )


def _without_blanks(entry: KeywordEntry) -> KeywordEntry:
    """A path as the standard has it, without blanks after its commas; other entries as they are."""
    if entry.keyword not in ("PATH", "PATH_1", "PATH_2"):
        return entry
    return replace(entry, value="".join(entry.value.split()))


def same_segment(first: TrackingData, second: TrackingData) -> bool:
    """Return whether both have one header and one metadata, wherever these were read."""
    return all(
        [(e.keyword, e.value, e.unit) for e in ours] == [(e.keyword, e.value, e.unit) for e in theirs]
        for ours, theirs in ((first.header, second.header), (first.metadata, second.metadata))
    )


def segments_of(measurements: Sequence[TrackingData]) -> list[list[TrackingData]]:
    """Group consecutive measurements of one segment; comments are allowed at its beginning only."""
    segments: list[list[TrackingData]] = []
    for each in measurements:
        if segments and not each.comments and same_segment(segments[-1][-1], each):
            segments[-1].append(each)
        else:
            segments.append([each])
    return segments
