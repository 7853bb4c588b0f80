"""Pass windows beside Skyfield and next to a dense sampling of the conditions."""

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skyfield.api import EarthSatellite, load, wgs84

from sda_platform.clock import utc
from sda_platform.orbits.earth_orientation import moon_teme_km
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.frames import site_is_dark, sun_teme_km, sunlit_fraction, topocentric
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.passes import PassWindows, find_passes, site_sensor
from sda_platform.orbits.sensing.sensors import Sensor, sensor_registry
from sda_platform_tests.support.reference_elements import reference_elements

START_NS = 1_730_419_200_000_000_000
FULL_MOON_NS = START_NS + 15 * 86_400_000_000_000
"""Hours after the full Moon of 2024-11-15 21:28 UTC."""
DAY_NS = 86_400_000_000_000
TOLERANCE_S = 0.5
SITES = [(54.3616, -0.6697, 260.0, 3.0), (-21.8163, 114.1659, 12.0, 10.0), (8.7231, 167.7180, 5.0, 60.0)]


def _unix_s(times: Any, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    return np.array([moment.timestamp() for moment in times.utc_datetime()])[chosen]


def near_the_moon(r_km: Any, site: tuple[float, float, float], time_ns: npt.NDArray[np.int64]) -> Any:
    """Whether objects (n, k, 3) at times (k,) are within 20 degrees of a Moon above the horizon, seen from a site."""
    moon_km = moon_teme_km(time_ns)
    moon_azimuth, moon_elevation, _, _ = topocentric(moon_km, np.zeros_like(moon_km), *site, time_ns)
    azimuth, elevation, _, _ = topocentric(r_km, np.zeros_like(r_km), *site, time_ns)
    cosine = np.sin(elevation) * np.sin(moon_elevation)
    cosine += np.cos(elevation) * np.cos(moon_elevation) * np.cos(azimuth - moon_azimuth)
    return (cosine > np.cos(np.radians(20.0))) & (moon_elevation > 0)


def test_the_moon_is_where_the_almanac_has_it() -> None:
    """New Moon of 2024-11-01 12:47 UTC and full Moon of 2024-11-15 21:28 UTC: in line with the Sun, in longitude."""
    times_ns = np.array([1_730_465_220_000_000_000, 1_731_706_080_000_000_000])
    moon, sun = moon_teme_km(times_ns), sun_teme_km(times_ns)
    tilt = np.radians(23.436)
    longitudes = [np.arctan2(np.cos(tilt) * each[:, 1] + np.sin(tilt) * each[:, 2], each[:, 0]) for each in (moon, sun)]
    apart_deg = np.degrees(longitudes[0] - longitudes[1]) % 360.0
    # In a minute, to which the almanac is rounded, they move by 0.5 arcminutes; the Sun is good to 0.01 degrees.
    np.testing.assert_allclose((apart_deg + 90) % 360.0 - 90, [0.0, 180.0], atol=0.025)


def passes(elements: ElementSets, sensors: list[Sensor], hours: float = 24.0) -> PassWindows:
    return find_passes(Propagator(elements), sensors, START_NS, START_NS + round(hours * 3600e9))


@pytest.mark.parametrize("site", SITES)
def test_rise_culmination_and_set_are_skyfields__PW27(site: tuple[float, float, float, float]) -> None:
    elements = reference_elements(every=2_000)
    windows = passes(elements, [site_sensor(*site)])
    scale = load.timescale(builtin=True)
    t0, t1 = (scale.from_datetime(utc(time_ns)) for time_ns in (START_NS, START_NS + DAY_NS))
    place = wgs84.latlon(site[0], site[1], elevation_m=site[2])
    propagator = Propagator(elements)
    compared = 0
    for row in range(len(elements)):
        satellite = EarthSatellite.from_satrec(propagator._satrecs[row], scale)
        times, kinds = satellite.find_events(place, t0, t1, altitude_degrees=site[3])
        expected = {kind: _unix_s(times, kinds == kind) for kind in range(3)}
        mine = windows.take(windows.index == row)
        rises = mine.aos_ns[mine.aos_ns > START_NS] / 1e9
        sets = mine.los_ns[mine.los_ns < START_NS + DAY_NS] / 1e9
        assert len(rises) == len(expected[0]), elements.norad_id[row]
        assert len(sets) == len(expected[2]), elements.norad_id[row]
        np.testing.assert_allclose(rises, expected[0], rtol=0, atol=TOLERANCE_S)
        np.testing.assert_allclose(sets, expected[2], rtol=0, atol=TOLERANCE_S)
        whole = (mine.aos_ns > START_NS) & (mine.los_ns < START_NS + DAY_NS)
        for top_s, rise_s, set_s in zip(
            *(c[whole] / 1e9 for c in (mine.tca_ns, mine.aos_ns, mine.los_ns)), strict=True
        ):
            inside = expected[1][(expected[1] > rise_s - 1) & (expected[1] < set_s + 1)]
            # Long passes of high orbits culminate more than once; ours is the highest.
            assert min(abs(inside - top_s)) < TOLERANCE_S
            compared += 1
    assert compared > 10


def test_at_a_rise_skyfields_elevation_is_the_mask_within_a_tenth_of_a_second__PW27() -> None:
    site = SITES[0]
    elements = reference_elements(every=1_500)
    propagator = Propagator(elements)
    windows = passes(elements, [site_sensor(*site)])
    scale, place = load.timescale(builtin=True), wgs84.latlon(site[0], site[1], elevation_m=site[2])
    errors_s = []
    for row in np.unique(windows.index):
        line = EarthSatellite.from_satrec(propagator._satrecs[row], scale) - place
        for rise_ns in windows.aos_ns[(windows.index == row) & (windows.aos_ns > START_NS)].tolist():
            times = scale.from_datetimes([utc(rise_ns - 10**9), utc(rise_ns), utc(rise_ns + 10**9)])
            before, now, after = line.at(times).altaz()[0].degrees
            errors_s.append(abs(now - site[3]) / ((after - before) / 2))
    assert len(errors_s) > 25
    assert max(errors_s) < 0.1


def test_a_window_is_where_every_condition_of_the_sensor_holds__PW27() -> None:
    elements = reference_elements(every=900)
    sensors = [sensor_registry()[name] for name in ("radar-1", "radar-13", "optical-maui", "optical-socorro")]
    start_ns = FULL_MOON_NS
    windows = find_passes(Propagator(elements), sensors, start_ns, start_ns + DAY_NS // 2)
    step_ns = 5_000_000_000
    time_ns = np.arange(start_ns, start_ns + DAY_NS // 2, step_ns)
    hidden = 0
    _, r_km, v_km_s = Propagator(elements).grid(time_ns)
    for number, sensor in enumerate(sensors):
        site = (sensor.latitude_deg, sensor.longitude_deg, sensor.altitude_m)
        _, elevation, range_km, _ = topocentric(r_km, v_km_s, *site, time_ns)
        seen = (elevation >= np.radians(sensor.min_elevation_deg)) & (range_km <= sensor.max_range_km)
        if sensor.kind == "optical":
            seen &= site_is_dark(site[0], site[1], time_ns) & (sunlit_fraction(r_km, sun_teme_km(time_ns)) >= 1.0)
            moon_is_near = near_the_moon(r_km, site, time_ns)
            hidden += int((seen & moon_is_near).sum())
            seen &= ~moon_is_near
        for row in range(len(elements)):
            mine = windows.take((windows.index == row) & (windows.sensor == number))
            found = np.zeros(len(time_ns), dtype=bool)
            edge = np.zeros(len(time_ns), dtype=bool)
            for aos, los in zip(mine.aos_ns, mine.los_ns, strict=True):
                found |= (time_ns >= aos) & (time_ns <= los)
                edge |= (abs(time_ns - aos) < 5e8) | (abs(time_ns - los) < 5e8)
            assert not ((found != seen[row]) & ~edge).any(), (sensor.name, elements.norad_id[row])
    assert set(windows.sensor.tolist()) == {0, 1, 2, 3}
    assert hidden > 0, "telescopes look near the Moon on that night, but for the rule"


@given(st.integers(0, 26_000), st.floats(-80, 80), st.floats(-180, 180), st.floats(0, 85))
def test_windows_are_ordered_disjoint_and_culminate_inside(
    row: int, latitude_deg: float, longitude_deg: float, mask_deg: float
) -> None:
    elements = reference_elements(every=1).take([row])
    windows = passes(elements, [site_sensor(latitude_deg, longitude_deg, 0.0, mask_deg)])
    assert (windows.aos_ns <= windows.tca_ns).all()
    assert (windows.tca_ns <= windows.los_ns).all()
    assert (windows.los_ns[:-1] < windows.aos_ns[1:]).all()
    assert (windows.max_elevation_rad >= np.radians(mask_deg) - 1e-6).all()


def test_an_object_that_sgp4_refuses_has_no_window() -> None:
    elements = reference_elements(every=5_000)
    decayed = dataclasses.replace(elements, bstar_per_earth_radius=np.full(len(elements), np.nan))
    assert len(passes(decayed, [site_sensor(0.0, 0.0, 0.0, 5.0)])) == 0


def test_short_windows_can_be_left_out() -> None:
    elements, site = reference_elements(every=1_000), site_sensor(45.0, 7.0, 0.0, 30.0)
    end_ns = START_NS + DAY_NS
    every = find_passes(Propagator(elements), [site], START_NS, end_ns)
    long = find_passes(Propagator(elements), [site], START_NS, end_ns, least_s=60.0)
    kept = every.los_ns - every.aos_ns >= 60e9
    assert long.aos_ns.tolist() == every.aos_ns[kept].tolist()
    assert 0 < len(long) < len(every)
