"""Angles as sensors report them, and as estimation uses them: geometric, and in TEME of date for telescopes.

Geometric is the direction from the site to where the object was one light time ago, in axes that move with the Earth's
centre. What a telescope reports differs by three effects:

- **Frame.** Axes of J2000, ICRF or the true equinox of date: up to 0.35 degrees in 2025.
- **Aberration.** The Earth's motion displaces stars by up to 20.5 arcseconds, and satellites, which share it, not. A
  position that is reduced against catalogue places of stars therefore lacks it. The site's own motion about the axis
  (0.3 arcseconds) displaces both. It is left only where the telescope's own axes or apparent places are the reference.
- **Refraction.** Stars near a satellite share it, so only the telescope's own axes contain it. Its model is mean air
  (`troposphere`): good to 5 % above 10 degrees. The finite distance of an object (1 arcsecond at 1,000 km and 30
  degrees) is left out.

A radar's elevation and range can contain refraction. Radio waves bend up to 15 % more, which depends on the humidity.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import BoolArray, FloatArray, IntArray
from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.orbits.earth_orientation import earth_velocity_km_s, gcrf_to_teme, to_gcrf
from sda_platform.orbits.frames import enu_basis_teme, radec, site_to_teme, towards
from sda_platform.orbits.sensing.light import LIGHT_KM_S
from sda_platform.orbits.sensing.sensors import Sensor
from sda_platform.orbits.sensing.troposphere import delay_km, refraction_rad
from sda_platform.units import HOUR_NS

# Within an hour, frames and the direction of the Earth's velocity are linear to 10 microarcseconds.
_NODE_NS = HOUR_NS
_ROUNDS = 8
_DIRECTION, _ECHO = ("right_ascension_rad", "declination_rad"), ("elevation_rad", "range_m")


@dataclasses.dataclass(frozen=True)
class AngleReferences:
    """What the angles of ``m`` observations refer to: positions (m,) in the values of ANGLE_REFERENCES."""

    angle_frame: IntArray
    angle_aberration: IntArray
    angle_refraction: IntArray

    def take(self, rows: IntArray) -> AngleReferences:
        """Select the references at ``rows``."""
        return AngleReferences(*(getattr(self, name)[rows] for name in ANGLE_REFERENCES))

    @property
    def differs(self) -> BoolArray:
        """(m,) whether the angles are other than geometric in TEME of date."""
        return np.asarray((self.angle_frame > 0) | (self.angle_aberration > 0) | (self.angle_refraction > 0))

    def is_of(self, name: str, value: str) -> BoolArray:
        """(m,) whether the reference ``name`` is ``value``."""
        return np.asarray(getattr(self, name) == ANGLE_REFERENCES[name].index(value))


def references(
    columns: Mapping[str, Any], source_id: npt.NDArray[np.str_], sensors: Mapping[str, Sensor]
) -> AngleReferences | None:
    """Find the references of angles, from the records, else the list of sensors; None: all geometric, TEME of date.

    ``columns``: by name of ANGLE_REFERENCES the text of each record, "" where it states nothing; names may be absent.

    Raises:
        ValueError: a text is none of the values.
    """
    found = AngleReferences(*(_codes(name, columns.get(name), source_id, sensors) for name in ANGLE_REFERENCES))
    return found if found.differs.any() else None


def _codes(
    name: str, stated: Any, source_id: npt.NDArray[np.str_], sensors: Mapping[str, Sensor]
) -> npt.NDArray[np.int64]:
    values = ANGLE_REFERENCES[name]
    codes = np.zeros(len(source_id), np.int64)
    for sensor in sensors.values():
        if value := getattr(sensor, name):
            codes[source_id == sensor.source_id] = values.index(value)
    if stated is None:
        return codes
    is_text = isinstance(stated, np.ndarray) and stated.dtype.kind == "U"
    texts = stated if is_text else np.asarray(["" if text is None else text for text in stated], dtype=np.str_)
    if not (texts != "").any():
        return codes
    for text in np.unique(texts).tolist():
        if text and text not in values:
            raise ValueError(f"{name} is {text!r}, must be one of {', '.join(values)}")
        if text:
            codes[texts == text] = values.index(text)
    return codes


def geometric(
    columns: Mapping[str, Any], refers: AngleReferences, sensors: Mapping[str, Sensor]
) -> dict[str, FloatArray]:
    """Return the columns of angles and ranges (m,) of `ObservationArrays` as geometry, from ``columns`` as reported."""
    found = {name: np.array(columns[name], np.float64) for name in (*_DIRECTION, *_ECHO)}
    is_radar = np.asarray(columns["source_kind"]) == "radar"
    for names, is_kind in ((_DIRECTION, ~is_radar), (_ECHO, is_radar)):
        rows = np.flatnonzero(refers.differs & is_kind)
        if len(rows):
            first, second = (found[name][rows] for name in names)
            site, chosen = _sites(columns["source_id"][rows], sensors), refers.take(rows)
            if names == _ECHO:
                values = geometric_echoes(first, second, site, chosen)
            else:
                values = geometric_directions(first, second, columns["sensor_time_ns"][rows], site, chosen)
            for name, value in zip(names, values, strict=True):
                found[name][rows] = value
    return found


def _sites(source_id: npt.NDArray[np.str_], sensors: Mapping[str, Sensor]) -> FloatArray:
    """Latitude, longitude (degrees) and altitude (m), (m, 3), NaN for an unknown sensor."""
    names, position = np.unique(source_id, return_inverse=True)
    known = [sensors.get(name) for name in names.tolist()]
    sites = [(s.latitude_deg, s.longitude_deg, s.altitude_m) if s else (np.nan,) * 3 for s in known]
    return np.array(sites, np.float64).reshape(-1, 3)[position]


def geometric_directions(
    right_ascension_rad: FloatArray,
    declination_rad: FloatArray,
    time_ns: IntArray,
    site: FloatArray,
    refers: AngleReferences,
) -> tuple[FloatArray, FloatArray]:
    """Geometric right ascension and declination (m,) in TEME of date, from what telescopes report.

    ``site`` (m, 3): latitude and longitude in degrees, altitude in m. Without a site, the effects of the site are left.
    """
    into_teme = _into_teme(refers, time_ns)
    direction = np.einsum("nij,nj->ni", into_teme, towards(right_ascension_rad, declination_rad))
    direction = _with_elevation(direction, time_ns, site, refers, lambda seen: seen - _refraction_rad(seen, site))
    return radec(_moved(direction, _still_aberrated_by(refers, time_ns, site)))


def reported_directions(
    right_ascension_rad: FloatArray,
    declination_rad: FloatArray,
    time_ns: IntArray,
    site: FloatArray,
    refers: AngleReferences,
) -> tuple[FloatArray, FloatArray]:
    """Convert geometric directions in TEME of date to what telescopes report: inverse of `geometric_directions`."""
    direction = _moved(towards(right_ascension_rad, declination_rad), -_still_aberrated_by(refers, time_ns, site))
    direction = _with_elevation(direction, time_ns, site, refers, lambda true: _refracted_rad(true, site))
    return radec(np.einsum("nji,nj->ni", _into_teme(refers, time_ns), direction))


def geometric_echoes(
    elevation_rad: FloatArray, range_m: FloatArray, site: FloatArray, refers: AngleReferences
) -> tuple[FloatArray, FloatArray]:
    """Elevation and range (m,) of radars without the effect of the air, where it is included."""
    is_included = refers.is_of("angle_refraction", "included")
    straight_rad = elevation_rad - _refraction_rad(elevation_rad, site)
    straight_m = range_m - 1000.0 * delay_km(np.maximum(elevation_rad, 0.0), site[:, 2])
    return np.where(is_included, straight_rad, elevation_rad), np.where(is_included, straight_m, range_m)


def reported_echoes(
    elevation_rad: FloatArray, range_m: FloatArray, site: FloatArray, refers: AngleReferences
) -> tuple[FloatArray, FloatArray]:
    """Convert geometric elevations and ranges to what radars report: the inverse of `geometric_echoes`."""
    is_included = refers.is_of("angle_refraction", "included")
    bent_rad = _refracted_rad(elevation_rad, site)
    longer_m = range_m + 1000.0 * delay_km(np.maximum(bent_rad, 0.0), site[:, 2])
    return np.where(is_included, bent_rad, elevation_rad), np.where(is_included, longer_m, range_m)


def _into_teme(refers: AngleReferences, time_ns: IntArray) -> FloatArray:
    """Rotations (m, 3, 3) from the frame of each observation into TEME of date."""
    turns = np.broadcast_to(np.eye(3), (len(time_ns), 3, 3)).copy()
    for code in np.unique(refers.angle_frame[refers.angle_frame > 0]).tolist():
        frame, rows = ANGLE_REFERENCES["angle_frame"][code], np.flatnonzero(refers.angle_frame == code)
        turns[rows] = _between_nodes(lambda at_ns, f=frame: gcrf_to_teme(at_ns) @ to_gcrf(f, at_ns), time_ns[rows])
    return turns


def _still_aberrated_by(refers: AngleReferences, time_ns: IntArray, site: FloatArray) -> FloatArray:
    """Velocities (m, 3) in units of that of light, TEME, that are to be added to what is reported."""
    beta = np.zeros((len(time_ns), 3))
    annual = np.flatnonzero(refers.is_of("angle_aberration", "annual"))
    if len(annual):
        beta[annual] = _between_nodes(
            lambda at_ns: np.einsum("nij,nj->ni", gcrf_to_teme(at_ns), earth_velocity_km_s(at_ns)), time_ns[annual]
        )
    diurnal = refers.is_of("angle_aberration", "diurnal") & np.isfinite(site).all(axis=1)
    if diurnal.any():
        latitude_deg, longitude_deg, altitude_m = site[diurnal].T
        beta[diurnal] = -site_to_teme(latitude_deg, longitude_deg, altitude_m, time_ns[diurnal])[1]
    return beta / LIGHT_KM_S


def _moved(direction: FloatArray, beta: FloatArray) -> FloatArray:
    """Directions (m, 3) displaced towards ``beta``. The neglected square of beta is 0.001 arcseconds."""
    across = beta - direction * np.einsum("ni,ni->n", direction, beta)[:, None]
    moved = direction + across
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True))


def _with_elevation(
    direction: FloatArray, time_ns: IntArray, site: FloatArray, refers: AngleReferences, new: Any
) -> FloatArray:
    """Directions whose elevation (m,) is ``new`` of what it was, where refraction is included and the site known."""
    is_bent = refers.is_of("angle_refraction", "included") & np.isfinite(site).all(axis=1)
    if not is_bent.any():
        return direction
    axes = enu_basis_teme(site[:, 0], site[:, 1], time_ns)
    local = np.einsum("nij,nj->ni", axes, direction)
    azimuth, elevation = np.arctan2(local[:, 0], local[:, 1]), np.arcsin(np.clip(local[:, 2], -1.0, 1.0))
    turned = np.einsum("nji,nj->ni", axes, towards(np.pi / 2 - azimuth, new(elevation)))
    return np.where(is_bent[:, None], turned, direction)


def _refracted_rad(true_rad: FloatArray, site: FloatArray) -> FloatArray:
    """Return the elevation at which an object is seen."""
    seen = true_rad
    for _ in range(_ROUNDS):
        seen = true_rad + _refraction_rad(seen, site)
    return seen


def _refraction_rad(seen_rad: FloatArray, site: FloatArray) -> FloatArray:
    return refraction_rad(seen_rad, site[:, 2])


def _between_nodes(exact: Any, time_ns: IntArray) -> FloatArray:
    """A slow function of time (m, ...) by straight lines between whole hours, so that it depends on the time alone."""
    first = time_ns // _NODE_NS
    nodes, place = np.unique(np.concatenate([first, first + 1]), return_inverse=True)
    values = exact(nodes * _NODE_NS)
    low, high = values[place[: len(first)]], values[place[len(first) :]]
    share = ((time_ns - first * _NODE_NS) / _NODE_NS).reshape(-1, *(1,) * (values.ndim - 1))
    return np.asarray(low + share * (high - low))
