"""Pass windows: when each ground sensor can observe each object, from rise over culmination to set.

SGP4 runs once per object and node. The nodes are so dense that the Hermite polynomial between them is off by less than
0.1 km. This moves a rise or set by less than 0.05 s; `pass_search` finds the windows. Geometry only: no refraction, no
light time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.earth_orientation import moon_teme_km
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.frames import (
    DARK_SUN_ELEVATION_RAD,
    enu_basis_itrf,
    geodetic_to_itrf_km,
    gmst82_rad,
    sun_teme_km,
    teme_to_itrf,
    velocity_teme_to_itrf,
)
from sda_platform.orbits.in_force import Terms
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing import pass_search
from sda_platform.orbits.sensing.sensors import Sensor
from sda_platform.units import SECOND_NS

_STEPS_S = (30, 60, 120, 180, 240, 300, 600)
_NODES_PER_REVOLUTION = 28
_OBJECTS_AT_ONCE = 256


@dataclasses.dataclass(frozen=True, eq=False)
class PassWindows:
    """n windows in which a sensor can observe an object, by object, sensor and time.

    A window that is under way at the start or the end of the search is cut there.

    Attributes:
        index, sensor: (n,) positions in the propagator's elements and in the list of sensors.
        aos_ns, tca_ns, los_ns: (n,) acquisition, culmination and loss of signal, Unix time UTC.
        azimuth_aos_rad, azimuth_tca_rad, azimuth_los_rad: (n,) from north by east, [0, 2 pi).
        max_elevation_rad, range_tca_km: (n,) at culmination.
    """

    index: IntArray
    sensor: IntArray
    aos_ns: IntArray
    tca_ns: IntArray
    los_ns: IntArray
    azimuth_aos_rad: FloatArray
    azimuth_tca_rad: FloatArray
    azimuth_los_rad: FloatArray
    max_elevation_rad: FloatArray
    range_tca_km: FloatArray

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: npt.ArrayLike) -> PassWindows:
        """Return the windows at ``rows``: positions or a mask, in that order."""
        chosen = np.asarray(rows)
        return PassWindows(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))


def find_passes(
    propagator: Propagator,
    sensors: Sequence[Sensor],
    start_ns: int,
    end_ns: int,
    *,
    least_s: float = 0.0,
    terms: Terms | None = None,
) -> PassWindows:
    """Every window of at least ``least_s`` seconds in [start, end].

    A radar observes what is above its mask and within its range. A telescope also needs a dark site (Sun below -12
    degrees) and an object in full sunlight. The Moon must be below the horizon or 20 degrees from the line of sight. An
    object has windows as long as its set is usable (`Propagator.usable_parts`). ``terms`` are when each of several
    sets of an object is in force, row by row of the propagator; a window that two sets share is one.
    """
    if end_ns <= start_ns or not len(sensors):
        return _windows(*_NOTHING)
    from_ns, until_ns, _ = propagator.usable_parts(start_ns, end_ns)
    # The ends of a part are refused, if only just.
    from_ns = from_ns + np.where(from_ns > start_ns, SECOND_NS, 0)
    until_ns = until_ns - np.where(until_ns < end_ns, SECOND_NS, 0)
    if terms is not None:
        from_ns, until_ns = np.maximum(from_ns, terms.from_ns), np.minimum(until_ns, terms.until_ns)
    whole = (from_ns == start_ns) & (until_ns == end_ns)
    parts = [_part(propagator, np.flatnonzero(whole), sensors, start_ns, end_ns)]
    for row in np.flatnonzero(~whole & (from_ns < until_ns)).tolist():
        parts.append(_part(propagator, np.array([row]), sensors, int(from_ns[row]), int(until_ns[row])))
    index, sensor, time_ns, found = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if terms is not None:
        index, sensor, time_ns, found = _joined(propagator.elements.norad_id, index, sensor, time_ns, found)
    order = np.lexsort((time_ns[:, 0], sensor, index))
    order = order[time_ns[order, 2] - time_ns[order, 0] >= least_s * 1e9]
    return _windows(index[order], sensor[order], time_ns[order], found[order])


def _windows(index: IntArray, sensor: IntArray, time_ns: IntArray, found: FloatArray) -> PassWindows:
    return PassWindows(index, sensor, *time_ns.T, *found[:, 3:].T)


def _part(
    propagator: Propagator, rows: IntArray, sensors: Sequence[Sensor], start_ns: int, end_ns: int
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return the windows of ``rows`` in [start, end]: rows, sensors, rise, culmination and set (n, 3), and
    their terms.
    """
    found = list(_parts(propagator.take(rows), sensors, start_ns, end_ns)) if len(rows) else []
    if not found:
        return _NOTHING
    index, pair, terms = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return rows[index], pair[:, 1], start_ns + np.round(terms[:, :3] * 1e9).astype(np.int64), terms


def _joined(
    norad_id: IntArray, index: IntArray, sensor: IntArray, time_ns: IntArray, found: FloatArray
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Windows that end where the next one of the same object and sensor begins, as one with the higher culmination."""
    order = np.lexsort((time_ns[:, 0], sensor, norad_id[index]))
    index, sensor, time_ns, found = index[order], sensor[order], time_ns[order], found[order]
    goes_on = (norad_id[index[1:]] == norad_id[index[:-1]]) & (sensor[1:] == sensor[:-1])
    goes_on &= time_ns[1:, 0] - time_ns[:-1, 2] <= SECOND_NS
    kept = []
    for row in range(len(index)):
        if not (row and goes_on[row - 1]):
            kept.append(row)
            continue
        last = kept[-1]
        if found[row, _MAX_ELEVATION] > found[last, _MAX_ELEVATION]:
            index[last], time_ns[last, 1] = index[row], time_ns[row, 1]
            found[last, _AT_CULMINATION] = found[row, _AT_CULMINATION]
        time_ns[last, 2], found[last, _AZIMUTH_LOS] = time_ns[row, 2], found[row, _AZIMUTH_LOS]
    return index[kept], sensor[kept], time_ns[kept], found[kept]


def site_sensor(latitude_deg: float, longitude_deg: float, altitude_m: float, min_elevation_deg: float) -> Sensor:
    """A site without range limit or noise; only elevation limits its passes."""
    place = (latitude_deg, longitude_deg, altitude_m, min_elevation_deg)
    return Sensor("radar-0", "radar", "site", *place, np.inf, np.nan, np.nan, np.nan, np.nan, np.nan)


_NOTHING = (
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.int64),
    np.zeros((0, 3), dtype=np.int64),
    np.zeros((0, pass_search.FOUND_TERMS)),
)
# Terms of a window: azimuth at culmination, greatest elevation and range there; elevation alone; azimuth at set.
_AT_CULMINATION, _MAX_ELEVATION, _AZIMUTH_LOS = [4, 6, 7], 6, 5


def _parts(
    propagator: Propagator, sensors: Sequence[Sensor], start_ns: int, end_ns: int
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """For some objects at a time: their positions, the pairs (object, sensor), and the windows' terms."""
    terms, sky = _sensor_terms(sensors), _sky_terms(start_ns, end_ns)
    upto_s = (end_ns - start_ns) / 1e9
    step_s = _steps_s(propagator.elements)
    for step in _STEPS_S:
        rows = np.flatnonzero(step_s == step)
        # The last node is the end of the search: the set may not be usable beyond it.
        intervals = max(1, int(np.ceil(upto_s / step)))
        time_ns = start_ns + np.round(np.arange(intervals + 1) * (upto_s / intervals * 1e9)).astype(np.int64)
        for first in range(0, len(rows), _OBJECTS_AT_ONCE):
            chosen = rows[first : first + _OBJECTS_AT_ONCE]
            _, r_teme_km, v_teme_km_s = propagator.take(chosen).grid(time_ns)
            r_km = teme_to_itrf(r_teme_km, time_ns)
            v_km_s = velocity_teme_to_itrf(r_teme_km, v_teme_km_s, time_ns)
            pair, found = _searched(r_km, v_km_s, upto_s / intervals, upto_s, terms, sky)
            yield chosen[pair[:, 0]], pair, found


def _searched(
    r_km: FloatArray, v_km_s: FloatArray, step_s: float, upto_s: float, sensors: FloatArray, sky: FloatArray
) -> tuple[IntArray, FloatArray]:
    room = 64 + 8 * len(r_km) * len(sensors)
    while True:
        pair, found = np.empty((room, 2), dtype=np.int64), np.empty((room, pass_search.FOUND_TERMS))
        count = pass_search.search(r_km, v_km_s, step_s, upto_s, sensors, sky, pair, found)
        if count <= room:
            return pair[:count], found[:count]
        room = count


def _steps_s(elements: ElementSets) -> FloatArray:
    """Node spacing (n,), s: a small part of a revolution at the angular rate of the perigee."""
    with np.errstate(all="ignore"):
        faster = np.sqrt(1 - elements.eccentricity**2) / (1 - elements.eccentricity) ** 2
        wanted = 86_400.0 / elements.mean_motion_rev_per_day / faster / _NODES_PER_REVOLUTION
    chosen = np.searchsorted(_STEPS_S, np.nan_to_num(wanted, nan=0.0), side="right") - 1
    return np.asarray(_STEPS_S, dtype=np.float64)[np.maximum(chosen, 0)]


def _sensor_terms(sensors: Sequence[Sensor]) -> FloatArray:
    terms = np.zeros((len(sensors), pass_search.SENSOR_TERMS))
    for row, sensor in zip(terms, sensors, strict=True):
        east, north, up = enu_basis_itrf(sensor.latitude_deg, sensor.longitude_deg)
        row[pass_search.SITE :][:3] = geodetic_to_itrf_km(sensor.latitude_deg, sensor.longitude_deg, sensor.altitude_m)
        row[pass_search.UP :][:3], row[pass_search.EAST :][:3], row[pass_search.NORTH :][:3] = up, east, north
        row[pass_search.SIN_MASK] = np.sin(np.radians(sensor.min_elevation_deg))
        row[pass_search.MAX_RANGE] = sensor.max_range_km
        row[pass_search.SIN_DARK] = np.sin(DARK_SUN_ELEVATION_RAD)
        row[pass_search.IS_OPTICAL] = sensor.kind == "optical"
    return terms


def _sky_terms(start_ns: int, end_ns: int) -> FloatArray:
    # Two more than fit in, so that the last part has an end.
    steps = np.arange(int((end_ns - start_ns) / 1e9 / pass_search.MOON_STEP_S) + 2)
    moon_km = moon_teme_km(start_ns + np.round(steps * (pass_search.MOON_STEP_S * 1e9)).astype(np.int64))
    terms = np.concatenate([np.zeros(pass_search.SKY_TERMS), moon_km.ravel()])
    terms[pass_search.SUN_START :][:3], terms[pass_search.SUN_END :][:3] = sun_teme_km([start_ns, end_ns])
    terms[pass_search.SPAN_S] = (end_ns - start_ns) / 1e9
    terms[pass_search.ANGLE_RAD] = gmst82_rad(start_ns)
    return terms
