"""A real geostationary satellite, seen for the first time: BeiDou C01 by Wuhan University (data/tracking), April 2019.

Its set is an SGP4 fit to true TEME of the 36 hours before. Truth and frames are not ours.
"""

import csv
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from sda_platform.arrays import FloatArray
from sda_platform.formats.time_systems import tai_to_utc_ns
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.determination.held_back import prediction_held_back
from sda_platform.orbits.determination.track_ephemerides import TrackEphemeris, ephemeris_of_track
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform_tests.support import skyfield_frames
from sda_platform_tests.support.observed_truth import HOUR_NS, ObservedTruth, observed_along, published_set
from sda_platform_tests.support.precise_orbits import PreciseOrbit
from sda_platform_tests.support.scenes import SECOND_NS

DATA = Path(__file__).parents[2] / "data/tracking/beidou_c01_sp3_190409.csv"
SEEN_NS = int(np.datetime64("2019-04-10T12:00", "ns").astype(np.int64))
DAY_S = tuple(range(1800, 86_401, 1800))


@cache
def precise() -> PreciseOrbit:
    with DATA.open() as file:
        table = np.array([[float(value) for value in row] for row in list(csv.reader(file))[1:]])
    time_ns = tai_to_utc_ns((table[:, 0] * 1e9).astype(np.int64))
    turn = skyfield_frames.itrf_to_gcrf(time_ns)
    return PreciseOrbit("C01", time_ns, np.einsum("nij,nj->ni", turn, table[:, 1:]))


def truth_teme(time_ns: np.ndarray) -> FloatArray:
    return skyfield_frames.teme_of_gcrf(precise().states(time_ns), time_ns)


@cache
def published() -> Propagator:
    before_ns = SEEN_NS - np.arange(36, -1, -1) * HOUR_NS
    found = published_set(truth_teme(before_ns), before_ns)
    assert found is not None
    return found


@cache
def observed(hours: int, *only: str) -> ObservedTruth:
    rng = np.random.default_rng(1)
    motion = precise().states
    found = observed_along(motion, published(), "geostationary", SEEN_NS, rng, hours=hours, later_s=DAY_S, only=only)
    assert found is not None
    return found


def test_the_sigmas_of_a_fresh_set_hold() -> None:
    """SGP4 is a kilometre off the plane of a geostationary orbit, whatever the fit."""
    time_ns, rows = SEEN_NS - np.arange(0, 25, 3) * HOUR_NS, np.zeros(9, np.int64)
    _, r, v = published().at(rows, time_ns)
    covariance = rtn_to_teme(element_covariance_rtn(published(), rows, np.full(9, SEEN_NS), r, v), r, v)[:, :3, :3]
    off = truth_teme(time_ns)[:, :3] - r
    squares = np.einsum("ni,ni->n", off, np.linalg.solve(covariance, off[..., None])[..., 0])
    assert squares.max() < chi2.ppf(0.99, 3), "at the epoch, and in the fit, which is as good"


def test_nothing_is_suspected_at_the_first_sight_of_a_satellite_that_does_not_manoeuvre() -> None:
    track = filter_tracks(observed(10).fits, published(), [0])
    assert not track.manoeuvre_ns.any()


def offered(seen: ObservedTruth) -> tuple[TrackEphemeris, float, float]:
    """The ephemeris of a track, and the rms errors of it and of the published set over the next day, km."""
    track = filter_tracks(seen.fits, published(), [0])
    made = ephemeris_of_track(track, published(), CONSTANT_DYNAMICS)
    later_ns = track.epoch_ns + np.array(DAY_S) * SECOND_NS
    _, r, _ = published().at(np.zeros(len(later_ns), np.int64), later_ns)
    ours, theirs = (
        float(np.sqrt(np.mean(np.sum((each - seen.later[:, :3]) ** 2, axis=1))))
        for each in (made.ephemeris.at(later_ns)[0][:, :3], r)
    )
    return made, ours, theirs


@pytest.mark.parametrize("sensor", ["radar-8", "optical-exmouth"])
def test_an_hour_of_one_sensor_does_not_replace_a_set_that_is_better(sensor: str) -> None:
    """It predicts the sensor's next observations better than the set does, but not the orbit of the next day."""
    seen = observed(1, sensor)
    made, ours, theirs = offered(seen)
    assert prediction_held_back(seen.fits, published()).is_better
    assert ours > theirs
    assert not made.is_more_certain


def test_ten_hours_of_all_sensors_replace_the_set() -> None:
    made, ours, theirs = offered(observed(10))
    assert made.is_more_certain
    assert theirs > 5 * ours
    assert theirs == pytest.approx(made.published_sigma_km, rel=0.2)
