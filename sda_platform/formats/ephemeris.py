"""Ephemerides: states of one object at several times with their covariances, as a message gives them.

States are km and km/s in the frame and time system of the message. This module does not interpret them.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.errors import RecordError, located
from sda_platform.formats.keywords import checked_section, values_of
from sda_platform.formats.ndm import KeywordEntry
from sda_platform.formats.orbit_keywords import COVARIANCE_TERMS, HEADER, OEM_METADATA
from sda_platform.formats.parameter_messages import taken_version
from sda_platform.formats.time_systems import require_time_system, to_utc_ns


@dataclass(frozen=True, eq=False)
class EphemerisSegment:
    """One segment: n states and m covariances, with the header and the metadata as they were written.

    ``time_ns`` (n,) and ``covariance_time_ns`` (m,) are Unix times whose digits are those of the segment's own time
    system. ``states`` is (n, 6) or, with accelerations, (n, 9): km, km/s, km/s². ``covariances`` is (m, 21): the lower
    triangle, row by row, km², km²/s, km²/s²; ``covariance_frames`` names the frame of each ("": that of the states).
    ``is_by_file_name``: only the name of the file says which object it is. ``places``: the lines of the states, where
    they are known.
    """

    version: str
    header: tuple[KeywordEntry, ...]
    metadata: tuple[KeywordEntry, ...]
    comments: tuple[str, ...]
    time_ns: IntArray
    states: FloatArray
    covariance_time_ns: IntArray
    covariances: FloatArray
    covariance_frames: tuple[str, ...]
    is_by_file_name: bool = False
    places: tuple[str, ...] = field(default=(), compare=False)

    def value(self, keyword: str) -> str:
        """Return the value of a keyword of the metadata; empty where it is absent."""
        return values_of(self.metadata).get(keyword, "")

    def located(self, keyword: str) -> AbstractContextManager[None]:
        """Puts the line of a keyword of the metadata, where it is known, before the text of a RecordError."""
        place = next((entry.place for entry in self.metadata if entry.keyword == keyword), "")
        return located(place) if place else nullcontext()

    def located_state(self, row: int) -> AbstractContextManager[None]:
        """Give errors inside the context the line of a state."""
        return located(self.places[row]) if self.places else nullcontext()

    def utc_ns(self, time_ns: IntArray) -> IntArray:
        """Instants of this segment as Unix time UTC. Raises RecordError for a time system that cannot be converted."""
        with self.located("TIME_SYSTEM"):
            return to_utc_ns(time_ns, self.value("TIME_SYSTEM"))


@dataclass(frozen=True, slots=True)
class EphemerisState:
    """A state as read: its line, its time (ns, in the message's time system), and 6 or 9 numbers."""

    place: str
    time_ns: int
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Covariance:
    """A covariance as read: its time, the name of its frame ("": that of the states), and 21 terms."""

    time_ns: int
    frame: str
    terms: Sequence[float]


@dataclass(frozen=True, slots=True)
class EphemerisParts:
    """What a reader collects of one segment; ``header`` begins with the version."""

    header: list[KeywordEntry] = field(default_factory=list)
    metadata: list[KeywordEntry] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    states: list[EphemerisState] = field(default_factory=list)
    covariances: list[Covariance] = field(default_factory=list)


def assembled(parts: EphemerisParts) -> EphemerisSegment:
    """Return the ephemeris that these parts make. Raises RecordError: a keyword is wrong, no state, or times that go
    back.
    """
    version, header = taken_version(parts.header, "oem")
    metadata = checked_section(parts.metadata, OEM_METADATA, "metadata")
    times = np.array([state.time_ns for state in parts.states], np.int64)
    if not parts.states:
        raise RecordError("missing_field", "the segment has no state")
    system = next(entry for entry in metadata if entry.keyword == "TIME_SYSTEM")
    with located(system.place) if system.place else nullcontext():
        require_time_system(system.value)
    for row in np.flatnonzero(np.diff(times) <= 0)[:1].tolist():
        place = parts.states[row + 1].place
        raise RecordError("out_of_range", f"{place}: the epoch is not after that of the state before it")
    # One state without accelerations makes those of the others useless.
    width = min(len(state.values) for state in parts.states)
    return EphemerisSegment(
        version,
        checked_section(header, HEADER, "header"),
        metadata,
        tuple(parts.comments),
        times,
        np.array([state.values[:width] for state in parts.states], np.float64),
        np.array([each.time_ns for each in parts.covariances], np.int64),
        np.array([each.terms for each in parts.covariances], np.float64).reshape(-1, len(COVARIANCE_TERMS)),
        tuple(each.frame for each in parts.covariances),
        places=tuple(state.place for state in parts.states),
    )
