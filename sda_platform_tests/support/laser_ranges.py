"""Laser ranges of LAGEOS-2 by four stations from 11 to 14 February 2016 (data/tracking), and orbits fitted to them."""

import csv
import dataclasses
from functools import cache
from pathlib import Path

import erfa
import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.clock import parse_iso_ns
from sda_platform.orbits.dynamics.forces import GM_MOON_KM3_S2, GM_SUN_KM3_S2, Forces
from sda_platform.orbits.dynamics.gravity import GM_KM3_S2, RADIUS_KM
from sda_platform.orbits.dynamics.numerical import integrate
from sda_platform.orbits.earth_orientation import gcrf_to_itrf
from sda_platform.orbits.frames import ASTRONOMICAL_UNIT_KM, EARTH_ROTATION_RAD_S
from sda_platform.orbits.sensing.light import LIGHT_KM_S
from sda_platform.orbits.sensing.measurement_model import RADAR
from sda_platform.orbits.sensing.measurements import Measurements
from sda_platform_tests.support.arc_fit import ArcFit, fit_arc
from sda_platform_tests.support.lageos import reference_orbit
from sda_platform_tests.support.laser_air import mapping, vapour_pressure_hpa, zenith_delay_m
from sda_platform_tests.support.w3b import in_gcrf

DATA = Path(__file__).parents[1] / "data/tracking"
EPOCH_NS = parse_iso_ns("2016-02-13T16:00:00Z")
# EME2000, km and km/s: from where the set-up of the data's publisher starts.
FIRST_GUESS_EME2000 = np.array([7526.990, -9646.310, 1464.110, 3.033, 1.715, -4.447])
# Of that set-up: 0.2827 m2, radiation coefficient 1.134, 405.38 kg.
FORCES = Forces(reflective_area_m2_kg=1.134 * 0.2827 / 405.38)
STATIONS = ("7090", "7825", "7119", "7941")
"""Yarragadee, Mount Stromlo, Haleakala, Matera."""
SIGMA_M = 0.025
"""Scatter of the whole arc's residuals; the noise of a normal point is some millimetres."""
_CENTRE_OF_MASS_KM = 0.251e-3
_YEARS_SINCE_2015 = 1.12
_LOVE, _SHIDA = 0.6078, 0.0847
_UNIX_JD, _DAY_S, _TT_MINUS_UTC_S = 2440587.5, 86_400.0, 68.184


@dataclasses.dataclass(frozen=True, eq=False)
class NormalPoints:
    """Ranges of n normal points, (n,) each, as published."""

    station: IntArray
    """Index in STATIONS."""
    sent_ns: IntArray
    flight_s: FloatArray
    """There and back."""
    wavelength_um: FloatArray
    pressure_hpa: FloatArray
    temperature_k: FloatArray
    humidity_percent: FloatArray


@dataclasses.dataclass(frozen=True)
class Corrections:
    """What is taken from the ranges, and where the stations are."""

    slrf2020: bool = True
    """Positions of the ILRS; otherwise those of the data's publisher."""
    air: bool = True
    site_tide: bool = True
    centre_of_mass: bool = True
    relativity: bool = True


@dataclasses.dataclass(frozen=True, eq=False)
class LaserArc:
    """An orbit, and the ranges that it is compared with."""

    fit: ArcFit
    residual_m: FloatArray
    """(m,) of the ranges that the fit was given."""


@cache
def normal_points() -> NormalPoints:
    return read_normal_points((DATA / "lageos2_20160214.npt").read_text())


def read_normal_points(text: str) -> NormalPoints:
    """A file's normal points, in the order of time. Format: ILRS, Consolidated Laser Ranging Data, version 1."""
    rows: list[tuple[float, ...]] = []
    passed: list[tuple[float, ...]] = []
    weather: list[tuple[float, ...]] = []
    for line in text.splitlines():
        words = line.split()
        match words[0].upper():
            case "H2":
                station = STATIONS.index(words[2])
            case "H4":
                first_s = parse_iso_ns("{}-{:0>2}-{:0>2}T00:00:00Z".format(*words[2:5])) / 1e9
                begin_s = 3600 * int(words[5]) + 60 * int(words[6]) + int(words[7])
            case "C0":
                wavelength_um = float(words[2]) / 1000
            case "20":
                weather.append(tuple(map(float, words[1:5])))
            case "11":
                assert words[4] == "2", "not the time of transmission"
                passed.append((station, first_s, float(words[1]), float(words[2]), wavelength_um, begin_s))
            case "H8":
                rows += [(*point, *_nearest(weather, point[2])[1:]) for point in passed]
                passed, weather = [], []
    columns = np.array(rows).T
    # Seconds count from the midnight before the pass, whose end may be of the next day.
    over = np.where(columns[2] < columns[5] - _DAY_S / 2, _DAY_S, 0.0)
    sent_ns = np.rint((columns[1] + over) * 1e9).astype(np.int64) + np.rint(columns[2] * 1e9).astype(np.int64)
    order = np.argsort(sent_ns)
    found = NormalPoints(columns[0].astype(np.int64), sent_ns, columns[3], columns[4], *columns[6:])
    return NormalPoints(**{f.name: getattr(found, f.name)[order] for f in dataclasses.fields(found)})


def _nearest(weather: list[tuple[float, ...]], second: float) -> tuple[float, ...]:
    return min(weather, key=lambda row: abs(row[0] - second))


def ranges(state: FloatArray, forces: Forces, corrections: Corrections) -> tuple[Measurements, IntArray]:
    """The ranges in GCRF, corrected, and whose they are; the orbit shows the elevation for the air's share.

    Args:
        state: (6,) GCRF, km and km/s, at EPOCH_NS.
    """
    points = normal_points()
    count = len(points.station)
    time_ns = points.sent_ns + np.rint(points.flight_s * 1e9).astype(np.int64)
    turn = gcrf_to_itrf(time_ns)
    fixed = _sites_km(corrections)[points.station]
    if corrections.site_tide:
        fixed = fixed + site_tide_km(fixed, time_ns)
    site = np.einsum("nji,nj->ni", turn, fixed)
    pole = np.einsum("nji,nj->ni", turn, np.tile([0.0, 0.0, 1.0], (count, 1)))
    longitude, latitude, height_m = erfa.gc2gd(1, fixed * 1000)
    flat = np.cos(latitude)
    up = np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)
    up = np.einsum("nji,nj->ni", turn, up)
    seen = integrate(state, EPOCH_NS, time_ns - np.rint(points.flight_s * 5e8).astype(np.int64), forces)[:, :3]
    line = seen - site
    distance = np.linalg.norm(line, axis=1)
    elevation = np.arcsin(np.einsum("ni,ni->n", up, line) / distance)
    range_km = points.flight_s * LIGHT_KM_S / 2
    if corrections.centre_of_mass:
        range_km = range_km + _CENTRE_OF_MASS_KM
    if corrections.air:
        vapour = vapour_pressure_hpa(points.temperature_k, points.humidity_percent)
        zenith_m = sum(zenith_delay_m(latitude, height_m, points.pressure_hpa, vapour, points.wavelength_um))
        range_km = range_km - zenith_m / 1000 * mapping(latitude, height_m, points.temperature_k, elevation)
    if corrections.relativity:
        # Shapiro's delay: Montenbruck & Gill, Satellite Orbits (2000), eq. 7.80.
        ends = np.linalg.norm(seen, axis=1) + np.linalg.norm(site, axis=1)
        range_km = range_km - 2 * GM_KM3_S2 / LIGHT_KM_S**2 * np.log((ends + distance) / (ends - distance))
    present = np.tile(np.arange(6) == 0, (count, 1))
    yes = np.ones(count, dtype=bool)
    measurements = Measurements(
        kind=np.full(count, RADAR),
        known_source=yes,
        complete=yes,
        time_ns=time_ns,
        time_sigma_s=np.zeros(count),
        site_km=site,
        site_km_s=EARTH_ROTATION_RAD_S * np.cross(pole, site),
        pole=up,
        direction=line / distance[:, None],
        value=np.where(present, range_km[:, None], 0.0),
        variance=np.where(present, (SIGMA_M / 1000) ** 2, 1.0),
        present=present,
        site_sigma_km=np.zeros(count),
    )
    return measurements, points.station


@cache
def fit(
    until: str = "2016-02-15",
    forces: Forces = FORCES,
    corrections: Corrections = Corrections(),
    own_accelerations: bool = False,
    sigma_m: float = SIGMA_M,
) -> LaserArc:
    """The orbit at EPOCH_NS that fits the ranges before a time; a large ``sigma_m`` rejects none."""
    state = in_gcrf(FIRST_GUESS_EME2000)
    for _ in range(2):
        measurements, station = ranges(state, forces, corrections)
        variance = np.where(measurements.present, (sigma_m / 1000) ** 2, 1.0)
        measurements = dataclasses.replace(measurements, variance=variance)
        used = measurements.time_ns < parse_iso_ns(f"{until}Z")
        found = fit_arc(
            measurements.take(used), station[used], state, EPOCH_NS, forces, own_accelerations=own_accelerations
        )
        state, forces = found.state, found.forces
    return LaserArc(found, found.residual[:, 0] * 1000)


def against_ranges(
    state: FloatArray, forces: Forces, first_ns: int, last_ns: int, corrections: Corrections = Corrections()
) -> tuple[FloatArray, FloatArray]:
    """Measured minus computed ranges (k,), m, between two times, without biases, and the partials (k, 6).

    Args:
        state: (6,) GCRF, km and km/s, at EPOCH_NS; the partials, m per km and km/s, are by it.
    """
    measurements, _ = ranges(state, forces, corrections)
    measurements = measurements.take((first_ns <= measurements.time_ns) & (measurements.time_ns <= last_ns))

    def residual_m(start: FloatArray) -> FloatArray:
        states = integrate(start, EPOCH_NS, measurements.time_ns, forces)
        return 1000 * measurements.linearise(states[:, :3], states[:, 3:]).residual[:, 0]

    found, steps = residual_m(state), np.diag([1e-2] * 3 + [1e-6] * 3)
    return found, np.stack([(found - residual_m(state + step)) / step.sum() for step in steps], axis=1)


def off_reference_m(arc: ArcFit, first_ns: int, last_ns: int) -> FloatArray:
    """Distances (k,) from the reference ephemeris between two times."""
    time_ns, truth = reference_orbit()
    chosen = (first_ns <= time_ns) & (time_ns <= last_ns)
    states = integrate(arc.state, EPOCH_NS, time_ns[chosen], arc.forces)
    return np.asarray(1000 * np.linalg.norm(states[:, :3] - truth[chosen], axis=1))


def site_tide_km(fixed_km: FloatArray, time_ns: IntArray) -> FloatArray:
    """Displacement (n, 3) of sites (n, 3), km, ITRF, by the solid tide of degree 2, with its permanent part.

    Source: IERS Conventions (2010), eq. 7.5.
    """
    turn, day = gcrf_to_itrf(time_ns), (time_ns / 1e9 + _TT_MINUS_UTC_S) / _DAY_S
    moon = erfa.moon98(_UNIX_JD, day)["p"] * ASTRONOMICAL_UNIT_KM
    sun = -erfa.epv00(_UNIX_JD, day)[0]["p"] * ASTRONOMICAL_UNIT_KM
    up = fixed_km / np.linalg.norm(fixed_km, axis=1, keepdims=True)
    moved = np.zeros_like(fixed_km)
    for gm, body in ((GM_MOON_KM3_S2, moon), (GM_SUN_KM3_S2, sun)):
        far = np.linalg.norm(body, axis=1, keepdims=True)
        towards = np.einsum("nij,nj->ni", turn, body / far)
        cosine = np.einsum("ni,ni->n", up, towards)[:, None]
        rise, pull = 0.5 * _LOVE * (3 * cosine**2 - 1), 3 * _SHIDA * cosine
        moved += gm / GM_KM3_S2 * RADIUS_KM**4 / far**3 * (rise * up + pull * (towards - cosine * up))
    return moved


def _sites_km(corrections: Corrections) -> FloatArray:
    """Positions (stations, 3) of the lasers' reference points, ITRF, free of tides."""
    if not corrections.slrf2020:
        rows = _rows("lageos2_stations.csv", ("longitude_deg", "latitude_deg", "altitude_m"))
        return np.asarray(erfa.gd2gc(1, *np.radians(rows[:, :2]).T, rows[:, 2])) / 1000
    names = [f"{kind}{axis}_m{end}" for kind, end in (("", ""), ("v", "_y"), ("reference_", "")) for axis in "xyz"]
    rows = _rows("lageos2_stations_slrf2020.csv", names).reshape(-1, 3, 3)
    return (rows[:, 0] + rows[:, 1] * _YEARS_SINCE_2015 + rows[:, 2]) / 1000


def _rows(name: str, columns: list[str] | tuple[str, ...]) -> FloatArray:
    with (DATA / name).open() as file:
        rows = {row["name"]: [float(row[column]) for column in columns] for row in csv.DictReader(file)}
    return np.array([rows[station] for station in STATIONS])
