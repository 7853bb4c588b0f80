"""Frames, aberration and refraction of reported angles: as Skyfield has them, and fits need the right ones."""

import dataclasses
from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2
from sgp4.api import WGS72, Satrec
from skyfield.api import EarthSatellite, Star, load_file, wgs84
from skyfield.earthlib import refract

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.orbits import frames
from sda_platform.orbits.earth_orientation import FRAMES
from sda_platform.orbits.sensing.angle_corrections import (
    AngleReferences,
    geometric_directions,
    geometric_echoes,
    reported_directions,
    reported_echoes,
)
from sda_platform.orbits.sensing.light import seen_state
from sda_platform.orbits.sensing.observations import COLUMNS, ObservationArrays
from sda_platform.orbits.sensing.sensors import Sensor, SensorNetwork, sensor_registry
from sda_platform.orbits.tracking.estimation import StateFits, fit_windows
from sda_platform_tests.support.scenes import SECOND_NS, START_NS, Watched, catalogue, visible, watched
from sda_platform_tests.support.skyfield_frames import timescale

ARCSECOND = np.pi / 648_000
# Skyfield comes with a part of JPL's DE430 about this date.
THEN_NS = int(np.datetime64("2015-03-02T03:00:00", "ns").astype(np.int64))
TIMESCALE = timescale()
SITE = (28.3009, -16.5118, 2393.0)
VARIANTS = [
    {"angle_frame": "ICRF", "angle_aberration": "annual"},
    {"angle_frame": "EME2000", "angle_aberration": "annual"},
    {"angle_frame": "EME2000"},
    {"angle_frame": "TOD", "angle_aberration": "diurnal"},
    {"angle_aberration": "annual"},
    {"angle_aberration": "diurnal", "angle_refraction": "included"},
]


def refers(count: int, **stated: str) -> AngleReferences:
    codes = {name: values.index(stated.get(name, values[0])) for name, values in ANGLE_REFERENCES.items()}
    return AngleReferences(**{name: np.full(count, code) for name, code in codes.items()})


def satellite(altitude_km: float) -> EarthSatellite:
    """One that is above the site at the time, by and large."""
    motion = np.sqrt(398600.8 / (6378.135 + altitude_km) ** 3) * 60.0
    satrec = Satrec()
    epoch = (THEN_NS / 1e9 / 86400 + 2440587.5) - 2433281.5
    sidereal = float(frames.gmst82_rad(THEN_NS))
    satrec.sgp4init(WGS72, "i", 5, epoch, 0.0, 0.0, 0.0, 1e-3, 0.0, 0.6, 0.5, motion, sidereal - 0.7)
    return EarthSatellite.from_satrec(satrec, TIMESCALE)


def skyfield_scene(altitude_km: float, delay_s: float) -> tuple[Any, Any, Any]:
    """Observer, time and satellite for Skyfield; both move with the Earth about the barycentre."""
    with resources.as_file(resources.files("skyfield.tests") / "data" / "de430-2015-03-02.bsp") as path:
        earth = load_file(str(path))["earth"]
    time = TIMESCALE.utc(2015, 3, 2, 3, 0, delay_s)
    return (earth + wgs84.latlon(SITE[0], SITE[1], SITE[2])).at(time), time, earth + satellite(altitude_km)


def geometry(altitude_km: float, delay_s: float) -> tuple[FloatArray, FloatArray, IntArray]:
    """Our geometric right ascension and declination (1,) of the same satellite, and the time."""
    time_ns = np.array([THEN_NS + int(delay_s * 1e9)])
    days, rest = np.divmod(time_ns, 86_400 * SECOND_NS)
    _, r, v = satellite(altitude_km).model.sgp4_array(days + 2440587.5, rest / (86_400 * SECOND_NS))
    site, _ = frames.site_to_teme(*SITE, time_ns)
    return (*frames.radec(seen_state(r, v, site)[0] - site), time_ns)


def apart_arcsec(first: FloatArray, second: FloatArray) -> float:
    """The angle between two directions (3,)."""
    one, other = first / np.linalg.norm(first), second / np.linalg.norm(second)
    return float(np.linalg.norm(np.cross(one, other)) / ARCSECOND)


def reported(altitude_km: float, delay_s: float, **stated: str) -> tuple[FloatArray, FloatArray]:
    ra, dec, time_ns = geometry(altitude_km, delay_s)
    return reported_directions(ra, dec, time_ns, np.array([SITE]), refers(1, **stated))


def test_the_frames_of_angles_are_those_that_states_have_but_the_turning_one() -> None:
    assert set(ANGLE_REFERENCES["angle_frame"]) == set(FRAMES) - {"ITRF"}


@pytest.mark.parametrize("altitude_km", [800.0, 20_000.0, 35_786.0])
@pytest.mark.parametrize("delay_s", [0.0, 1234.0])
def test_a_star_at_the_place_reduced_against_stars_is_seen_where_the_satellite_is(
    altitude_km: float, delay_s: float
) -> None:
    """Annual aberration, light time and frame together, by JPL's ephemeris and Skyfield's relativity."""
    observer, _, target = skyfield_scene(altitude_km, delay_s)
    ra, dec = reported(altitude_km, delay_s, angle_frame="ICRF", angle_aberration="annual")
    star = Star(ra_hours=float(np.degrees(ra[0])) / 15, dec_degrees=float(np.degrees(dec[0])))
    seen = [observer.observe(body).apparent(deflectors=()).xyz.au for body in (target, star)]
    assert apart_arcsec(*seen) < 0.02
    bare = reported(altitude_km, delay_s, angle_frame="ICRF")
    assert apart_arcsec(frames.towards(*bare)[0], frames.towards(ra, dec)[0]) > 10, "without it the test is empty"


@pytest.mark.parametrize("altitude_km", [800.0, 35_786.0])
def test_apparent_places_of_date_are_skyfield_s(altitude_km: float) -> None:
    observer, time, target = skyfield_scene(altitude_km, 60.0)
    ra, dec, _ = observer.observe(target).apparent(deflectors=()).radec(time)
    theirs = frames.towards(ra.radians, dec.radians)
    ours = frames.towards(*reported(altitude_km, 60.0, angle_frame="TOD", angle_aberration="diurnal"))[0]
    assert apart_arcsec(ours, theirs) < 0.02
    left = frames.towards(*reported(altitude_km, 60.0, angle_frame="TOD"))[0]
    assert apart_arcsec(left, theirs) > 0.1, "the diurnal aberration shows"


@pytest.mark.parametrize("sought_deg", [10.0, 45.0])
def test_refracted_elevations_are_skyfield_s(sought_deg: float) -> None:
    """The same formula by another implementation, at the pressure and temperature of its source, at sea level."""
    true = np.radians(sought_deg)
    east_north = frames.enu_basis_teme(SITE[0], SITE[1], np.array([THEN_NS]))
    ra, dec = frames.radec(np.einsum("nji,nj->ni", east_north, frames.towards(1.0, [true])))
    site = np.array([(SITE[0], SITE[1], 0.0)])
    bent = frames.towards(
        *reported_directions(ra, dec, np.array([THEN_NS]), site, refers(1, angle_refraction="included"))
    )
    elevation = np.arcsin(np.einsum("nij,nj->ni", east_north, bent)[0, 2])
    theirs = refract(sought_deg, temperature_C=10.0, pressure_mbar=1010.0)
    assert elevation == pytest.approx(np.radians(theirs), abs=2 * ARCSECOND)
    assert elevation > true + 40 * ARCSECOND


@pytest.mark.parametrize("stated", VARIANTS, ids=lambda stated: "-".join(stated.values()))
def test_reported_angles_reduce_to_the_geometry_again(stated: dict[str, str]) -> None:
    rng = np.random.default_rng(5)
    ra, dec = rng.uniform(0, 2 * np.pi, 500), np.arcsin(rng.uniform(-0.98, 0.98, 500))
    time_ns, site = START_NS + rng.integers(0, 10**16, 500), np.tile(np.array(SITE), (500, 1))
    up = np.einsum("ni,ni->n", frames.enu_basis_teme(site[:, 0], site[:, 1], time_ns)[:, 2], frames.towards(ra, dec))
    known = refers(500, **stated)
    back = geometric_directions(*reported_directions(ra, dec, time_ns, site, known), time_ns, site, known)
    apart = np.linalg.norm(np.cross(frames.towards(*back), frames.towards(ra, dec)), axis=1)
    assert apart[up > np.sin(np.radians(3))].max() < 2e-3 * ARCSECOND


def test_a_radar_s_refraction_is_as_published_and_reduces_again() -> None:
    """Saemundsson 1986 for true elevations; the delay is 2.4 m over the sine of the elevation."""
    true, range_m = np.radians([3.0, 10.0, 40.0]), np.full(3, 1e6)
    site, known = np.tile([0.0, 0.0, 0.0], (3, 1)), refers(3, angle_refraction="included")
    bent, longer = reported_echoes(true, range_m, site, known)
    saemundsson = 1.02 / np.tan(np.radians([3 + 10.3 / 8.11, 10 + 10.3 / 15.11, 40 + 10.3 / 45.11]))
    assert np.degrees(bent - true) * 60 == pytest.approx(saemundsson, rel=0.02)
    assert (longer - range_m)[1:] == pytest.approx(2.4 / np.sin(true[1:]), rel=0.05)
    back, shorter = geometric_echoes(bent, longer, site, known)
    np.testing.assert_allclose(back, true, atol=0.02 * ARCSECOND)
    np.testing.assert_allclose(shorter, range_m, atol=1e-2)
    np.testing.assert_array_equal(geometric_echoes(bent, longer, site, refers(3))[0], bent)


def _columns(observations: ObservationArrays) -> dict[str, Any]:
    return {name: getattr(observations, name) for name in COLUMNS}


def _network(**stated: str) -> SensorNetwork:
    """The shipped sensors; the ones of the kind that the statement fits state it."""

    def with_statement(sensor: Sensor) -> Sensor:
        kept: Mapping[str, Any] = (
            stated if sensor.kind == "optical" else {k: v for k, v in stated.items() if k == "angle_refraction"}
        )
        return dataclasses.replace(sensor, **kept)

    return SensorNetwork([with_statement(sensor) for sensor in sensor_registry().values()])


def _scene(kind: str) -> Watched:
    rng = np.random.default_rng(11)
    every = visible(kind, START_NS + 15 * SECOND_NS)
    seen = every.take(rng.choice(len(every.index), 150, replace=False))
    return watched(seen, START_NS + rng.integers(0, 30 * SECOND_NS, 150 * 6), rng)


def _sites(source_id: Any) -> FloatArray:
    sensors = [sensor_registry()[name] for name in source_id.tolist()]
    return np.array([(s.latitude_deg, s.longitude_deg, s.altitude_m) for s in sensors])


def _nees(fits: StateFits, truth: FloatArray) -> FloatArray:
    error = np.hstack([fits.r_teme_km, fits.v_teme_km_s]) - truth
    return np.asarray(np.einsum("gi,gi->g", error, np.linalg.solve(fits.covariance_teme, error[:, :, None])[:, :, 0]))


def _fit(scene: Watched, columns: dict[str, Any], sensors: SensorNetwork | None = None) -> FloatArray:
    observations = ObservationArrays.from_columns(columns, sensors)
    middle_ns = np.full(len(scene.index), START_NS + 15 * SECOND_NS)
    return _nees(fit_windows(observations, scene.group, catalogue(), scene.index, middle_ns), scene.truth)


@pytest.mark.parametrize("stated", VARIANTS, ids=lambda stated: "-".join(stated.values()))
def test_fits_are_consistent_in_the_right_reference_and_biased_in_the_default_one(stated: dict[str, str]) -> None:
    """The list of sensors or the records state the reference; a record overrides the list."""
    scene = _scene("optical")
    plain = _columns(scene.observations)
    geometry = (plain["right_ascension_rad"], plain["declination_rad"], plain["sensor_time_ns"])
    known = refers(len(geometry[0]), **stated)
    ra, dec = reported_directions(*geometry, _sites(plain["source_id"]), known)
    columns = plain | {"right_ascension_rad": ra, "declination_rad": dec}
    texts = {name: np.full(len(ra), stated.get(name, values[0])) for name, values in ANGLE_REFERENCES.items()}
    low, high = chi2.ppf([1e-4, 1 - 1e-4], 6 * len(scene.index)) / len(scene.index)
    by_records = _fit(scene, columns | texts)
    assert low < by_records.mean() < high
    np.testing.assert_allclose(_fit(scene, columns, _network(**stated)), by_records, rtol=1e-9)
    np.testing.assert_allclose(_fit(scene, columns | texts, _network(angle_frame="TOD")), by_records, rtol=1e-9)
    assert _fit(scene, columns).mean() > 2 * high


def test_fits_of_radars_need_to_know_of_refraction() -> None:
    scene = _scene("radar")
    plain = _columns(scene.observations)
    known = refers(len(plain["range_m"]), angle_refraction="included")
    elevation, range_m = reported_echoes(plain["elevation_rad"], plain["range_m"], _sites(plain["source_id"]), known)
    columns = plain | {"elevation_rad": elevation, "range_m": range_m}
    low, high = chi2.ppf([1e-4, 1 - 1e-4], 6 * len(scene.index)) / len(scene.index)
    assert low < _fit(scene, columns, _network(angle_refraction="included")).mean() < high
    assert _fit(scene, columns).mean() > 2 * high


def test_records_without_a_statement_are_read_as_before() -> None:
    columns = _columns(_scene("optical").observations)
    again = ObservationArrays.from_columns(columns | {name: [None] * len(columns["x_m"]) for name in ANGLE_REFERENCES})
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(again, name), columns[name])


def test_an_unknown_reference_is_refused() -> None:
    columns = _columns(_scene("optical").observations.take([0, 1]))
    with pytest.raises(ValueError, match="B1950"):
        ObservationArrays.from_columns(columns | {"angle_frame": ["", "B1950"]})
