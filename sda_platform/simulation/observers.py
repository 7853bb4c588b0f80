"""Simulated sensors: radars, telescopes and inter-satellite links, from true states to payloads.

Noise is the registry's; every span of time has its own noise stream. Angles refer to what the list of sensors states,
and records of telescopes state it too. Faults are added later (`corruption`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.identity import observation_ids
from sda_platform.formats.isl import encode_isl_frames
from sda_platform.formats.optical import RADIANS_PER_ARCSECOND, OpticalRecord, encode_optical_record
from sda_platform.formats.radar import encode_radar_frames
from sda_platform.orbits.sensing.angle_corrections import references, reported_directions, reported_echoes
from sda_platform.orbits.sensing.sensors import Sensor, SensorNetwork, references_of, sensor_registry
from sda_platform.orbits.sensing.visibility import LinesOfSight
from sda_platform.simulation.constellation import Constellation, transits
from sda_platform.simulation.randomness import keyed_integers, keyed_uniform, stream
from sda_platform.simulation.simulated_observations import SimulatedObservations
from sda_platform.simulation.sky import Sky
from sda_platform.simulation.time_tag_biases import stamped_times
from sda_platform.simulation.visibility import ScheduledTime, tick_times, visible_lines_of_sight
from sda_platform.units import HOUR_NS

_POSITION_SIGMA_M: Final = 5.0
_VELOCITY_SIGMA_M_S: Final = 0.01
_DRIFTING_SHARE: Final = 0.2


@dataclass(frozen=True)
class ObservingPlan:
    """Observation interval and capacity of each kind of sensor, and their systematic errors."""

    radar_interval_s: float = 1.0
    optical_interval_s: float = 10.0
    isl_interval_s: float = 1.0
    isl_satellites: int = 30
    linked: tuple[int, ...] | None = None
    """NORAD ids of the satellites that report their state; a seeded choice of `isl_satellites` where None."""
    radar_capacity: int = 100
    optical_capacity: int = 20
    catalogue_error_s: float = 0.05
    radars_ahead_s: Mapping[str, float] = field(default_factory=dict)
    """Time-tag bias (s) of radars by source id, positive where the clock is ahead; independent of the stated quality.
    """
    constellation: Constellation | None = None
    """Observers in orbit, in the place of the telescopes."""
    sensors: SensorNetwork = field(default_factory=sensor_registry)
    scheduled: tuple[ScheduledTime, ...] = ()
    """What sensors observe besides their survey: the capacities limit the survey only."""


@dataclass(frozen=True)
class Observers:
    """All sensors of one simulated world."""

    sky: Sky
    plan: ObservingPlan
    seed: int

    def radar(self, start_time_ns: int, stop_time_ns: int) -> SimulatedObservations:
        """Simulate radar observations in [start, stop)."""
        sensors = self.plan.sensors.of_kind("radar")
        lines = self._lines_of_sight(
            sensors, start_time_ns, stop_time_ns, self.plan.radar_interval_s, self.plan.radar_capacity
        )
        noise = stream(self.seed, "radar", start_time_ns).standard_normal((4, len(lines.time_ns)))
        source_id = _source_ids(sensors, lines)
        stamped_ns, _ = stamped_times(self.seed, "gps_locked", source_id.tolist(), lines.time_ns)
        ahead_s = np.array([self.plan.radars_ahead_s.get(sensor.source_id, 0.0) for sensor in sensors])
        sensor_time_ns = stamped_ns + (ahead_s[lines.sensor] * 1e9).astype(np.int64)
        sigma = {name: _per_line(sensors, lines, name) for name in _RADAR_SIGMAS}
        elevation_rad = lines.elevation_rad + noise[3] * sigma["elevation_sigma_rad"]
        range_m = lines.range_km * 1e3 + noise[0] * sigma["range_sigma_m"]
        if (refers := references({}, source_id, self.plan.sensors)) is not None:
            elevation_rad, range_m = reported_echoes(elevation_rad, range_m, _sites(sensors, lines), refers)
        track_id = self._track_ids(source_id, lines)
        payloads = encode_radar_frames(
            array_id=np.array([int(s.source_id.removeprefix("radar-")) for s in sensors])[lines.sensor],
            target_track_id=track_id,
            timestamp_ns=sensor_time_ns,
            range_m=range_m,
            range_rate_m_s=lines.range_rate_km_s * 1e3 + noise[1] * sigma["range_rate_sigma_m_s"],
            azimuth_rad=(lines.azimuth_rad + noise[2] * sigma["azimuth_sigma_rad"]) % (2 * np.pi),
            elevation_rad=np.clip(elevation_rad, -np.pi / 2, np.pi / 2),
            sigma_range_m=sigma["range_sigma_m"],
            sigma_rate_m_s=sigma["range_rate_sigma_m_s"],
        )
        native = [str(number) for number in track_id.tolist()]
        return self._of_lines("radar", payloads, native, source_id, lines, sensor_time_ns)

    def optical(self, start_time_ns: int, stop_time_ns: int) -> SimulatedObservations:
        """Optical observations in [start, stop): sunlit objects over dark sites, or as a constellation sees them."""
        if self.plan.constellation is not None:
            return self._from_orbit(self.plan.constellation, start_time_ns, stop_time_ns)
        sensors = self.plan.sensors.of_kind("optical")
        interval_s, capacity = self.plan.optical_interval_s, self.plan.optical_capacity
        lines = self._lines_of_sight(sensors, start_time_ns, stop_time_ns, interval_s, capacity)
        noise = stream(self.seed, "optical", start_time_ns).standard_normal((2, len(lines.time_ns)))
        source_id = _source_ids(sensors, lines)
        sensor_time_ns, age_s = stamped_times(self.seed, "ntp_synced", source_id.tolist(), lines.time_ns)
        ra_rad, dec_rad = lines.right_ascension_rad, lines.declination_rad
        sigma_rad = _per_line(sensors, lines, "angle_sigma_rad")
        ra_rad = (ra_rad + noise[0] * sigma_rad / np.maximum(np.cos(dec_rad), 1e-6)) % (2 * np.pi)
        dec_rad = np.clip(dec_rad + noise[1] * sigma_rad, -np.pi / 2, np.pi / 2)
        if (refers := references({}, source_id, self.plan.sensors)) is not None:
            ra_rad, dec_rad = reported_directions(ra_rad, dec_rad, lines.time_ns, _sites(sensors, lines), refers)
        stated: dict[str, dict[str, Any]] = {
            sensor.source_id: {name: value or None for name, value in references_of(sensor).items()}
            for sensor in sensors
        }
        keys = list(
            zip(source_id.tolist(), self.sky.norad_id[lines.index].tolist(), lines.time_ns.tolist(), strict=True)
        )
        native = [f"{key:016x}" for key in keyed_integers(self.seed, "obs_id", keys).tolist()]
        columns = (sensor_time_ns, ra_rad, dec_rad, sigma_rad / RADIANS_PER_ARCSECOND, age_s)
        payloads = [
            encode_optical_record(
                OpticalRecord(
                    name,
                    time,
                    ra,
                    dec,
                    round(arcsec, 4),
                    source.removeprefix("optical-"),
                    clock_age_s=age,
                    **stated[source],
                )
            )
            for name, source, time, ra, dec, arcsec, age in zip(
                native, source_id.tolist(), *(column.tolist() for column in columns), strict=True
            )
        ]
        return self._of_lines("optical", payloads, native, source_id, lines, sensor_time_ns)

    def _from_orbit(self, seen_by: Constellation, start_time_ns: int, stop_time_ns: int) -> SimulatedObservations:
        found = transits(self.sky, seen_by, self.seed, start_time_ns, stop_time_ns)
        truth = (found.index, found.time_ns, found.r_teme_km, found.v_teme_km_s)
        return self._with_truth("optical", found.payloads, found.native, found.source_id, truth, found.sensor_time_ns)

    def isl(self, start_time_ns: int, stop_time_ns: int) -> SimulatedObservations:
        """State reports of the linked satellites in [start, stop)."""
        satellites = self._linked()
        keys = [f"isl-{norad_id}" for norad_id in self.sky.norad_id[satellites].tolist()]
        interval_ns = int(self.plan.isl_interval_s * 1e9)
        row, time_ns = tick_times(keys, start_time_ns, stop_time_ns, interval_ns, self.seed)
        order = np.lexsort((row, time_ns))
        index, time_ns = satellites[row[order]], time_ns[order]
        error, r_teme_km, v_teme_km_s = self.sky.states(index, time_ns)
        exists = error == 0
        index, time_ns, r_teme_km, v_teme_km_s = index[exists], time_ns[exists], r_teme_km[exists], v_teme_km_s[exists]
        norad_id = self.sky.norad_id[index]
        source_id = np.array([f"isl-{number}" for number in norad_id.tolist()], dtype=np.str_)
        drifting = keyed_uniform(self.seed, "drifting", source_id.tolist()) < _DRIFTING_SHARE
        gps = stamped_times(self.seed, "gps_locked", source_id.tolist(), time_ns)
        own = stamped_times(self.seed, "onboard_drift", source_id.tolist(), time_ns)
        sensor_time_ns, age_s = (np.where(drifting, b, a) for a, b in zip(gps, own, strict=True))
        noise = stream(self.seed, "isl", start_time_ns).standard_normal((2, len(index), 3))
        payloads = encode_isl_frames(
            norad_id=norad_id,
            timestamp_ns=sensor_time_ns,
            position_m=r_teme_km * 1e3 + noise[0] * _POSITION_SIGMA_M,
            velocity_m_s=v_teme_km_s * 1e3 + noise[1] * _VELOCITY_SIGMA_M_S,
            position_sigma_m=np.full(len(index), _POSITION_SIGMA_M),
            velocity_sigma_m_s=np.full(len(index), _VELOCITY_SIGMA_M_S),
            clock_quality=np.where(drifting, "onboard_drift", "gps_locked").tolist(),
            clock_age_s=age_s,
        )
        native = [str(number) for number in norad_id.tolist()]
        truth = (index, time_ns, r_teme_km, v_teme_km_s)
        return self._with_truth("isl", payloads, native, source_id, truth, sensor_time_ns)

    def _linked(self) -> IntArray:
        if self.plan.linked is None:
            return linked_satellites(self.sky, self.plan.isl_satellites, self.seed)
        return np.flatnonzero(np.isin(self.sky.norad_id, self.plan.linked))

    def _lines_of_sight(
        self, sensors: Sequence[Sensor], start_time_ns: int, stop_time_ns: int, interval_s: float, capacity: int
    ) -> LinesOfSight:
        return visible_lines_of_sight(
            self.sky,
            sensors,
            start_time_ns=start_time_ns,
            stop_time_ns=stop_time_ns,
            interval_ns=int(interval_s * 1e9),
            capacity=capacity,
            seed=self.seed,
            scheduled=self.plan.scheduled,
        )

    def _track_ids(self, source_id: npt.NDArray[np.str_], lines: LinesOfSight) -> IntArray:
        """Return the array's own track number: new for every object and hour, so that it does not identify the
        object.
        """
        numbers = (source_id.tolist(), self.sky.norad_id[lines.index].tolist(), (lines.time_ns // HOUR_NS).tolist())
        keys = list(zip(*numbers, strict=True))
        distinct = list(dict.fromkeys(keys))
        hashed = keyed_integers(self.seed, "track", distinct) % np.uint64(2**32)
        by_key = dict(zip(distinct, hashed.tolist(), strict=True))
        return np.array([by_key[key] for key in keys], dtype=np.int64)

    def _of_lines(
        self,
        feed: str,
        payloads: list[bytes],
        native: list[str],
        source_id: npt.NDArray[np.str_],
        lines: LinesOfSight,
        sensor_time_ns: IntArray,
    ) -> SimulatedObservations:
        truth = (lines.index, lines.time_ns, lines.r_teme_km, lines.v_teme_km_s)
        return self._with_truth(feed, payloads, native, source_id, truth, sensor_time_ns)

    def _with_truth(
        self,
        feed: str,
        payloads: list[bytes],
        native: list[str],
        source_id: npt.NDArray[np.str_],
        truth: tuple[IntArray, IntArray, FloatArray, FloatArray],
        sensor_time_ns: IntArray,
    ) -> SimulatedObservations:
        index, time_ns, r_teme_km, v_teme_km_s = truth
        ids = observation_ids(
            feed,
            pa.array(source_id.tolist(), pa.string()),
            pa.array(native, pa.string()),
            pa.array(sensor_time_ns),
            payloads,
        )
        return SimulatedObservations(
            feed=feed,
            payloads=payloads,
            observation_id=ids.to_pylist(),
            source_id=source_id,
            norad_id=self.sky.norad_id[index],
            true_time_ns=time_ns,
            sensor_time_ns=sensor_time_ns,
            received_time_ns=time_ns,
            r_teme_km=r_teme_km,
            v_teme_km_s=v_teme_km_s,
        )


_RADAR_SIGMAS: Final = ("range_sigma_m", "range_rate_sigma_m_s", "azimuth_sigma_rad", "elevation_sigma_rad")


def linked_satellites(sky: Sky, count: int, seed: int) -> IntArray:
    """Return positions in the sky of a seeded choice of `count` payloads (by name: no debris, no rocket body)."""
    payloads = [
        row
        for row, name in enumerate(sky.object_name)
        if name and not name.endswith((" DEB", " R/B")) and " DEB " not in name
    ]
    preference = keyed_uniform(seed, "linked", sky.norad_id[payloads].tolist())
    return np.sort(np.array(payloads, dtype=np.int64)[np.argsort(preference, kind="stable")[:count]])


def _source_ids(sensors: Sequence[Sensor], lines: LinesOfSight) -> npt.NDArray[np.str_]:
    return np.array([sensor.source_id for sensor in sensors], dtype=np.str_)[lines.sensor]


def _sites(sensors: Sequence[Sensor], lines: LinesOfSight) -> FloatArray:
    """Latitude and longitude in degrees, altitude in m (n, 3)."""
    return np.array([(s.latitude_deg, s.longitude_deg, s.altitude_m) for s in sensors]).reshape(-1, 3)[lines.sensor]


def _per_line(sensors: Sequence[Sensor], lines: LinesOfSight, name: str) -> FloatArray:
    return np.array([getattr(sensor, name) for sensor in sensors], dtype=np.float64)[lines.sensor]
