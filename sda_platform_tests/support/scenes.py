"""Builders: the real catalogue, and what sensors would report of objects displaced from it by a known
amount."""

import dataclasses
import gzip
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

import sda_platform
from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.orbits import frames
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.element_errors import tracking_prior_rtn
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.light import echo_range_km, seen_state
from sda_platform.orbits.sensing.observations import ObservationArrays, stacked
from sda_platform.orbits.sensing.sensors import Sensor, sensor_registry
from sda_platform.orbits.tracking.estimation import StateFits
from sda_platform.orbits.tracking.window_information import WindowFits
from sda_platform.orbits.two_body import two_body_state

DAY_NS = 86_400_000_000_000
SECOND_NS = 1_000_000_000
START_NS = int(np.datetime64("2024-11-01T06:00:00", "ns").astype(np.int64))
CATALOGUE = "simulation/data/celestrak_on_orbit_2024-11-01.omm.csv.gz"


@cache
def catalogue() -> Propagator:
    """All 26,834 objects, initialised."""
    data = gzip.decompress((Path(sda_platform.__file__).parent / CATALOGUE).read_bytes())
    table = decode_element_sets(data, segment_format="omm-csv")
    table = table.filter(pc.is_null(table["error_kind"]))
    return Propagator(ElementSets.from_columns({name: table[name].to_numpy() for name in table.column_names
                                                if name in ElementSets.__dataclass_fields__}))  # fmt: skip


@dataclasses.dataclass(frozen=True)
class VisiblePairs:
    """(k,) pairs of an object and the ground sensor that sees it at ``time_ns``."""

    index: IntArray
    source_id: np.ndarray
    time_ns: IntArray

    def take(self, chosen: Any) -> "VisiblePairs":
        return VisiblePairs(self.index[chosen], self.source_id[chosen], self.time_ns[chosen])


def visible(kind: str, time_ns: int, margin_deg: float = 2.0) -> VisiblePairs:
    """Every catalogued object above the mask and within reach of every sensor of a kind, in registry
    order."""
    error, r, v = catalogue().grid([time_ns])
    index, source = [], []
    for sensor in sensor_registry().values():
        if sensor.kind == kind:
            _, elevation, distance, _ = frames.topocentric(r[:, 0], v[:, 0], *place(sensor), time_ns)
            up = elevation > np.radians(sensor.min_elevation_deg + margin_deg)
            seen = np.flatnonzero((error[:, 0] == 0) & up & (distance < sensor.max_range_km))
            index.append(seen)
            source.append(np.full(len(seen), sensor.source_id))
    rows = np.concatenate(index)
    return VisiblePairs(rows, np.concatenate(source), np.full(len(rows), time_ns, dtype=np.int64))


def place(sensor: Sensor) -> tuple[float, float, float]:
    return sensor.latitude_deg, sensor.longitude_deg, sensor.altitude_m


def prior_draw(index: IntArray, time_ns: IntArray, rng: np.random.Generator) -> FloatArray:
    """Deviations (k, 6) TEME, km and km/s, as large as the prior states catalogued elements err."""
    _, r, v = catalogue().at(index, time_ns)
    in_rtn = tracking_prior_rtn(catalogue(), index, time_ns, r, v)
    factor = np.linalg.cholesky(rtn_to_teme(in_rtn, r, v))
    drawn: FloatArray = np.einsum("kij,kj->ki", factor, rng.normal(size=(len(index), 6)))
    return drawn


def displaced(
    index: IntArray, time_ns: IntArray, deviation: FloatArray, at_ns: IntArray
) -> tuple[FloatArray, FloatArray]:
    """True states at ``time_ns`` of objects off their prediction by ``deviation`` at ``at_ns``, by full
    two-body motion."""
    _, r_at, v_at = catalogue().at(index, at_ns)
    _, r, v = catalogue().at(index, time_ns)
    elapsed_s = (time_ns - at_ns) / 1e9
    r_off, v_off = two_body_state(r_at + deviation[:, :3], v_at + deviation[:, 3:], elapsed_s)
    r_ref, v_ref = two_body_state(r_at, v_at, elapsed_s)
    return r + r_off - r_ref, v + v_off - v_ref


def observe(
    source_id: np.ndarray, time_ns: IntArray, r: FloatArray, v: FloatArray, rng: np.random.Generator
) -> ObservationArrays:
    """Noisy observations of true states (k, 3) by ground sensors, each with its registered noise."""
    sensors = [sensor_registry()[name] for name in source_id.tolist()]
    latitude_deg, longitude_deg, altitude_m = np.array([place(sensor) for sensor in sensors]).T
    site, site_v = frames.site_to_teme(latitude_deg, longitude_deg, altitude_m, time_ns)
    seen_r, seen_v, _ = seen_state(r, v, site)
    azimuth, elevation, _, rate = frames.topocentric(seen_r, seen_v, latitude_deg, longitude_deg, altitude_m, time_ns)
    distance = echo_range_km(seen_r, site, site_v)
    right_ascension, declination = frames.radec(seen_r - site)

    def sigma(name: str) -> FloatArray:
        return np.array([getattr(sensor, name) for sensor in sensors])

    def noisy(value: FloatArray, spread: FloatArray) -> FloatArray:
        return value + spread * rng.normal(size=len(value))

    is_radar = np.array([sensor.kind == "radar" for sensor in sensors])
    columns = {
        "range_m": noisy(distance * 1000.0, sigma("range_sigma_m")),
        "range_rate_m_s": noisy(rate * 1000.0, sigma("range_rate_sigma_m_s")),
        "azimuth_rad": noisy(azimuth, sigma("azimuth_sigma_rad")),
        "elevation_rad": noisy(elevation, sigma("elevation_sigma_rad")),
        "range_sigma_m": sigma("range_sigma_m"),
        "range_rate_sigma_m_s": sigma("range_rate_sigma_m_s"),
    }
    angle_sigma = sigma("angle_sigma_rad")
    sky = {
        "right_ascension_rad": noisy(right_ascension, angle_sigma / np.cos(declination)),
        "declination_rad": noisy(declination, angle_sigma),
        "angle_sigma_rad": angle_sigma,
    }
    return ObservationArrays.from_columns(
        {
            "source_kind": np.where(is_radar, "radar", "optical"),
            "source_id": source_id,
            "sensor_time_ns": time_ns,
        }
        | {name: np.where(is_radar, column, np.nan) for name, column in columns.items()}
        | {name: np.where(is_radar, np.nan, column) for name, column in sky.items()}
        | {"clock_quality": np.full(len(sensors), "gps_locked")}
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Watched:
    """Observations (m,) of ``g`` objects that are off their elements by draws from the prior."""

    observations: ObservationArrays
    group: IntArray
    """(m,) whose reading each is."""
    seen: VisiblePairs
    """(g,) what saw which object; the deviations are those at its time."""
    deviation: FloatArray
    truth: FloatArray
    """(g, 6) states at the sightings' times."""

    @property
    def index(self) -> IntArray:
        """(g,) positions of the objects in the catalogue."""
        return self.seen.index

    def states_at(self, group: IntArray, time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """True states of objects at times."""
        return displaced(self.seen.index[group], time_ns, self.deviation[group], self.seen.time_ns[group])


def watched(seen: VisiblePairs, time_ns: IntArray, rng: np.random.Generator) -> Watched:
    """The objects ``seen`` (g,), each read by its sensor at as many of ``time_ns`` (g * n,) in turn."""
    deviation = prior_draw(seen.index, seen.time_ns, rng)
    _, r, v = catalogue().at(seen.index, seen.time_ns)
    group = np.repeat(np.arange(len(seen.index)), len(time_ns) // len(seen.index))
    states = displaced(seen.index[group], time_ns, deviation[group], seen.time_ns[group])
    observations = observe(seen.source_id[group], time_ns, *states, rng)
    return Watched(observations, group, seen, deviation, np.hstack([r, v]) + deviation)


def link_reports(
    source_id: np.ndarray, time_ns: IntArray, r: FloatArray, v: FloatArray, rng: np.random.Generator
) -> ObservationArrays:
    """Beacons of satellites that know their state to 20 m and 5 cm/s."""
    position = r * 1000.0 + 20.0 * rng.normal(size=r.shape)
    velocity = v * 1000.0 + 0.05 * rng.normal(size=v.shape)
    count = len(time_ns)
    return ObservationArrays.from_columns(
        {"source_kind": ["isl"] * count, "source_id": source_id, "sensor_time_ns": time_ns}
        | dict(zip(("x_m", "y_m", "z_m"), position.T, strict=True))
        | dict(zip(("vx_m_s", "vy_m_s", "vz_m_s"), velocity.T, strict=True))
        | {"position_sigma_m": np.full(count, 20.0), "velocity_sigma_m_s": np.full(count, 0.05)}
        | {"clock_quality": ["gps_locked"] * count, "clock_age_s": np.zeros(count)}
    )


def stack(*parts: ObservationArrays) -> ObservationArrays:
    return stacked(parts)


def changed(observations: ObservationArrays, **columns: Any) -> ObservationArrays:
    return dataclasses.replace(observations, **columns)


def passes(
    index: IntArray, sensors: list[Sensor], hours: int, minutes: int, margin_deg: float = 10.0
) -> list[tuple[int, str, int]]:
    """Object, sensor and time of the middle of each pass of the objects that lasts ``minutes``, by object and time."""
    step_ns = 30 * SECOND_NS
    time_ns = START_NS + np.arange(0, hours * 3600 * SECOND_NS, step_ns, dtype=np.int64)
    error, r, v = catalogue().take(index).grid(time_ns)
    found = []
    for sensor in sensors:
        _, elevation, distance, _ = frames.topocentric(r, v, *place(sensor), time_ns)
        up = (error == 0) & (elevation > np.radians(sensor.min_elevation_deg + margin_deg))
        up &= distance < sensor.max_range_km
        edges = np.diff(np.pad(up, ((0, 0), (1, 1))).astype(int), axis=1)
        rows, begins = np.nonzero(edges == 1)
        _, ends = np.nonzero(edges == -1)
        long = (ends - begins) * step_ns >= minutes * 60 * SECOND_NS
        middles = START_NS + (begins + ends) // 2 * step_ns
        found += [
            (int(index[row]), sensor.source_id, int(middle))
            for row, middle in zip(rows[long], middles[long], strict=True)
        ]
    return sorted(found, key=lambda seen: (seen[0], seen[2]))


def window_fits(found: StateFits, group: IntArray, epoch_ns: IntArray) -> WindowFits:
    """Fits as the filter of tracks takes them: of the objects ``group``, at ``epoch_ns``."""
    return WindowFits(
        group=group,
        epoch_ns=epoch_ns,
        state=np.hstack([found.r_teme_km, found.v_teme_km_s]),
        covariance=found.covariance_teme,
        predicted=np.hstack([found.predicted_r_teme_km, found.predicted_v_teme_km_s]),
        prior_covariance=found.prior_covariance_teme,
    )
