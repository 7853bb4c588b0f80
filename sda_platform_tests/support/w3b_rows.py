"""The real tracking of Eutelsat W3B (`w3b`) as rows of `observations`, and the list of its five stations.

A pair of azimuth and elevation without a range becomes the direction of a telescope: a radar's row needs all three. The
platform's sidereal time turns it into TEME of date. The effect of the air stays in it and is stated. A range without
angles gets those of its station, interpolated between neighbouring pairs, with a sigma so large that they do not count
twice.
"""

import csv
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.clock import parse_iso_ns
from sda_platform.fusion.fuse import OBSERVATION_COLUMNS, in_order, window_fuser
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.arrow import arrays
from sda_platform.orbits.dynamics.forces import Forces
from sda_platform.orbits.dynamics.numerical import integrate
from sda_platform.orbits.earth_orientation import teme_of_gcrf
from sda_platform.orbits.frames import enu_basis_teme, radec, towards
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.sensing.sensors import Sensor, SensorNetwork
from sda_platform_tests.support import w3b
from sda_platform_tests.support.arc_fit import ArcFit

WINDOW_NS = 30_000_000_000
ANGLE_SIGMA_DEG = 0.02
"""Of calibrated angles. Their scatter about the arc fit is 0.003 to 0.022 degrees, by station."""
BIASED_SIGMA_DEG = 0.1
"""Of angles as reported: the root mean square about the arc fit is 0.08 degrees, biases included."""
ROUGH_SIGMA_DEG = 0.5
"""Of the azimuth and elevation that only accompany a range."""
_MOST_APART_NS = 600_000_000_000
_NAN = float("nan")


def network(angle_sigma_deg: float = ANGLE_SIGMA_DEG) -> SensorNetwork:
    """The five stations, each as a telescope (its directions) and as a radar (its ranges)."""
    sigma, rough = np.radians([angle_sigma_deg, ROUGH_SIGMA_DEG]).tolist()
    sensors = []
    for number, (name, place) in enumerate(_stations().items()):
        where = (place["latitude_deg"], place["longitude_deg"], place["altitude_m"], 0.0, 60_000.0)
        range_sigma_m = w3b.RANGE_SIGMA_KM * 1000.0
        sensors.append(Sensor(f"optical-{number}", "optical", name, *where, _NAN, _NAN, _NAN, _NAN, sigma))
        sensors.append(Sensor(f"radar-{number}", "radar", name, *where, rough, rough, range_sigma_m, _NAN, _NAN))
    return SensorNetwork(sensors)


def arc() -> ArcFit:
    """The arc fit with the satellite's own acceleration: the reference orbit, and the biases of the stations."""
    return w3b.fit(w3b.SUNLIT, own_accelerations=True)


def reference(time_ns: IntArray, forces: Forces | None = None) -> FloatArray:
    """States (n, 6) of the arc fit's orbit at times (n,), TEME of date, km and km/s.

    ``forces``: other forces than those of the arc fit, which include the satellite's own acceleration.
    """
    states = integrate(arc().state, w3b.EPOCH_NS, time_ns, forces or arc().forces)
    return teme_of_gcrf(states, time_ns)


def element_set(share_of_guess: float = 0.0) -> Propagator:
    """The set in force: what SGP4 gives of the published state at its epoch, or of one that is off.

    No published set of that night is at hand. ``share_of_guess``: how far the state is moved towards FIRST_GUESS,
    which is 108 km away.
    """
    state = w3b.PUBLISHED + share_of_guess * (w3b.FIRST_GUESS - w3b.PUBLISHED)
    epoch_ns = np.array([w3b.EPOCH_NS])
    teme = teme_of_gcrf(w3b.in_gcrf(state)[None], epoch_ns)
    return Propagator(mean_elements(teme[:, :3], teme[:, 3:], epoch_ns))


def set_error_km(prior: Propagator, time_ns: IntArray) -> FloatArray:
    """Distance (n,) of a set's prediction from the reference orbit at times (n,), km."""
    _, r, _ = prior.at(np.zeros(len(time_ns), np.int64), time_ns)
    return np.asarray(np.linalg.norm(r - reference(time_ns)[:, :3], axis=1))


@cache
def rows(*, calibrated: bool = True, ranges: bool = False) -> pa.Table:
    """Rows of `observations` in the columns that estimation reads, with `window_start_ns`.

    ``calibrated``: without the stations' biases, which the arc fit found in the same observations. ``ranges``: with
    the ranges that have pairs of their station on both sides (167 of 182).
    """
    names, lines = list(_stations()), _lines()
    count = len(lines)
    station = np.array([names.index(line[2]) for line in lines])
    time_ns = np.array([parse_iso_ns(line[0] + "Z") for line in lines])
    is_range = np.array([line[1] == "RANGE" for line in lines])
    bias = arc().bias[station] * calibrated
    angles = np.radians([[0.0, 0.0] if line[1] == "RANGE" else [float(line[3]), float(line[4])] for line in lines])
    angles[:, 1] -= bias[:, 2]
    angles[:, 0] -= bias[:, 1] / np.cos(angles[:, 1])
    usable = ~is_range
    for number in range(len(names)) if ranges else ():
        pair, alone = (np.flatnonzero(which & (station == number)) for which in (~is_range, is_range))
        usable[alone], angles[alone] = _between(time_ns[pair], angles[pair], time_ns[alone])
    range_m = np.array([float(line[3]) * 1000.0 if line[1] == "RANGE" else _NAN for line in lines])
    place = np.array([list(_stations()[line[2]].values()) for line in lines])
    level = towards(np.pi / 2 - angles[:, 0], angles[:, 1])
    ascension, declination = radec(np.einsum("nij,ni->nj", enu_basis_teme(place[:, 0], place[:, 1], time_ns), level))
    columns: dict[str, Any] = {
        "observation_id": [f"{time}-{number}" for number, time in enumerate(time_ns.tolist())],
        "source_kind": np.where(is_range, "radar", "optical").tolist(),
        "source_id": [f"{'radar' if far else 'optical'}-{s}" for far, s in zip(is_range, station, strict=True)],
        "sensor_time_ns": time_ns,
        "range_m": range_m - bias[:, 0] * 1000.0,
        "azimuth_rad": np.where(is_range, angles[:, 0], _NAN),
        "elevation_rad": np.where(is_range, angles[:, 1], _NAN),
        "right_ascension_rad": np.where(is_range, _NAN, ascension),
        "declination_rad": np.where(is_range, _NAN, declination),
        "angle_aberration": [None if far else "diurnal" for far in is_range],
        "angle_refraction": ["included"] * count,
    }
    made = pa.table({name: _column(name, columns.get(name, [None] * count)) for name in OBSERVATION_COLUMNS})
    return made.append_column("window_start_ns", pa.array(time_ns - time_ns % WINDOW_NS)).filter(pa.array(usable))


def rows_of(forces: Forces, seed: int, *, ranges: bool) -> pa.Table:
    """What the stations would report at the same times of the arc fit's orbit under ``forces``, with white noise."""
    real = in_order(rows(ranges=ranges))
    observations, residual = residuals(real, forces)
    noise = np.random.default_rng(seed).normal(size=(len(observations), 2))
    angle = residual[:, :2] - np.radians(ANGLE_SIGMA_DEG) * noise
    far_m = 1000.0 * (residual[:, 0] - w3b.RANGE_SIGMA_KM * noise[:, 0])
    reported = {name: arrays(real, [name])[name] for name in ("range_m", "right_ascension_rad", "declination_rad")}
    across = np.cos(reported["declination_rad"])
    made = {
        "range_m": reported["range_m"] - far_m,
        "right_ascension_rad": reported["right_ascension_rad"] - angle[:, 0] / across,
        "declination_rad": reported["declination_rad"] - angle[:, 1],
    }
    for name, values in made.items():
        real = real.set_column(real.column_names.index(name), name, _column(name, values))
    return real


def residuals(table: pa.Table, forces: Forces | None = None) -> tuple[ObservationArrays, FloatArray]:
    """The rows as estimation takes them, and measured minus computed (m, 6) of `reference`, km and rad."""
    observations = ObservationArrays.from_columns(arrays(table), network())
    states = reference(observations.sensor_time_ns, forces)
    return observations, prepare(observations).linearise(states[:, :3], states[:, 3:]).residual


def fused(table: pa.Table, prior: Propagator, angle_sigma_deg: float = ANGLE_SIGMA_DEG) -> pa.Table:
    """The fits of all windows, as rows of `fused_tracks`, in order of time."""
    fuse = window_fuser(prior, WINDOW_NS, sensors=network(angle_sigma_deg))
    starts = sorted(set(table["window_start_ns"].to_pylist()))
    return pa.concat_tables(fuse(table.filter(pc.equal(table["window_start_ns"], start))) for start in starts)


def _column(name: str, values: Any) -> pa.Array:
    """A column of `observations`; NaN is null, as in the table."""
    return pa.array(values, OBSERVATIONS.arrow_schema.field(name).type, from_pandas=True)


def _between(pair_ns: IntArray, angles: FloatArray, time_ns: IntArray) -> tuple[Any, FloatArray]:
    """Whether times (n,) have pairs near on both sides, and azimuth and elevation (n, 2) between them, rad."""
    after = np.searchsorted(pair_ns, time_ns)
    low, high = np.maximum(after - 1, 0), np.minimum(after, len(pair_ns) - 1)
    is_near = (after > 0) & (after < len(pair_ns)) & (pair_ns[high] - pair_ns[low] < _MOST_APART_NS)
    share = (time_ns - pair_ns[low]) / np.maximum(pair_ns[high] - pair_ns[low], 1)
    step = angles[high] - angles[low]
    step[:, 0] = (step[:, 0] + np.pi) % (2 * np.pi) - np.pi
    return is_near, angles[low] + share[:, None] * step


@cache
def _stations() -> dict[str, dict[str, float]]:
    with (w3b.DATA / "w3b_stations.csv").open() as file:
        return {row.pop("name"): {key: float(value) for key, value in row.items()} for row in csv.DictReader(file)}


def _lines() -> list[list[str]]:
    text = (w3b.DATA / "W3B.aer").read_text()
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]
