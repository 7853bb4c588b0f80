"""Frames of an independent implementation: Skyfield, with its own reading of the published Earth orientation."""

from functools import cache
from pathlib import Path

import astropy_iers_data
import numpy as np
from skyfield.api import wgs84
from skyfield.data import iers
from skyfield.framelib import itrs
from skyfield.sgp4lib import TEME
from skyfield.timelib import Time, Timescale

from sda_platform.arrays import FloatArray, IntArray

_DAY_NS = 86_400 * 10**9


@cache
def timescale() -> Timescale:
    """With UT1, polar motion and leap seconds of finals2000A."""
    with Path(str(astropy_iers_data.IERS_A_FILE)).open("rb") as file:
        found = iers.parse_x_y_dut1_from_finals_all(file)
    tt, delta_t, leap_dates, leap_offsets = iers.build_timescale_arrays(found["utc_mjd"], found["dut1"])
    scale = Timescale((tt, delta_t), leap_dates, leap_offsets)
    iers.install_polar_motion_table(scale, found)
    return scale


def instants(time_ns: IntArray) -> Time:
    """The instants of Unix times UTC (n,)."""
    day, rest = np.divmod(time_ns, _DAY_NS)
    return timescale().utc(1970, 1, 1 + day, 0, 0, rest / 1e9)


def teme_of_gcrf(states: FloatArray, time_ns: IntArray) -> FloatArray:
    """States (n, 6), GCRF, in TEME of date at ``time_ns`` (n,); velocities turn like positions."""
    turn = TEME.rotation_at(instants(time_ns))
    return np.hstack([np.einsum("ijn,nj->ni", turn, states[:, part]) for part in (slice(0, 3), slice(3, 6))])


def itrf_to_gcrf(time_ns: IntArray) -> FloatArray:
    """The rotations (n, 3, 3) from ITRF into GCRF."""
    turn: FloatArray = np.moveaxis(itrs.rotation_at(instants(time_ns)), -1, 0).swapaxes(1, 2)
    return turn


def pole_gcrf(time_ns: IntArray) -> FloatArray:
    """The axis (n, 3) about which the Earth turns, GCRF: ITRF's own pole is up to 0.6 arcseconds off it."""
    pole: FloatArray = TEME.rotation_at(instants(time_ns))[2].T
    return pole


def site_gcrf(latitude_deg: float, longitude_deg: float, altitude_m: float, time_ns: IntArray) -> FloatArray:
    """Position and velocity (n, 6) of a site, GCRF, km and km/s."""
    at = wgs84.latlon(latitude_deg, longitude_deg, elevation_m=altitude_m).at(instants(time_ns))
    states: FloatArray = np.concatenate([at.position.km, at.velocity.km_per_s]).T
    return states
