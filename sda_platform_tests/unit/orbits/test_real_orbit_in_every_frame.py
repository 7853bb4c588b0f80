"""A real precise orbit of 2008, seen by radars, beacons and telescopes in every frame: one consistent track.

Truth: Jason-2 by CNES/CLS (data/tracking), UT1 - UTC = -0.48 s. Sites, frames and light time of the observations are
those of Skyfield and `test_one_frame`; the published set is an SGP4 fit to true TEME.
"""

import csv
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2
from skyfield.framelib import ICRS_to_J2000

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.time_systems import tai_to_utc_ns
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.dynamics.orbit_uncertainty import orbits_of_teme
from sda_platform.orbits.earth_parameters import orientation
from sda_platform.orbits.ephemerides import states_at
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import ObservationArrays, stacked
from sda_platform.orbits.sensing.sensors import Sensor, sensor_registry
from sda_platform.orbits.tracking.estimation import fit_windows
from sda_platform.orbits.tracking.filtered_states import FilteredStates
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform_tests.support import skyfield_frames
from sda_platform_tests.support.observed_truth import published_set
from sda_platform_tests.support.scenes import SECOND_NS, place, window_fits
from sda_platform_tests.support.sight_lines import angles, enu_of_itrf, seen_by

DATA = Path(__file__).parents[2] / "data/tracking/jason2_sp3_080830.csv"
EARTH_RAD_S = 7.292115146706979e-5
READINGS, SEEDS = 8, range(4)


@cache
def precise() -> tuple[IntArray, FloatArray]:
    """Times (n,), UTC, and states (n, 6) in GCRF, km and km/s."""
    with DATA.open() as file:
        rows = [[float(value) for value in row] for row in list(csv.reader(file))[1:]]
    table = np.array(rows)
    time_ns = tai_to_utc_ns((table[:, 0] * 1e9).astype(np.int64))
    turn = skyfield_frames.itrf_to_gcrf(time_ns)
    r, v = (np.einsum("nij,nj->ni", turn, part) for part in (table[:, 1:4], table[:, 4:]))
    return time_ns, np.hstack([r, v + EARTH_RAD_S * np.cross(skyfield_frames.pole_gcrf(time_ns), r)])


def truth(time_ns: IntArray) -> FloatArray:
    return states_at(*precise(), time_ns)


@cache
def published() -> Propagator:
    """The set of the first five hours."""
    time_ns = precise()[0][:151:5]
    found = published_set(skyfield_frames.teme_of_gcrf(truth(time_ns), time_ns), time_ns)
    assert found is not None
    return found


@cache
def schedule() -> tuple[tuple[str, int], ...]:
    """Who observes in which window: every four minutes of six hours a sensor that has the satellite above it."""
    begin_ns, windows = int(precise()[0][153]), []
    for number in range(90):
        middle_ns = np.array([begin_ns + number * 240 * SECOND_NS])
        up = [s for s in sensor_registry().values() if elevation_deg(s, middle_ns) > max(s.min_elevation_deg + 3, 12)]
        names = [each.source_id for each in up] + (["isl-1"] if number % 9 == 0 else [])
        if names:
            windows.append((names[number % len(names)], int(middle_ns[0])))
    return tuple(windows)


def elevation_deg(sensor: Sensor, time_ns: IntArray) -> float:
    line = truth(time_ns)[:, :3] - skyfield_frames.site_gcrf(*place(sensor), time_ns)[:, :3]
    _, _, up = enu_of_itrf(sensor, skyfield_frames.itrf_to_gcrf(time_ns).swapaxes(1, 2), line)
    return float(np.degrees(np.arcsin(up / np.linalg.norm(line, axis=1)))[0])


def observed(name: str, time_ns: IntArray, frame: str, rng: np.random.Generator) -> ObservationArrays:
    """What a sensor reports, with the noise that it is registered with."""
    states, count = truth(time_ns), len(time_ns)
    columns: dict[str, Any] = {"sensor_time_ns": time_ns, "source_id": [name] * count}
    columns["clock_quality"], columns["clock_age_s"] = ["gps_locked"] * count, np.zeros(count)
    if name == "isl-1":
        beacon = 1000 * skyfield_frames.teme_of_gcrf(states, time_ns)
        beacon += rng.normal(size=(count, 6)) * np.repeat([20.0, 0.05], 3)
        names = ("x_m", "y_m", "z_m", "vx_m_s", "vy_m_s", "vz_m_s")
        columns |= dict(zip(names, beacon.T, strict=True)) | {"source_kind": ["isl"] * count}
        columns |= {"position_sigma_m": np.full(count, 20.0), "velocity_sigma_m_s": np.full(count, 0.05)}
        return ObservationArrays.from_columns(columns)
    sensor = sensor_registry()[name]
    line, range_km, rate, _ = seen_by(skyfield_frames.site_gcrf(*place(sensor), time_ns), states)
    columns["source_kind"] = [sensor.kind] * count
    if sensor.kind == "radar":
        east, north, up = enu_of_itrf(sensor, skyfield_frames.itrf_to_gcrf(time_ns).swapaxes(1, 2), line)
        values = {
            "range_m": (1000 * range_km, sensor.range_sigma_m),
            "range_rate_m_s": (1000 * rate, sensor.range_rate_sigma_m_s),
            "azimuth_rad": (np.arctan2(east, north) % (2 * np.pi), sensor.azimuth_sigma_rad),
            "elevation_rad": (np.arctan2(up, np.hypot(east, north)), sensor.elevation_sigma_rad),
        }
        columns |= {key: value + sigma * rng.normal(size=count) for key, (value, sigma) in values.items()}
        return ObservationArrays.from_columns(columns)
    if frame == "TEME":
        line = skyfield_frames.teme_of_gcrf(np.hstack([line, line]), time_ns)[:, :3]
    ascension, declination = angles(line @ ICRS_to_J2000.T if frame == "EME2000" else line)
    sigma = sensor.angle_sigma_rad
    columns |= {
        "right_ascension_rad": ascension + sigma * rng.normal(size=count) / np.cos(declination),
        "declination_rad": declination + sigma * rng.normal(size=count),
        "angle_frame": [frame] * count,
    }
    return ObservationArrays.from_columns(columns)


def tracked(frame: str, seed: int) -> tuple[FilteredStates, IntArray]:
    rng, windows = np.random.default_rng(seed), schedule()
    middle_ns = np.array([at for _, at in windows])
    offsets_ns = (np.linspace(-13.5, 13.5, READINGS) * 1e9).astype(np.int64)
    observations = stacked([observed(name, at + offsets_ns, frame, rng) for name, at in windows])
    group, row = np.repeat(np.arange(len(windows)), READINGS), np.zeros(len(windows), np.int64)
    fits = window_fits(fit_windows(observations, group, published(), row, middle_ns), row, middle_ns)
    return filter_tracks(fits, published(), [0]), middle_ns


def test_the_epoch_and_the_schedule_are_what_the_test_needs() -> None:
    assert orientation(precise()[0]).ut1_minus_utc_s.max() < -0.4
    kinds = {name.split("-")[0] for name, _ in schedule()}
    assert kinds == {"radar", "optical", "isl"} and len(schedule()) > 25


@pytest.mark.parametrize("frame", ["EME2000", "ICRF", "TEME"])
def test_the_track_is_as_accurate_as_it_claims_and_nothing_is_a_manoeuvre(frame: str) -> None:
    filtered, ahead = [], []
    for seed in SEEDS:
        track, middle_ns = tracked(frame, seed)
        assert not track.manoeuvre_ns.any(), "nobody manoeuvred"
        off = track.state[0] - skyfield_frames.teme_of_gcrf(truth(middle_ns[-1:]), middle_ns[-1:])[0]
        filtered.append(off @ np.linalg.solve(track.covariance[0], off))
        then_ns = middle_ns[-1:] + 1800 * SECOND_NS
        orbit = orbits_of_teme(track.epoch_ns, track.state, track.coefficients, track.joint_covariance)
        state, covariance = orbit.at(CONSTANT_DYNAMICS, then_ns).in_teme()
        miss = state[0, :3] - skyfield_frames.teme_of_gcrf(truth(then_ns), then_ns)[0, :3]
        ahead.append(miss @ np.linalg.solve(covariance[0, :3, :3], miss))
        assert np.linalg.norm(miss) < 0.1, "km, half an hour ahead"
    assert np.mean(filtered) < chi2.ppf(0.999, 6 * len(SEEDS)) / len(SEEDS)
    assert np.mean(ahead) < chi2.ppf(0.999, 3 * len(SEEDS)) / len(SEEDS)
