"""Clock offsets from residuals: the planted one comes back, and a true clock is found to be true."""

import dataclasses
from functools import cache

import numpy as np
import pytest

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.clock_bias import ClockOffsets, clock_offsets
from sda_platform_tests.unit.orbits.scenes import SECOND_NS, START_NS, catalogue, observe, visible


@cache
def readings(kind: str) -> tuple[ObservationArrays, IntArray]:
    """What sensors report in a minute of objects that are where the catalogue says, and which those are."""
    rng = np.random.default_rng(9)
    seen = visible(kind, START_NS)
    chosen = np.repeat(rng.choice(len(seen.index), 300, replace=False), 4)
    time_ns = START_NS + rng.integers(0, 60 * SECOND_NS, len(chosen))
    _, r, v = catalogue().at(seen.index[chosen], time_ns)
    return observe(seen.source_id[chosen], time_ns, r, v, rng), seen.index[chosen]


def found(kind: str, ahead_ms: float) -> ClockOffsets:
    observations, index = readings(kind)

    def states_at(time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        return catalogue().at(index, time_ns)[1:]

    late = observations.sensor_time_ns + round(ahead_ms * 1e6)
    quality = np.full(len(late), "ntp_synced" if kind == "optical" else "gps_locked")
    shifted = dataclasses.replace(observations, sensor_time_ns=late, clock_quality=quality)
    return clock_offsets(shifted, states_at)


@pytest.mark.parametrize("kind", ["radar", "optical"])
@pytest.mark.parametrize("ahead_ms", [-40.0, 0.0, 15.0])
def test_the_offset_of_every_source_comes_back(kind: str, ahead_ms: float) -> None:
    clocks = found(kind, ahead_ms)
    assert len(clocks.source_id) >= 2
    off = (clocks.offset_s - ahead_ms / 1e3) / clocks.sigma_s
    assert np.sqrt(np.mean(off**2)) < 2.0
    assert (np.abs(off) < 4.0).all()
    assert (clocks.sigma_s < 0.01).all(), "it is known to milliseconds"


def test_residuals_grow_with_the_offset_and_are_noise_without_one() -> None:
    true, late = found("optical", 0.0), found("optical", 50.0)
    assert np.allclose(true.residual_rms, 1.0, atol=0.15)
    assert (late.residual_rms > 2 * true.residual_rms).all()


def test_the_bound_is_that_of_the_clocks_quality() -> None:
    assert np.allclose(found("optical", 0.0).bound_s, 0.010)
    assert np.allclose(found("radar", 0.0).bound_s, 1e-6)


def test_an_uncertain_reference_makes_an_uncertain_offset() -> None:
    observations, index = readings("radar")
    clocks = clock_offsets(observations, lambda time_ns: catalogue().at(index, time_ns)[1:], reference_sigma_s=0.02)
    assert (clocks.sigma_s >= 0.02).all()
