"""Frames against an independent oracle (Skyfield) and published almanac figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sgp4.api import WGS72, Satrec
from skyfield.api import EarthSatellite, wgs84
from skyfield.framelib import itrs, true_equator_and_equinox_of_date
from skyfield.sgp4lib import TEME
from skyfield.timelib import Time

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits import frames
from sda_platform.orbits.earth_parameters import orientation
from sda_platform.orbits.sensing.sensors import sensor_registry
from sda_platform_tests.support.skyfield_frames import timescale

TIMESCALE = timescale()
START_NS = int(np.datetime64("2024-11-01T00:00:00", "ns").astype(np.int64))
TIMES_NS: IntArray = START_NS + np.arange(0, 86_400, 1_201, dtype=np.int64) * 1_000_000_000


def _oracle_time(time_ns: IntArray) -> Time:
    return TIMESCALE.utc(2024, 11, 1, 0, 0, (np.asarray(time_ns) - START_NS) / 1e9)


def _oracle_satellite() -> EarthSatellite:
    satrec = Satrec()
    satrec.sgp4init(WGS72, "i", 5, 27333.2, 3e-5, 0.0, 0.0, 0.02, 1.0, 0.9, 2.0, 0.06, 0.3)
    return EarthSatellite.from_satrec(satrec, TIMESCALE)


def _states() -> tuple[FloatArray, FloatArray]:
    whole, rest = np.divmod(TIMES_NS, 86_400_000_000_000)
    error, r, v = _oracle_satellite().model.sgp4_array(whole + 2440587.5, rest / 86_400_000_000_000)
    assert not error.any()
    return r, v


def test_gmst82_agrees_with_the_almanac_example() -> None:
    # Vallado, Fundamentals of Astrodynamics, example 3-5: 1992-08-20 12:14 UT1 -> 152.578787886 degrees,
    # printed from a one-double Julian date, which resolves 1.7e-7 degrees of rotation.
    ut1_ns = np.datetime64("1992-08-20T12:14:00", "ns").astype(np.int64)
    time_ns = ut1_ns - int(1e9 * orientation(ut1_ns).ut1_minus_utc_s)
    assert np.degrees(frames.gmst82_rad(time_ns)) == pytest.approx(152.578787886, abs=1e-7)


def test_teme_to_earth_fixed_agrees_with_skyfield_to_a_centimetre() -> None:
    r, _ = _states()
    time = _oracle_time(TIMES_NS)
    rotation = np.einsum("ijt,kjt->ikt", itrs.rotation_at(time), TEME.rotation_at(time))
    expected = np.einsum("ikt,tk->ti", rotation, r)
    np.testing.assert_allclose(frames.teme_to_itrf(r, TIMES_NS), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(frames.itrf_to_teme(expected, TIMES_NS), r, rtol=0, atol=1e-5)


def test_earth_fixed_velocity_is_the_derivative_of_earth_fixed_position() -> None:
    r, v = _states()
    step_s = 0.5
    ahead = frames.teme_to_itrf(r + v * step_s, TIMES_NS + 500_000_000)
    behind = frames.teme_to_itrf(r - v * step_s, TIMES_NS - 500_000_000)
    velocity = frames.velocity_teme_to_itrf(r, v, TIMES_NS)
    np.testing.assert_allclose((ahead - behind) / (2 * step_s), velocity, rtol=0, atol=1e-6)


@pytest.mark.parametrize("source_id", list(sensor_registry()))
def test_topocentric_geometry_agrees_with_skyfield(source_id: str) -> None:
    sensor = sensor_registry()[source_id]
    place = (sensor.latitude_deg, sensor.longitude_deg, sensor.altitude_m)
    site = wgs84.latlon(sensor.latitude_deg, sensor.longitude_deg, elevation_m=sensor.altitude_m)
    seen = (_oracle_satellite() - site).at(_oracle_time(TIMES_NS))
    elevation, azimuth, distance, _, _, range_rate = seen.frame_latlon_and_rates(site)
    r, v = _states()
    got = frames.topocentric(r, v, *place, TIMES_NS)
    np.testing.assert_allclose(np.cos(got[0] - azimuth.radians), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(got[1], elevation.radians, rtol=0, atol=1e-8)
    np.testing.assert_allclose(got[2], distance.km, rtol=0, atol=1e-5)
    np.testing.assert_allclose(got[3], range_rate.km_per_s, rtol=0, atol=1e-6)
    time = _oracle_time(TIMES_NS)
    line = np.einsum("ijt,jt->ti", TEME.rotation_at(time), seen.position.km)
    right_ascension, declination = frames.radec(r - frames.site_to_teme(*place, TIMES_NS)[0])
    expected_ra, expected_dec = frames.radec(line)
    np.testing.assert_allclose(np.cos(right_ascension - expected_ra), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(declination, expected_dec, rtol=0, atol=1e-8)


def test_teme_is_not_the_true_equinox_frame() -> None:
    # The two differ by the equation of the equinoxes: a guard against comparing with the wrong oracle frame.
    time = _oracle_time(TIMES_NS[:1])
    relative = TEME.rotation_at(time)[:, :, 0] @ true_equator_and_equinox_of_date.rotation_at(time)[:, :, 0].T
    assert 1e-6 < abs(relative[0, 1]) < 1e-4


def test_enu_basis_is_orthonormal_and_right_handed() -> None:
    basis = frames.enu_basis_teme(51.0, -12.0, TIMES_NS)
    np.testing.assert_allclose(basis @ np.swapaxes(basis, -1, -2), np.broadcast_to(np.eye(3), basis.shape), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(basis), 1.0)


def test_rtn_basis_of_a_known_orbit() -> None:
    basis = frames.rtn_basis([[0.0, 7000.0, 0.0]], [[-7.5, 0.1, 0.0]])
    np.testing.assert_allclose(basis[0], [[0, 1, 0], [-1, 0, 0], [0, 0, 1]], atol=1e-12)


def test_sun_agrees_with_the_published_worked_example() -> None:
    # Vallado, Fundamentals of Astrodynamics, example 5-1: 2006-04-02 00:00 UTC.
    time_ns = np.datetime64("2006-04-02T00:00:00", "ns").astype(np.int64)
    expected_au = [0.9771945, 0.1924424, 0.0834308]
    np.testing.assert_allclose(frames.sun_teme_km(time_ns) / frames.ASTRONOMICAL_UNIT_KM, expected_au, atol=2e-5)


@pytest.mark.parametrize(
    ("instant", "declination_deg", "distance_au"),
    [("2024-03-20T03:06", 0.0, None), ("2024-06-20T20:51", 23.437, None), ("2024-09-22T12:44", 0.0, None),
     ("2024-12-21T09:21", -23.437, None), ("2024-01-03T00:38", None, 0.98331), ("2024-07-05T05:06", None,
     1.01673)],
)  # fmt: skip
def test_sun_at_equinoxes_solstices_and_apsides_of_2024(
    instant: str, declination_deg: float | None, distance_au: float | None
) -> None:
    sun = frames.sun_teme_km(np.datetime64(instant, "ns").astype(np.int64))
    if declination_deg is not None:
        assert np.degrees(frames.radec(sun)[1]) == pytest.approx(declination_deg, abs=0.01)
    if distance_au is not None:
        assert np.linalg.norm(sun) / frames.ASTRONOMICAL_UNIT_KM == pytest.approx(distance_au, abs=1e-4)


def test_shadow_runs_from_full_light_through_penumbra_to_umbra() -> None:
    sun = np.array([frames.ASTRONOMICAL_UNIT_KM, 0.0, 0.0])
    across_km = np.linspace(6200.0, 6500.0, 601)
    behind = np.stack([np.full_like(across_km, -3000.0), across_km, np.zeros_like(across_km)], axis=-1)
    light = frames.sunlit_fraction(behind, sun)
    assert light[0] == 0.0 and light[-1] == 1.0
    assert (np.diff(light) >= -1e-12).all()
    assert ((light > 0) & (light < 1)).sum() * 0.5 == pytest.approx(2 * 3000.0 * 695_700 / 149_597_870, rel=0.05)
    assert frames.sunlit_fraction(-behind[:1] * [1, 0, 0] + [0, 0, 0], sun)[0] == 1.0


def test_site_is_dark_at_midnight_and_not_at_noon() -> None:
    midnight_utc = START_NS
    assert frames.site_is_dark(0.0, 0.0, midnight_utc)
    assert not frames.site_is_dark(0.0, 180.0, midnight_utc)
    assert frames.site_is_dark(90.0, 0.0, START_NS), "polar night in November, Sun 14 degrees down"


@given(
    latitude=st.floats(-90, 90),
    longitude=st.floats(-180, 180),
    altitude=st.floats(-400, 9000),
    hours=st.integers(0, 999),
)
def test_site_position_survives_the_round_trip(latitude: float, longitude: float, altitude: float, hours: int) -> None:
    time_ns = START_NS + hours * 3_600_000_000_000
    site_km, site_km_s = frames.site_to_teme(latitude, longitude, altitude, time_ns)
    fixed = frames.geodetic_to_itrf_km(latitude, longitude, altitude)
    np.testing.assert_allclose(frames.teme_to_itrf(site_km, time_ns), fixed, atol=1e-9)
    np.testing.assert_allclose(np.einsum("i,i", site_km, site_km_s), 0.0, atol=1e-9)


def test_registry_names_fourteen_radars_and_five_telescopes() -> None:
    registry = sensor_registry()
    radars = [sensor for sensor in registry.values() if sensor.kind == "radar"]
    assert [sensor.source_id for sensor in radars] == [f"radar-{number}" for number in range(1, 15)]
    telescopes = [sensor for sensor in registry.values() if sensor.kind == "optical"]
    assert len(telescopes) == 5 and len(registry) == 19
    assert all(sensor.range_sigma_m > 0 and sensor.azimuth_sigma_rad > 0 for sensor in radars)
    assert all(sensor.angle_sigma_rad > 0 and sensor.source_id.startswith("optical-") for sensor in telescopes)
    assert all(abs(sensor.latitude_deg) <= 90 and abs(sensor.longitude_deg) <= 180 for sensor in registry.values())
