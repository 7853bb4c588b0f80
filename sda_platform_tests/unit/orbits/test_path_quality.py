"""Which states are a path: judged against Kepler orbits that are computed here, of any eccentricity and step."""

import re

import numpy as np
import pytest

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.errors import RecordError
from sda_platform.formats.tabulated_paths import FileObject, PathTable
from sda_platform.orbits.ephemerides import states_at
from sda_platform.orbits.path_quality import WITHIN_KM, fault_of_path, interpolation_errors_km
from sda_platform_tests.support.segments import START_NS

MU = 398_600.8
LEO, GNSS, GEO, TRANSFER = (6_878.0, 0.001), (26_560.0, 0.01), (42_164.0, 0.0), (24_400.0, 0.73)


def kepler(orbit: tuple[float, float], seconds: FloatArray) -> FloatArray:
    """States (n, 6) on an orbit of semi-major axis, km, and eccentricity, from perigee on; inclined by 1 rad."""
    axis_km, e = orbit
    rate = np.sqrt(MU / axis_km**3)
    anomaly = rate * seconds
    for _ in range(60):
        anomaly = anomaly - (anomaly - e * np.sin(anomaly) - rate * seconds) / (1 - e * np.cos(anomaly))
    x, y = axis_km * (np.cos(anomaly) - e), axis_km * np.sqrt(1 - e**2) * np.sin(anomaly)
    speed = rate * axis_km / (1 - e * np.cos(anomaly))
    u, v = -speed * np.sin(anomaly), speed * np.sqrt(1 - e**2) * np.cos(anomaly)
    tilt = np.cos(1.0), np.sin(1.0)
    return np.stack([x, y * tilt[0], y * tilt[1], u, v * tilt[0], v * tilt[1]], axis=1)


def at(seconds: FloatArray) -> IntArray:
    return START_NS + np.rint(seconds * 1e9).astype(np.int64)


def positions_of(seconds: FloatArray, states: FloatArray) -> PathTable:
    table = PathTable(FileObject("25544"), "TEME", "UTC")
    for time_ns, state in zip(at(seconds).tolist(), states.tolist(), strict=True):
        table.add("", time_ns, state[:3], None)
    return table


@pytest.mark.parametrize(
    ("orbit", "step_s", "is_good"),
    [
        (LEO, 60, True), (LEO, 300, True), (LEO, 600, True), (LEO, 900, False), (LEO, 3600, False),
        (GNSS, 900, True), (GNSS, 3600, True), (GNSS, 10_800, False), (GEO, 3600, True), (GEO, 14_400, False),
        (TRANSFER, 60, True), (TRANSFER, 600, False), ((TRANSFER[0], 0.9), 600, False),
    ],
)  # fmt: skip
def test_steps_are_allowed_by_the_error_of_interpolation_on_that_orbit__41(
    orbit: tuple[float, float], step_s: float, is_good: bool
) -> None:
    seconds: FloatArray = step_s * np.arange(0.0, 30.0)
    middles: FloatArray = seconds[:-1] + step_s / 2
    states = kepler(orbit, seconds)
    wrong_km = np.linalg.norm(
        states_at(at(seconds), states, at(middles))[:, :3] - kepler(orbit, middles)[:, :3], axis=1
    )
    np.testing.assert_allclose(interpolation_errors_km(at(seconds), states), wrong_km, rtol=0.01, atol=1e-7)
    if min(np.linalg.norm(states[:, :3], axis=1)) > 5_000:
        assert (fault_of_path(at(seconds), states) is None) == is_good == bool(wrong_km.max() <= WITHIN_KM)


def test_no_state_is_given_in_a_gap__41() -> None:
    """An hour within steps of four minutes."""
    seconds = 240 * np.array([*range(10), *range(25, 40)], np.float64)
    fault = fault_of_path(at(seconds), kepler(LEO, seconds))
    assert fault is not None
    assert "states 10 and 11 are 3840 s apart: a curve between them is off by up to 89 km" in fault.reason
    assert "states every 227 s suffice" in fault.reason


@pytest.mark.parametrize("points", [2, 3])
def test_few_states_allow_only_short_steps__41(points: int) -> None:
    for step_s, is_good in ((60.0, True), (600.0, False)):
        seconds: FloatArray = step_s * np.arange(float(points))
        assert (fault_of_path(at(seconds), kepler(LEO, seconds)) is None) == is_good


def test_velocities_are_those_of_an_orbit_through_the_positions__41() -> None:
    seconds = 60 * np.arange(20.0)
    for orbit in (LEO, GNSS, GEO, TRANSFER):
        states = kepler(orbit, seconds)
        wrong = {
            "zero": states * [1, 1, 1, 0, 0, 0],
            "relative to the turning Earth": states
            - np.pad(np.cross([0, 0, 7.2921e-5], states[:, :3]), ((0, 0), (3, 0))),
            "backwards": states * [1, 1, 1, -1, -1, -1],
            "in miles": states * [1, 1, 1, 0.6214, 0.6214, 0.6214],
            "an escape": states * [1, 1, 1, 1.6, 1.6, 1.6],
        }
        assert {name: fault_of_path(at(seconds), each) is None for name, each in wrong.items()} == dict.fromkeys(
            wrong, False
        )
    moved = kepler(LEO, seconds)
    moved[10:] = kepler((LEO[0] + 200, 0.02), seconds)[10:]
    moved[10:, :3] += kepler(LEO, seconds)[10, :3] - moved[10, :3]
    assert fault_of_path(at(seconds), moved) is None, "a burn of some 100 m/s"


@pytest.mark.parametrize("orbit", [LEO, GNSS, GEO, TRANSFER])
def test_the_steps_that_a_refusal_asks_for_are_taken__41(orbit: tuple[float, float]) -> None:
    seconds: FloatArray = 14_400 * np.arange(12.0)
    states = kepler(orbit, seconds)
    fault = fault_of_path(at(seconds), states)
    with pytest.raises(RecordError) as refusal:
        positions_of(seconds, states).ephemeris()
    assert fault is not None
    for reason in (fault.reason, refusal.value.text):
        (asked_s,) = re.findall(r"every (\d+) s", reason)
        seconds = int(asked_s) * np.arange(40.0)
        states = kepler(orbit, seconds)
        assert fault_of_path(at(seconds), states) is None
    found = positions_of(seconds, states).ephemeris().states[:, 3:]
    assert np.linalg.norm(found - states[:, 3:], axis=1).max() < 5e-4


@pytest.mark.parametrize("orbit", [LEO, GNSS, GEO, TRANSFER])
@pytest.mark.parametrize("step_s", [60, 300, 600, 900, 1800, 3600])
@pytest.mark.parametrize("points", [6, 9, 40])
def test_velocities_that_follow_from_positions_are_good_or_refused__41(
    orbit: tuple[float, float], step_s: float, points: int
) -> None:
    seconds = step_s * np.arange(float(points))
    states = kepler(orbit, seconds)
    try:
        found = positions_of(seconds, states).ephemeris().states[:, 3:]
    except RecordError as refusal:
        assert "too far apart" in refusal.text
        angle = step_s * np.sqrt(MU / np.linalg.norm(states[:, :3], axis=1).min() ** 3)
        assert angle > (0.13 if points == 6 else 0.26), "a step that is short for this orbit is taken"
    else:
        assert np.linalg.norm(found - states[:, 3:], axis=1).max() < 5e-4
