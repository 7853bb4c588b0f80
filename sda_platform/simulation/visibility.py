"""Which sensor can see which object when: horizon and range for all, darkness and sunlight for telescopes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.frames import (
    geodetic_to_pef_km,
    radec,
    site_is_dark,
    site_to_teme,
    sun_teme_km,
    sunlit_fraction,
    teme_to_pef,
    topocentric,
)
from sda_platform.orbits.sensing.light import echo_range_km, seen_state
from sda_platform.orbits.sensing.sensors import Sensor
from sda_platform.simulation.randomness import keyed_uniform
from sda_platform.simulation.sky import Sky

_COARSE_STEP_NS: Final = 10_000_000_000
_MARGIN: Final = float(np.sin(np.radians(2.0)))
"""Elevation an object can gain near the horizon between two coarse steps."""


@dataclass(frozen=True)
class Looks:
    """m true lines of sight, in order of time, source and object; the states are those when the light arrives."""

    sensor: npt.NDArray[np.int64]
    index: IntArray
    time_ns: IntArray
    r_teme_km: FloatArray
    v_teme_km_s: FloatArray
    azimuth_rad: FloatArray
    elevation_rad: FloatArray
    range_km: FloatArray
    range_rate_km_s: FloatArray
    right_ascension_rad: FloatArray
    declination_rad: FloatArray


def visible_looks(
    sky: Sky,
    sensors: Sequence[Sensor],
    *,
    start_time_ns: int,
    stop_time_ns: int,
    interval_ns: int,
    capacity: int,
    seed: int,
) -> Looks:
    """Every look of every sensor at what it sees in [start, stop), one per `interval_ns` and object.

    A sensor with more than `capacity` objects above its horizon keeps a seeded choice of them for the stretch.
    """
    sensor, index = _candidates(sky, sensors, start_time_ns, stop_time_ns, capacity, seed)
    pair, time_ns = _ticks(sky, sensors, sensor, index, start_time_ns, stop_time_ns, interval_ns, seed)
    sensor, index = sensor[pair], index[pair]
    order = np.lexsort((sky.norad_id[index], sensor, time_ns))
    sensor, index, time_ns = sensor[order], index[order], time_ns[order]
    error, r_teme_km, v_teme_km_s = sky.states(index, time_ns)
    column = _columns(sensors)
    latitude_deg, longitude_deg, altitude_m = (column[name][sensor] for name in _SITE)
    site_km, site_km_s = site_to_teme(latitude_deg, longitude_deg, altitude_m, time_ns)
    r_seen, v_seen, _ = seen_state(r_teme_km, v_teme_km_s, site_km)
    azimuth, elevation, _, range_rate = topocentric(r_seen, v_seen, latitude_deg, longitude_deg, altitude_m, time_ns)
    range_km = echo_range_km(r_seen, site_km, site_km_s)
    measured = (azimuth, elevation, range_km, range_rate, *radec(r_seen - site_km))
    with np.errstate(invalid="ignore"):
        seen = (error == 0) & (elevation >= np.radians(column["min_elevation_deg"][sensor]))
        seen &= range_km <= column["max_range_km"][sensor]
    optical = np.array([s.kind == "optical" for s in sensors], dtype=bool)[sensor]
    seen &= ~optical | _dark_and_lit(column, sensor, time_ns, r_teme_km)
    kept = (part[seen] for part in (sensor, index, time_ns, r_teme_km, v_teme_km_s, *measured))
    return Looks(*kept)


_SITE: Final = ("latitude_deg", "longitude_deg", "altitude_m")


def _columns(sensors: Sequence[Sensor]) -> dict[str, FloatArray]:
    names = (*_SITE, "min_elevation_deg", "max_range_km")
    return {name: np.array([getattr(s, name) for s in sensors], dtype=np.float64) for name in names}


def _dark_and_lit(
    column: dict[str, FloatArray], sensor: IntArray, time_ns: IntArray, r_teme_km: FloatArray
) -> npt.NDArray[np.bool_]:
    dark = site_is_dark(column["latitude_deg"][sensor], column["longitude_deg"][sensor], time_ns)
    with np.errstate(invalid="ignore"):
        return np.asarray(dark & (sunlit_fraction(r_teme_km, sun_teme_km(time_ns)) >= 1.0))


def _candidates(
    sky: Sky, sensors: Sequence[Sensor], start_time_ns: int, stop_time_ns: int, capacity: int, seed: int
) -> tuple[IntArray, IntArray]:
    """Pairs (sensor, object) that come near each other's horizon on a coarse grid of the stretch."""
    times = np.arange(start_time_ns, stop_time_ns + _COARSE_STEP_NS, _COARSE_STEP_NS, dtype=np.int64)
    r_teme_km = sky.coarse(times)
    r_pef_km = teme_to_pef(r_teme_km, times)
    pairs: list[tuple[IntArray, IntArray]] = []
    for number, sensor in enumerate(sensors):
        site_km = geodetic_to_pef_km(sensor.latitude_deg, sensor.longitude_deg, sensor.altitude_m)
        latitude, longitude = np.radians(sensor.latitude_deg), np.radians(sensor.longitude_deg)
        up = np.array([np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)])
        line_km = r_pef_km - site_km
        range_km = np.linalg.norm(line_km, axis=-1)
        with np.errstate(invalid="ignore"):
            near = line_km @ up >= range_km * (np.sin(np.radians(sensor.min_elevation_deg)) - _MARGIN)
            near &= range_km <= sensor.max_range_km * 1.05
            if sensor.kind == "optical":
                near &= site_is_dark(sensor.latitude_deg, sensor.longitude_deg, times)
                near &= sunlit_fraction(r_teme_km, sun_teme_km(times)) >= 1.0
            rows = np.flatnonzero(near.any(axis=1))
        if len(rows) > capacity:
            preference = keyed_uniform(seed, f"tasking {sensor.source_id}", sky.norad_id[rows].tolist())
            rows = np.sort(rows[np.argsort(preference, kind="stable")[:capacity]])
        pairs.append((np.full(len(rows), number, dtype=np.int64), rows.astype(np.int64)))
    return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])


def _ticks(
    sky: Sky,
    sensors: Sequence[Sensor],
    sensor: IntArray,
    index: IntArray,
    start_time_ns: int,
    stop_time_ns: int,
    interval_ns: int,
    seed: int,
) -> tuple[IntArray, IntArray]:
    """Look times in [start, stop): every pair has its own phase, the same in every stretch."""
    keys = [
        f"{sensors[s].source_id}|{norad_id}"
        for s, norad_id in zip(sensor.tolist(), sky.norad_id[index].tolist(), strict=True)
    ]
    return tick_times(keys, start_time_ns, stop_time_ns, interval_ns, seed)


def tick_times(
    keys: Sequence[str], start_time_ns: int, stop_time_ns: int, interval_ns: int, seed: int
) -> tuple[IntArray, IntArray]:
    """(position in `keys`, time_ns) of every tick in [start, stop), each key ticking at its own phase."""
    phase_ns = (keyed_uniform(seed, "phase", keys) * interval_ns).astype(np.int64)
    first_ns = start_time_ns + (phase_ns - start_time_ns) % interval_ns
    count = (stop_time_ns - start_time_ns) // interval_ns + 1
    time_ns = first_ns[:, None] + np.arange(count, dtype=np.int64) * interval_ns
    row = np.broadcast_to(np.arange(len(keys), dtype=np.int64)[:, None], time_ns.shape)
    inside = time_ns < stop_time_ns
    return row[inside], time_ns[inside]
