"""The measurement models: exact at the truth, derivatives as finite differences say, clocks as documented."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from skyfield import api
from skyfield.functions import mxv
from skyfield.sgp4lib import TEME

from sda_platform.orbits import frames
from sda_platform.orbits.sensing.light import seen_state
from sda_platform.orbits.sensing.measurements import Measurements, clock_bound_s, prepare
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.sensing.sensors import sensor_registry
from sda_platform_tests.support.scenes import (
    SECOND_NS,
    START_NS,
    catalogue,
    changed,
    link_reports,
    observe,
    place,
    visible,
)


class _NoNoise(np.random.Generator):
    """A generator whose every normal draw is zero."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def normal(self, *args: Any, size: Any = 1, **kwargs: Any) -> Any:
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
    return prepare(observations), r, v


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
        # The residual is measured minus predicted, hence the sign. By its speed, one part in 30,000 of an object's way
        # goes into the delay of its light, which the partials leave out.
        np.testing.assert_allclose(
            -(ahead - behind) / (2 * step), partials[:, :, axis], rtol=2e-5, atol=6e-5 * np.abs(partials).max()
        )


@pytest.mark.parametrize("kind", ["radar", "optical"])
def test_time_tag_error_shifts_the_observation_along_the_objects_motion(kind: str) -> None:
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
        residuals.append(prepare(stamped_now).linearise(r, v))
    rate = (residuals[1].residual - residuals[0].residual) / (2 * half_ns / 1e9)
    sigma_s = 1.0 / np.sqrt(3.0)
    variance = np.where(residuals[0].residual == 0, 1.0, prepare(stamped_now).variance)
    slip = np.einsum("nii->ni", residuals[0].noise) - variance
    used = np.abs(rate) > 1e-5
    np.testing.assert_allclose(np.sqrt(np.abs(slip[used])), np.abs(rate[used]) * sigma_s, rtol=0.02)


def test_clock_bounds_by_quality__DP3_I4() -> None:
    stamped = ObservationArrays.from_columns(
        {
            "source_kind": ["isl", "radar", "isl", "isl", "radar", "isl"],
            "source_id": ["a"] * 6,
            "sensor_time_ns": [START_NS] * 6,
            "clock_quality": ["gps_locked", "ntp_synced", "onboard_drift", "unknown", "", ""],
            "clock_age_s": [9.0, 120.0, 50.0, 1.0, np.nan, np.nan],
        }
    )
    np.testing.assert_allclose(clock_bound_s(stamped), [1e-6, 0.012, 5e-3, 5.0, 1e-6, 5.0])


def test_range_rate_is_optional_and_missing_sigmas_come_from_the_registry() -> None:
    every = visible("radar", START_NS)
    seen = every.take(slice(0, 3))
    _, r, v = catalogue().at(seen.index, seen.time_ns)
    full = observe(seen.source_id, seen.time_ns, r, v, _NoNoise())
    nothing = np.full(3, np.nan)
    bare = prepare(changed(full, range_rate_m_s=nothing, range_rate_sigma_m_s=nothing, range_sigma_m=nothing))
    assert bare.usable.all() and (bare.dimension == 3).all()
    sensor = sensor_registry()[str(seen.source_id[0])]
    assert bare.variance[0, 0] == pytest.approx((sensor.range_sigma_m / 1000) ** 2)


def test_target_at_the_zenith_or_behind_the_sensor_stays_finite() -> None:
    every = visible("radar", START_NS).take(slice(0, 2))
    _, r, v = catalogue().at(every.index, every.time_ns)
    overhead = observe(every.source_id, every.time_ns, r, v, _NoNoise())
    measurements = prepare(changed(overhead, elevation_rad=np.full(2, np.pi / 2)))
    above = measurements.site_km * 1.1
    line = measurements.linearise(above, v)
    assert np.isfinite(line.residual).all() and np.isfinite(line.partials).all()
    behind = measurements.linearise(-measurements.site_km, v)
    assert (np.hypot(behind.residual[:, 1], behind.residual[:, 2]) > 1.0).all(), "not mistaken for straight ahead"


@pytest.mark.parametrize("kind", ["radar", "optical"])
def test_a_sensor_observes_the_sgp4_state_at_light_emission(kind: str) -> None:
    every = visible(kind, START_NS)
    seen = every.take(np.random.default_rng(2).choice(len(every.index), 200, replace=False))
    sites = [place(sensor_registry()[name]) for name in seen.source_id.tolist()]
    latitude_deg, longitude_deg, altitude_m = np.array(sites).T
    site, _ = frames.site_to_teme(latitude_deg, longitude_deg, altitude_m, seen.time_ns)
    left_ns = seen.time_ns.copy()
    for _ in range(4):
        _, then, _ = catalogue().at(seen.index, left_ns)
        left_ns = seen.time_ns - (np.linalg.norm(then - site, axis=1) / 299_792.458 * 1e9).astype(np.int64)
    _, r, v = catalogue().at(seen.index, seen.time_ns)
    measurements = prepare(observe(seen.source_id, seen.time_ns, r, v, _NoNoise()))
    unit = (then - site) / np.linalg.norm(then - site, axis=1, keepdims=True)
    # In deep space SGP4's velocity is not quite the derivative of its position: 0.3 m over the light time.
    np.testing.assert_allclose(measurements.direction, unit, atol=2e-8)
    np.testing.assert_allclose(measurements.linearise(r, v).residual, 0.0, atol=1e-9)
    moved = np.linalg.norm(then - r, axis=1)
    assert moved.max() > 0.01, "and it is not where the object is now"
    if kind == "radar":
        sent_ns = 2 * left_ns - seen.time_ns
        site_then, _ = frames.site_to_teme(latitude_deg, longitude_deg, altitude_m, sent_ns)
        way = (np.linalg.norm(then - site, axis=1) + np.linalg.norm(then - site_then, axis=1)) / 2
        np.testing.assert_allclose(measurements.value[:, 0], way, atol=3e-4)


def test_telescope_pointing_agrees_with_an_independent_program() -> None:
    satellite_of = api.EarthSatellite.from_satrec
    timescale = api.load.timescale(builtin=True)
    sensor = sensor_registry()["optical-diego-garcia"]
    every = visible("optical", START_NS)
    rows = np.flatnonzero(every.source_id == sensor.source_id)[:40:4]
    _, r, v = catalogue().at(every.index[rows], every.time_ns[rows])
    site, _ = frames.site_to_teme(*place(sensor), START_NS)
    line = seen_state(r, v, np.tile(site, (len(rows), 1)))[0] - site
    ours = line / np.linalg.norm(line, axis=1, keepdims=True)
    when = timescale.from_datetime(datetime.fromtimestamp(START_NS / 1e9, UTC))
    observer = api.wgs84.latlon(sensor.latitude_deg, sensor.longitude_deg, sensor.altitude_m)
    for row, direction in zip(every.index[rows].tolist(), ours, strict=True):
        satrec = catalogue().take([row])._satrecs[0]
        where = (satellite_of(satrec, timescale) - observer).at(when)
        delay_s = where.distance().km / 299_792.458
        earlier = timescale.tt_jd(when.tt - delay_s / 86_400)
        emitted = satellite_of(satrec, timescale).at(earlier).position.km - observer.at(when).position.km
        # Skyfield is in GCRS and knows UT1 - UTC (here 0.06 s, 28 m of the site); the angle between two directions of
        # one frame doesn't care for the former.
        theirs = mxv(TEME.rotation_at(when), emitted)
        angle = np.linalg.norm(np.cross(direction, theirs / np.linalg.norm(theirs)))
        assert angle * where.distance().km < 0.05
