"""The measurement models: exact at the truth, derivatives as finite differences say, clocks as documented."""

import numpy as np
import pytest

from sda_platform.orbits.measurements import Measurements, clock_sigma_s, prepare
from sda_platform.orbits.sensors import sensor_registry
from sda_platform_tests.unit.orbits.scenes import (
    SECOND_NS,
    START_NS,
    catalogue,
    changed,
    link_reports,
    observe,
    visible,
)


class _NoNoise(np.random.Generator):
    """A generator whose every normal draw is zero."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def normal(self, *args: object, size: int | tuple[int, ...] = 1, **kwargs: object) -> np.ndarray:
        return np.zeros(size)


def _seen(kind: str) -> tuple[Measurements, np.ndarray, np.ndarray]:
    """Noiseless measurements of 60 objects and their true states."""
    if kind == "isl":
        index = np.arange(60) * 100
        time_ns = np.full(60, START_NS)
        _, r, v = catalogue().at(index, time_ns)
        observations = link_reports(np.full(60, "isl-1"), time_ns, r, v, _NoNoise())
    else:
        every = visible(kind, START_NS)
        seen = every.take(np.random.default_rng(1).choice(len(every.index), 60, replace=False))
        _, r, v = catalogue().at(seen.index, seen.time_ns)
        observations = observe(seen.source_id, seen.time_ns, r, v, _NoNoise())
    return prepare(observations, sensor_registry()), r, v


@pytest.mark.parametrize("kind", ["radar", "optical", "isl"])
def test_true_state_leaves_no_residual(kind: str) -> None:
    measurements, r, v = _seen(kind)
    assert measurements.usable.all()
    np.testing.assert_allclose(measurements.linearise(r, v).residual, 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", ["radar", "optical", "isl"])
def test_partials_are_the_derivative_of_the_residual(kind: str) -> None:
    measurements, r, v = _seen(kind)
    partials = measurements.linearise(r, v).partials
    for axis in range(6):
        step = 1e-2 if axis < 3 else 1e-4
        push = np.zeros(6)
        push[axis] = step
        ahead = measurements.linearise(r + push[:3], v + push[3:]).residual
        behind = measurements.linearise(r - push[:3], v - push[3:]).residual
        # The residual is measured minus predicted, hence the sign.
        np.testing.assert_allclose(
            -(ahead - behind) / (2 * step), partials[:, :, axis], rtol=2e-6, atol=2e-8 if axis < 3 else 1e-7
        )


@pytest.mark.parametrize("kind", ["radar", "optical"])
def test_clock_error_moves_the_reading_as_the_object_moves(kind: str) -> None:
    every = visible(kind, START_NS)
    seen = every.take(np.random.default_rng(1).choice(len(every.index), 60, replace=False))
    _, r, v = catalogue().at(seen.index, seen.time_ns)
    half_ns = SECOND_NS // 20
    residuals = []
    for shift_ns in (-half_ns, half_ns):
        _, r_then, v_then = catalogue().at(seen.index, seen.time_ns + shift_ns)
        then = observe(seen.source_id, seen.time_ns + shift_ns, r_then, v_then, _NoNoise())
        stamped_now = changed(
            then,
            sensor_time_ns=seen.time_ns,
            clock_quality=np.full(60, "onboard_drift"),
            clock_age_s=np.full(60, 1e4),
        )
        residuals.append(prepare(stamped_now, sensor_registry()).linearise(r, v))
    rate = (residuals[1].residual - residuals[0].residual) / (2 * half_ns / 1e9)
    sigma_s = 1.0 / np.sqrt(3.0)
    variance = np.where(residuals[0].residual == 0, 1.0, prepare(stamped_now, sensor_registry()).variance)
    slip = np.einsum("nii->ni", residuals[0].noise) - variance
    used = np.abs(rate) > 1e-5
    np.testing.assert_allclose(np.sqrt(np.abs(slip[used])), np.abs(rate[used]) * sigma_s, rtol=0.02)


def test_clock_bounds_by_quality() -> None:
    quality = np.array(["gps_locked", "ntp_synced", "onboard_drift", "unknown", "", ""])
    age_s = np.array([9.0, 120.0, 50.0, 1.0, np.nan, np.nan])
    is_link = np.array([True, False, True, True, False, True])
    bounds_s = clock_sigma_s(quality, age_s, is_link) * np.sqrt(3.0)
    np.testing.assert_allclose(bounds_s, [1e-6, 0.012, 5e-3, 5.0, 1e-6, 5.0])


def test_range_rate_is_optional_and_missing_sigmas_come_from_the_registry() -> None:
    every = visible("radar", START_NS)
    seen = every.take(slice(0, 3))
    _, r, v = catalogue().at(seen.index, seen.time_ns)
    full = observe(seen.source_id, seen.time_ns, r, v, _NoNoise())
    nothing = np.full(3, np.nan)
    bare = prepare(
        changed(full, range_rate_m_s=nothing, range_rate_sigma_m_s=nothing, range_sigma_m=nothing),
        sensor_registry(),
    )
    assert bare.usable.all() and (bare.dimension == 3).all()
    sensor = sensor_registry()[str(seen.source_id[0])]
    assert bare.variance[0, 0] == pytest.approx((sensor.range_sigma_m / 1000) ** 2)


def test_target_at_the_zenith_or_behind_the_sensor_stays_finite() -> None:
    every = visible("radar", START_NS).take(slice(0, 2))
    _, r, v = catalogue().at(every.index, every.time_ns)
    overhead = observe(every.source_id, every.time_ns, r, v, _NoNoise())
    measurements = prepare(changed(overhead, elevation_rad=np.full(2, np.pi / 2)), sensor_registry())
    above = measurements.site_km * 1.1
    line = measurements.linearise(above, v)
    assert np.isfinite(line.residual).all() and np.isfinite(line.partials).all()
    behind = measurements.linearise(-measurements.site_km, v)
    assert (np.hypot(behind.residual[:, 1], behind.residual[:, 2]) > 1.0).all(), "not mistaken for straight ahead"
