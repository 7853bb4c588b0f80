"""One physical frame: truth in GCRF is the same orbit for every source, whatever frame the source reports in.

Judges: Skyfield for frames and sites, satkit for motion over a leap second. Epochs have UT1 - UTC from -0.7 to +0.6 s;
some days end with a leap second.
"""

from typing import Any

import numpy as np
import pytest
from skyfield.framelib import ICRS_to_J2000, true_equator_and_equinox_of_date

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits import earth_orientation, frames
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.dynamics.forces import Forces
from sda_platform.orbits.dynamics.numerical import integrate
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits
from sda_platform.orbits.earth_parameters import orientation
from sda_platform.orbits.ephemerides import states_at
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.risk.best_probability import best_probabilities
from sda_platform.orbits.risk.validity import Encounters
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.sensing.sensors import sensor_registry
from sda_platform.orbits.two_body import two_body_state
from sda_platform_tests.support import satkit_truth, skyfield_frames
from sda_platform_tests.support.scenes import SECOND_NS, place
from sda_platform_tests.support.sight_lines import angles, enu_of_itrf, seen_by

DAYS = ("1996-01-05", "2008-06-15", "2008-12-31", "2015-06-30", "2016-12-31", "2019-04-10", "2026-11-26")
HEIGHTS_KM = (500.0, 1336.0, 20_200.0, 35_786.0)


def instants(day: str) -> IntArray:
    start = int(np.datetime64(day, "ns").astype(np.int64))
    return start + np.array([0, 25_000, 43_200, 72_000, 86_399], dtype=np.int64) * SECOND_NS


def above(site_gcrf: FloatArray, height_km: float) -> FloatArray:
    """States (n, 6), GCRF, of satellites that fly eastwards 25 degrees off the zenith of a site (n, 6)."""
    up = site_gcrf[:, :3] / np.linalg.norm(site_gcrf[:, :3], axis=1, keepdims=True)
    east = np.cross([0.0, 0.0, 1.0], up)
    east /= np.linalg.norm(east, axis=1, keepdims=True)
    r = (6378.137 + height_km) * (np.cos(0.1) * up + np.sin(0.1) * east)
    along = np.cross(np.cross(r, east), r)
    speed = np.sqrt(398600.4418 / np.linalg.norm(r, axis=1, keepdims=True))
    return np.hstack([r, speed * along / np.linalg.norm(along, axis=1, keepdims=True)])


def residuals(columns: dict[str, Any], truth_gcrf: FloatArray, time_ns: IntArray) -> FloatArray:
    """Measured minus predicted (n, 6) of the platform, against the truth; km, km/s and rad."""
    truth = skyfield_frames.teme_of_gcrf(truth_gcrf, time_ns)
    measured = prepare(ObservationArrays.from_columns({"sensor_time_ns": time_ns, **columns}))
    assert measured.usable.all()
    return measured.linearise(truth[:, :3], truth[:, 3:]).residual


@pytest.mark.parametrize("height_km", HEIGHTS_KM)
@pytest.mark.parametrize("day", DAYS)
def test_a_radars_exact_observation_is_of_the_true_state(day: str, height_km: float) -> None:
    time_ns, sensor = instants(day), sensor_registry()["radar-1"]
    site = skyfield_frames.site_gcrf(*place(sensor), time_ns)
    truth = above(site, height_km)
    line, range_km, rate, _ = seen_by(site, truth)
    east, north, up = enu_of_itrf(sensor, skyfield_frames.itrf_to_gcrf(time_ns).swapaxes(1, 2), line)
    found = residuals(
        {
            "source_kind": ["radar"] * len(time_ns),
            "source_id": [sensor.source_id] * len(time_ns),
            "range_m": 1000 * range_km,
            "range_rate_m_s": 1000 * rate,
            "azimuth_rad": np.arctan2(east, north) % (2 * np.pi),
            "elevation_rad": np.arctan2(up, np.hypot(east, north)),
            "range_sigma_m": np.full(len(time_ns), 10.0),
        },
        truth,
        time_ns,
    )
    assert np.abs(1000 * found[:, 0]).max() < 0.05, "m along the line"
    assert np.abs(1000 * range_km[:, None] * found[:, 1:3]).max() < 0.05, "m across it"
    assert np.abs(1e6 * found[:, 3]).max() < 3, "mm/s: velocities turn like positions"


@pytest.mark.parametrize("frame", ["TEME", "TOD", "EME2000", "ICRF", "GCRF"])
@pytest.mark.parametrize("day", DAYS)
def test_a_telescopes_exact_observation_is_of_the_true_state(day: str, frame: str) -> None:
    time_ns, sensor = instants(day), sensor_registry()["optical-tenerife"]
    site = skyfield_frames.site_gcrf(*place(sensor), time_ns)
    truth = above(site, 35_786.0)
    line, *_ = seen_by(site, truth)
    time = skyfield_frames.instants(time_ns)
    if frame == "TEME":
        line = skyfield_frames.teme_of_gcrf(np.hstack([line, line]), time_ns)[:, :3]
    elif frame == "TOD":
        line = np.einsum("ijn,nj->ni", true_equator_and_equinox_of_date.rotation_at(time), line)
    elif frame == "EME2000":
        line = line @ ICRS_to_J2000.T
    ascension, declination = angles(line)
    found = residuals(
        {
            "source_kind": ["optical"] * len(time_ns),
            "source_id": [sensor.source_id] * len(time_ns),
            "right_ascension_rad": ascension,
            "declination_rad": declination,
            "angle_sigma_rad": np.full(len(time_ns), 5e-6),
            "angle_frame": [frame] * len(time_ns),
        },
        truth,
        time_ns,
    )
    assert np.abs(np.degrees(found[:, :2]) * 3600).max() < 1e-3, "arcseconds"


@pytest.mark.parametrize("day", DAYS)
def test_beacons_and_orbiting_observers_share_the_frame_of_sites(day: str) -> None:
    time_ns = instants(day)
    truth = above(skyfield_frames.site_gcrf(28.0, -16.0, 0.0, time_ns), 700.0)
    observer = above(skyfield_frames.site_gcrf(30.0, -10.0, 0.0, time_ns), 1300.0)
    beacon = 1000 * skyfield_frames.teme_of_gcrf(truth, time_ns)
    own = 1000 * skyfield_frames.teme_of_gcrf(observer, time_ns)
    names = ("x_m", "y_m", "z_m", "vx_m_s", "vy_m_s", "vz_m_s")
    one, hundred = np.ones(len(time_ns)), np.full(len(time_ns), 100.0)
    stated = {"source_id": ["isl-1"] * len(time_ns), "position_sigma_m": one, "velocity_sigma_m_s": one}
    link = {**stated, "source_kind": ["isl"] * len(time_ns), **dict(zip(names, beacon.T, strict=True))}
    assert np.abs(1000 * residuals(link, truth, time_ns)[:, :3]).max() < 0.01
    ascension, declination = angles(seen_by(observer, truth)[0])
    seen = {
        **stated,
        **dict(zip(names, own.T, strict=True)),
        "source_kind": ["optical"] * len(time_ns),
        "position_sigma_m": hundred,
        "right_ascension_rad": ascension,
        "declination_rad": declination,
        "angle_sigma_rad": one * 5e-6,
        "angle_frame": ["ICRF"] * len(time_ns),
    }
    assert np.abs(np.degrees(residuals(seen, truth, time_ns)[:, :2]) * 3600).max() < 1e-2


def message_states(frame: str, states: FloatArray, time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
    """States (n, 6), GCRF, as an operator's message has them in ``frame``."""
    if frame == "ITRF":
        back = skyfield_frames.itrf_to_gcrf(time_ns).swapaxes(1, 2)
        turning = 7.292115146706979e-5 * np.cross(skyfield_frames.pole_gcrf(time_ns), states[:, :3])
        r = np.einsum("nij,nj->ni", back, states[:, :3])
        return r, np.einsum("nij,nj->ni", back, states[:, 3:] - turning)
    if frame == "TEME":
        found = skyfield_frames.teme_of_gcrf(states, time_ns)
        return found[:, :3], found[:, 3:]
    turn = ICRS_to_J2000 if frame == "EME2000" else np.eye(3)
    return states[:, :3] @ turn.T, states[:, 3:] @ turn.T


@pytest.mark.parametrize("frame", ["EME2000", "ICRF", "GCRF", "ITRF", "TEME"])
@pytest.mark.parametrize("day", ["2008-06-15", "2016-12-31", "2024-11-03", "2026-11-26", "2027-09-01"])
def test_an_exact_hit_of_a_track_and_a_message_keeps_its_probability(day: str, frame: str) -> None:
    """A track and an operator's ephemeris, both perfect: two views of one collision, radius 10 m."""
    time_ns = instants(day)[2:3]
    first = above(skyfield_frames.site_gcrf(20.0, 0.0, 0.0, time_ns), 800.0)
    across = np.cross(first[:, :3], first[:, 3:])
    across *= np.linalg.norm(first[:, 3:]) / np.linalg.norm(across)
    second = np.hstack([first[:, :3], 0.2 * first[:, 3:] + np.sqrt(0.96) * across])
    sigmas = np.diag(np.array([5.0, 15.0, 5.0, 5e-3, 15e-3, 5e-3]) ** 2 / 1e6)[None]
    wide = np.zeros((1, 8, 8))
    wide[:, :6, :6] = rtn_to_teme(sigmas, first[:, :3], first[:, 3:])
    track, covariance = UncertainOrbits(time_ns, first, np.zeros((1, 2)), wide).in_teme()
    r, v = earth_orientation.states_in_teme(frame, *message_states(frame, second, time_ns), time_ns)
    encounter = (*halves(track, covariance[:, :6, :6]), r, v, rtn_to_teme(sigmas, r, v), np.array([0.010]))
    right = (*halves(first, wide[:, :6, :6]), *halves(second, rtn_to_teme(sigmas, *halves(second)[:2])), encounter[-1])
    found, expected = (best_probabilities(Encounters(*each)).probability[0] for each in (encounter, right))
    assert expected > 0.3
    assert found == pytest.approx(expected, rel=1e-4)


def halves(state: FloatArray, *covariance: FloatArray) -> tuple[FloatArray, ...]:
    return state[:, :3], state[:, 3:], *covariance


@pytest.mark.parametrize("day", DAYS)
def test_frames_and_sites_are_those_of_skyfield_to_five_millimetres(day: str) -> None:
    time_ns = instants(day)
    states = above(skyfield_frames.site_gcrf(-40.0, 100.0, 0.0, time_ns), 35_786.0)
    off = earth_orientation.teme_of_gcrf(states, time_ns) - skyfield_frames.teme_of_gcrf(states, time_ns)
    assert np.abs(off[:, :3]).max() < 5e-6
    fixed, _ = message_states("ITRF", states, time_ns)
    for turned in (
        np.einsum("nij,nj->ni", earth_orientation.gcrf_to_itrf(time_ns), states[:, :3]),
        frames.teme_to_itrf(skyfield_frames.teme_of_gcrf(states, time_ns)[:, :3], time_ns),
    ):
        np.testing.assert_allclose(turned, fixed, rtol=0, atol=5e-6)
    r, v = frames.site_to_teme(-40.0, 100.0, 500.0, time_ns)
    site = skyfield_frames.teme_of_gcrf(skyfield_frames.site_gcrf(-40.0, 100.0, 500.0, time_ns), time_ns)
    np.testing.assert_allclose(np.hstack([r, v]), site, rtol=0, atol=2e-6)


def test_the_epochs_of_these_tests_have_the_whole_range_of_ut1() -> None:
    found = np.concatenate([orientation(instants(day)).ut1_minus_utc_s for day in DAYS])
    assert found.min() < -0.55 and found.max() > 0.3 and (np.abs(found) > 0.3).mean() > 0.5


LEAP_NS = int(np.datetime64("2017-01-01T00:00:00", "ns").astype(np.int64))
LOW = np.array([-2000.0, 5500.0, 4300.0, -5.1, -4.4, 3.3])


@pytest.mark.skipif(not satkit_truth.AVAILABLE, reason=satkit_truth.WHY_NOT)
def test_a_leap_second_is_a_second_of_numerical_motion() -> None:
    begin_ns, then_ns = LEAP_NS - 3600 * SECOND_NS, np.array([LEAP_NS + 3600 * SECOND_NS])
    truth = satkit_truth.propagated(LOW, begin_ns, then_ns, gravity="egm96", degree=36)
    found = integrate(LOW, begin_ns, then_ns, Forces())
    assert np.linalg.norm(found[0, :3] - truth[0, :3]) < 0.005, "km; a second is 7.6 km"


def test_a_leap_second_is_a_second_of_sgp4_and_of_ephemerides() -> None:
    at = np.array([LEAP_NS - SECOND_NS])
    state = earth_orientation.teme_of_gcrf(LOW[None], at)
    sgp4 = Propagator(mean_elements(state[:, :3], state[:, 3:], at))
    _, r, v = sgp4.at([0], LEAP_NS - SECOND_NS)
    _, later, _ = sgp4.at([0], LEAP_NS + SECOND_NS)
    step_km = np.linalg.norm(two_body_state(r, v, np.array([3.0]))[0] - later)
    assert step_km < 0.1, "from 23:59:59 to 00:00:01 are three seconds"
    times = LEAP_NS + np.array([-120, -60, 0, 60]) * SECOND_NS
    elapsed_s = np.array([-121.0, -61.0, 0.0, 60.0])
    states = np.hstack(two_body_state(np.tile(LOW[:3], (4, 1)), np.tile(LOW[3:], (4, 1)), elapsed_s))
    found = states_at(times, states, np.array([LEAP_NS - 30 * SECOND_NS]))
    expected = two_body_state(LOW[None, :3], LOW[None, 3:], np.array([-31.0]))[0]
    np.testing.assert_allclose(found[:, :3], expected, atol=1e-5)
