"""Ephemerides that are tables of positions: what their readers share. Each becomes an `EphemerisSegment`.

Files of some kinds do not state their object: its number is in the name of the file. So a file lands with a first line
that has its name (`name_line`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sda_platform.formats.ephemeris import Covariance, EphemerisParts, EphemerisSegment, EphemerisState, assembled
from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import format_epoch, require_held
from sda_platform.formats.json_fields import finite
from sda_platform.formats.ndm import KeywordEntry
from sda_platform.units import SECOND_NS

NAME_LINE: Final = b"# file: "
_STATED: Final = re.compile(r"#\s*(?:NORAD_CAT_ID|OBJECT_ID)\s*[:=]\s*(\S+)\s*", re.IGNORECASE)
_OF_MEME: Final = re.compile(r"MEME_(\d{1,9})_([^_]+)")
# What else of a name is an object: its number by a mark, its number alone, its designator. Any other number may be a
# date, a version or the operator's own.
_MARKED: Final = re.compile(r"(?<![0-9A-Za-z])norad[-_ ]?(\d{1,9})(?![0-9A-Za-z])", re.IGNORECASE)
_ALONE: Final = re.compile(r"(\d{5})(?:\.[A-Za-z][0-9A-Za-z]*)?")
_DESIGNATOR: Final = re.compile(r"(?<![0-9A-Za-z])(\d{4}-\d{3}[A-Z]{1,3})(?![0-9A-Za-z])")
# Degree 8 through nine points: a mm/s at the steps that are usual, 15 min for navigation satellites, 1 to 5 min below.
_POINTS: Final = 9
_LEAST_POINTS: Final = 6
_WITHIN_KM_S: Final = 5e-4
"""How much velocities may differ from those of one degree less; their own error is smaller than this."""
_STEPS_PER_PERIOD: Final = 50
"""Enough of them, by the period of a circle at the least distance, of any orbit."""
_MU_KM3_S2: Final = 398_600.4418


@dataclass(frozen=True, slots=True)
class FileObject:
    """The object of a file: its OBJECT_ID and OBJECT_NAME, and whether only the name of the file says it."""

    object_id: str
    name: str = ""
    is_by_file_name: bool = False


@dataclass
class PathTable:
    """What a file states of one object. Times are ns whose digits are those of ``time_system``; km and km/s."""

    object: FileObject
    frame: str
    time_system: str
    originator: str = ""
    created: str = ""
    stop: str = ""
    """When the file states that it ends; empty: it does not."""
    frame_epoch_ns: int | None = None
    """Of which instant the axes of ``frame`` are, where they do not turn with the date."""
    comments: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    times_ns: list[int] = field(default_factory=list)
    positions_km: list[Sequence[float]] = field(default_factory=list)
    velocities_km_s: list[Sequence[float] | None] = field(default_factory=list)
    """One each position; None: it is not known."""
    covariances: list[Covariance] = field(default_factory=list)

    def add(self, place: str, time_ns: int, position_km: Sequence[float], velocity: Sequence[float] | None) -> None:
        """Take the next state; None: its velocity is not known, or comes next. Raises RecordError."""
        self.places.append(place)
        self.times_ns.append(require_held(time_ns, f"{place}: the epoch"))
        self.positions_km.append(position_km)
        self.velocities_km_s.append(velocity)

    def ephemeris(self) -> EphemerisSegment:
        """Return the ephemeris. Raises RecordError: no state, times that go back, or too few positions for
        velocities.
        """
        if not self.times_ns:
            raise RecordError("missing_field", "the file has no state")
        given = [each for each in self.velocities_km_s if each is not None]
        speeds = given if len(given) == len(self.times_ns) else self._speeds_of_positions()
        parts = EphemerisParts(comments=self.comments, covariances=self.covariances)
        first, last = (format_epoch(self.times_ns[row]) for row in (0, -1))
        header = {
            "CCSDS_OEM_VERS": "2.0",
            "CREATION_DATE": self.created or first,
            "ORIGINATOR": self.originator or "UNKNOWN",
        }
        metadata = {
            "OBJECT_NAME": self.object.name or self.object.object_id,
            "OBJECT_ID": self.object.object_id,
            "CENTER_NAME": "EARTH",
            "REF_FRAME": self.frame,
            "TIME_SYSTEM": self.time_system,
            "START_TIME": first,
            "STOP_TIME": self.stop or last,
        }
        if self.frame_epoch_ns is not None:
            metadata["REF_FRAME_EPOCH"] = format_epoch(self.frame_epoch_ns)
        parts.header.extend(KeywordEntry(name, value) for name, value in header.items())
        parts.metadata.extend(KeywordEntry(name, value) for name, value in metadata.items())
        rows = zip(self.places, self.times_ns, self.positions_km, speeds, strict=True)
        parts.states.extend(EphemerisState(place, time_ns, [*r, *v]) for place, time_ns, r, v in rows)
        return replace(assembled(parts), is_by_file_name=self.object.is_by_file_name)

    def _speeds_of_positions(self) -> list[Any]:
        times_ns = np.array(self.times_ns, np.int64)
        steps_s = np.diff(times_ns) / SECOND_NS
        if len(times_ns) < _LEAST_POINTS or (steps_s <= 0).any():
            raise RecordError(
                "missing_field",
                f"it does not have all velocities, and they follow from {_LEAST_POINTS} or more positions that ascend; "
                f"it has {len(times_ns)}",
            )
        positions = np.array(self.positions_km, np.float64)
        found = derivatives(times_ns, positions)
        lower = derivatives(times_ns, positions, min(_POINTS, len(times_ns)) - 1)
        wrong_km_s = np.linalg.norm(found - lower, axis=1).max()
        if not wrong_km_s <= _WITHIN_KM_S:
            radius_km = np.linalg.norm(positions, axis=1).min()
            step_s = 2 * np.pi * np.sqrt(radius_km**3 / _MU_KM3_S2) / _STEPS_PER_PERIOD
            reason = f"velocities that follow are known to {1000 * wrong_km_s:.2g} m/s only, must be to 0.5 m/s"
            raise RecordError(
                "out_of_range",
                f"it does not have all velocities, and positions {steps_s.max():.6g} s apart are too far apart or too "
                f"rough for them: {reason}; give velocities, or {_POINTS} and more positions every {step_s:.0f} s",
            )
        speeds: list[Any] = found.tolist()
        return speeds


def derivatives(
    times_ns: NDArray[np.int64], values: NDArray[np.float64], most_points: int = _POINTS
) -> NDArray[np.float64]:
    """Derivatives (n, k), per second, of ``values`` (n, k) at their times, by polynomials through the nearest ones."""
    count = min(most_points, len(times_ns))
    found = np.empty_like(values)
    for row in range(len(times_ns)):
        first = min(max(row - count // 2, 0), len(times_ns) - count)
        chosen = slice(first, first + count)
        knots_s = (times_ns[chosen] - times_ns[row]) / SECOND_NS
        scale = np.abs(knots_s).max()
        # The coefficients of the polynomial about the row's own time; that of degree one is the derivative.
        powers = np.vander(knots_s / scale, increasing=True)
        found[row] = np.linalg.solve(powers, values[chosen] - values[row])[1] / scale
    return found


def name_line(name: str) -> bytes:
    """Return the first line of a file of this name, by which its object is found."""
    shown = "".join(letter if letter.isprintable() else "_" for letter in name)
    return NAME_LINE + shown.encode("utf-8", "replace") + b"\n"


def object_of_file(lines: Sequence[str]) -> FileObject:
    """Return the object by a comment `# OBJECT_ID = 25544`, else by the name of the file in the first line.

    Raises RecordError where neither says it, or the name has several.
    """
    for line in lines:
        if stated := _STATED.fullmatch(line.strip()):
            return FileObject(stated[1])
    first = lines[0] if lines else ""
    prefix = NAME_LINE.decode()
    name = first.removeprefix(prefix).strip() if first.startswith(prefix) else ""
    if found := _OF_MEME.match(name):
        return FileObject(found[1], found[2], is_by_file_name=True)
    alone = _ALONE.fullmatch(name)
    ids = {*_MARKED.findall(name), *_DESIGNATOR.findall(name), *([alone[1]] if alone else [])}
    if len(ids) == 1:
        return FileObject(ids.pop(), is_by_file_name=True)
    found_in_name = f"has {' and '.join(sorted(ids))}" if ids else "does not say it; other numbers may be dates"
    raise RecordError(
        "missing_field",
        f"the file does not state its object, and its name {ascii(name)[:60]} {found_in_name}: name it like "
        "25544.e, orbit_norad-25544.e, 1998-067A.e or MEME_25544_ISS_1.txt, or add a line # OBJECT_ID = 25544",
    )


def numbers(words: Sequence[str], place: str, names: Sequence[str]) -> list[float]:
    """Return the finite numbers of a line. Raises RecordError, with the place."""
    if len(words) != len(names):
        raise RecordError("bad_length", f"{place}: {len(words)} values, must be {len(names)}")
    try:
        return [finite(word, name) for word, name in zip(words, names, strict=True)]
    except RecordError as error:
        raise RecordError(error.kind, f"{place}: {error.text}") from None
