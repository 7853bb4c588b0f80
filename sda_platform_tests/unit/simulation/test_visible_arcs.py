"""Untagged angles-only observations form arcs of one object each; arcs of a minute have sound covariances."""

import numpy as np
import pytest

from sda_platform.arrays import IntArray
from sda_platform.orbits.determination.angles_only_arcs import MIN_ARC_OBSERVATIONS, angles_only_arcs
from sda_platform.orbits.determination.differential_correction import first_orbit
from sda_platform.orbits.determination.initial_orbit import NoOrbit
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform_tests.support.observing_night import night
from sda_platform_tests.support.scenes import START_NS, catalogue


def arcs(observations: ObservationArrays) -> list[IntArray]:
    looks = prepare(observations)
    return angles_only_arcs(looks.direction, (looks.time_ns - START_NS) / 1e9, observations.angle_sigma_rad)


def test_each_arc_is_of_one_object_and_no_low_one_is_missed() -> None:
    index, observations = night(120)
    found = arcs(observations)
    assert all(len(np.unique(index[arc])) == 1 for arc in found)
    rows = np.concatenate(found)
    assert len(np.unique(rows)) == len(rows), "no sighting is in two arcs"
    _, r, _ = catalogue().at(index, np.full(len(index), START_NS))
    low = np.linalg.norm(r, axis=1) < 8_400
    assert set(index[low].tolist()) <= {int(index[arc[0]]) for arc in found}


def test_what_is_seen_only_a_few_times_is_no_arc() -> None:
    _, observations = night(30)
    assert arcs(observations) == []


@pytest.mark.parametrize(("seconds", "typical_km", "least"), [(60, 10.0, 7), (120, 2.0, 11)])
def test_an_arc_of_a_minute_of_a_low_object_is_an_honest_orbit(seconds: int, typical_km: float, least: int) -> None:
    """The shortest arcs here have six observations in fifty seconds; each result has its uncertainty."""
    index, observations = night(seconds)
    errors, found = [], arcs(observations)
    assert min(map(len, found)) == MIN_ARC_OBSERVATIONS or seconds > 60
    for arc in found:
        try:
            orbit = first_orbit(observations.take(arc))
        except NoOrbit:
            continue
        _, truth, _ = catalogue().at(index[arc[:1]], orbit.elements.epoch_time_ns)
        off = orbit.r_teme_km - truth[0]
        if np.linalg.norm(truth) < 8_400:
            errors.append(float(np.linalg.norm(off)))
            assert off @ np.linalg.solve(orbit.covariance_teme[:3, :3], off) < 25
    assert len(errors) >= least and np.median(errors) < typical_km
