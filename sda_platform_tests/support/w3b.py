"""Real tracking of Eutelsat W3B in its transfer orbit, November 2010, and the published solution (data/tracking)."""

import csv
import dataclasses
from functools import cache
from pathlib import Path

import numpy as np
from skyfield import api
from skyfield.framelib import ICRS_to_J2000
from skyfield.timelib import Time

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.clock import parse_iso_ns
from sda_platform.orbits.dynamics.forces import Forces
from sda_platform.orbits.dynamics.numerical import integrate
from sda_platform.orbits.sensing.measurement_model import RADAR
from sda_platform.orbits.sensing.measurements import Measurements
from sda_platform.orbits.sensing.troposphere import delay_km, refraction_rad
from sda_platform_tests.support.arc_fit import ArcFit, fit_arc
from sda_platform_tests.support.skyfield_frames import timescale

DATA = Path(__file__).parents[1] / "data/tracking"
EPOCH_NS = parse_iso_ns("2010-11-02T02:56:15.690Z")
RANGE_SIGMA_KM, ANGLE_SIGMA_RAD = 0.020, float(np.radians(0.02))
# EME2000, km and km/s: what the arc was fitted from, and the published result.
FIRST_GUESS = np.array([-40517.5229, -10003.0799, 166.7928, 0.762559, -1.474468, 0.055430])
PUBLISHED = np.array([-40541.446236, -9905.357239, 206.777082, 0.7590685, -1.4765156, 0.0547931])
# Of the published solution's set-up: 13.12 m2, radiation coefficient 2, 1,000 kg.
REFLECTIVE_AREA_M2_KG = 2.0 * 13.12 / 1000.0
POINT, ZONAL, FULL = Forces(0, 0, False), Forces(4, 0, False), Forces(20, 20, False)
BODIES = dataclasses.replace(FULL, third_bodies=True)
SUNLIT = dataclasses.replace(BODIES, reflective_area_m2_kg=REFLECTIVE_AREA_M2_KG)


def instant(time_ns: int) -> Time:
    return timescale().utc(2010, 11, 2, 0, 0, (time_ns - parse_iso_ns("2010-11-02T00:00:00Z")) / 1e9)


def in_gcrf(state_eme2000: FloatArray) -> FloatArray:
    turn = np.asarray(ICRS_to_J2000).T
    return np.concatenate([turn @ state_eme2000[:3], turn @ state_eme2000[3:]])


def in_eme2000(state: FloatArray) -> FloatArray:
    turn = np.asarray(ICRS_to_J2000)
    return np.concatenate([turn @ state[:3], turn @ state[3:]])


@cache
def readings() -> tuple[Measurements, IntArray, tuple[str, ...]]:
    """The 521 observations in GCRF, corrected for the air, whose they are, and the stations."""
    with (DATA / "w3b_stations.csv").open() as file:
        stations = {row.pop("name"): {k: float(v) for k, v in row.items()} for row in csv.DictReader(file)}
    lines = [line.split() for line in (DATA / "W3B.aer").read_text().splitlines() if line and not line.startswith("#")]
    names = tuple(stations)
    station = np.array([names.index(line[2]) for line in lines])
    time_ns = np.array([parse_iso_ns(line[0] + "Z") for line in lines])
    is_range = np.array([line[1] == "RANGE" for line in lines])
    place = {key: np.array([stations[names[s]][key] for s in station]) for key in next(iter(stations.values()))}
    site, site_v, enu = _sites(place, time_ns)
    azimuth = np.radians([0.0 if line[1] == "RANGE" else float(line[3]) for line in lines])
    elevation = np.radians([45.0 if line[1] == "RANGE" else float(line[4]) for line in lines])
    elevation = elevation - refraction_rad(elevation, place["altitude_m"])
    # Where a range was measured, the first guess shows the elevation well enough for the air's share.
    line_km = integrate(in_gcrf(FIRST_GUESS), EPOCH_NS, time_ns, SUNLIT)[:, :3] - site
    sine = np.einsum("ni,ni->n", enu[:, 2], line_km) / np.linalg.norm(line_km, axis=1)
    elevation = np.where(is_range, np.arcsin(sine), elevation)
    range_km = np.array([float(line[3]) if line[1] == "RANGE" else np.nan for line in lines])
    range_km = range_km - delay_km(elevation, place["altitude_m"])
    level = np.stack([np.sin(azimuth) * np.cos(elevation), np.cos(azimuth) * np.cos(elevation), np.sin(elevation)], 1)
    count = len(lines)
    present = np.zeros((count, 6), dtype=bool)
    present[is_range, 0] = True
    present[~is_range, 1:3] = True
    variance = np.tile([RANGE_SIGMA_KM**2, ANGLE_SIGMA_RAD**2, ANGLE_SIGMA_RAD**2, 1.0, 1.0, 1.0], (count, 1))
    value = np.zeros((count, 6))
    value[:, 0] = np.nan_to_num(range_km)
    yes = np.ones(count, dtype=bool)
    measurements = Measurements(
        kind=np.full(count, RADAR),
        known_source=yes,
        complete=yes,
        time_ns=time_ns,
        time_sigma_s=np.zeros(count),
        site_km=site,
        site_km_s=site_v,
        pole=np.ascontiguousarray(enu[:, 2]),
        direction=np.einsum("nij,ni->nj", enu, level),
        value=value,
        variance=variance,
        present=present,
        site_sigma_km=np.zeros(count),
    )
    return measurements, station, names


@cache
def fit(forces: Forces, own_accelerations: bool = False, drag: bool = False) -> ArcFit:
    measurements, station, _ = readings()
    return fit_arc(
        measurements, station, in_gcrf(FIRST_GUESS), EPOCH_NS, forces, own_accelerations=own_accelerations, drag=drag
    )


def distance_from_published_km(found: ArcFit) -> float:
    return float(np.linalg.norm(in_eme2000(found.state)[:3] - PUBLISHED[:3]))


def range_sigma_m(found: ArcFit) -> float:
    return float(np.std(found.residual[:, 0][found.used[:, 0]])) * 1000


def _sites(place: dict[str, FloatArray], time_ns: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Position (n, 3) km, velocity (n, 3) km/s and east, north, up (n, 3, 3) of the sites in GCRF."""
    site, velocity, enu = np.empty((len(time_ns), 3)), np.empty((len(time_ns), 3)), np.empty((len(time_ns), 3, 3))
    for row, time in enumerate(time_ns.tolist()):
        at = instant(time)
        where = api.wgs84.latlon(place["latitude_deg"][row], place["longitude_deg"][row], place["altitude_m"][row])
        topos = where.at(at)
        site[row], velocity[row] = topos.position.km, topos.velocity.km_per_s
        # Skyfield's rows are north, east, up.
        enu[row] = where.rotation_at(at)[[1, 0, 2]]
    return site, velocity, enu
