"""How the Earth stands in space: states of any of a message's frames in GCRF, by the published Earth orientation.

`frames` leaves UT1, polar motion and nutation out, because everything compared there is in one frame. Two objects in
different frames are compared here, where a tenth of a second of UT1 is 50 m. Precession and nutation: IAU 2006/2000A
(ERFA); UT1, polar motion and length of day: IERS Bulletin A, which reaches from 1973 to about a year ahead of the
installed data.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import astropy_iers_data
import erfa
import numpy as np
import numpy.typing as npt

from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.frames import EARTH_ROTATION_RAD_S

_UNIX_JD, _MJD_JD = 2440587.5, 2400000.5
_DAY_NS = 86_400_000_000_000
_DAY_S = 86_400.0
# Columns of finals2000A: Modified Julian Date, polar motion in arcseconds, UT1 - UTC in s, length of day in ms.
_COLUMNS = {"mjd": (7, 15), "x": (18, 27), "y": (37, 46), "ut1": (58, 68), "lod": (79, 86)}


class UnknownOrientation(ValueError):
    """The Earth's orientation at an instant is not known; the text says from when to when it is."""


@dataclasses.dataclass(frozen=True)
class Orientation:
    """What is measured of the Earth's rotation at one instant."""

    ut1_minus_utc_s: float
    polar_x_rad: float
    polar_y_rad: float
    excess_day_s: float


def in_gcrf(frame: str, r_km: FloatArray, v_km_s: FloatArray, time_ns: int) -> tuple[FloatArray, FloatArray]:
    """A state, (3,) each, given in ITRF, TEME of date, EME2000, GCRF or ICRF, in GCRF; the velocity is inertial.

    Raises:
        UnknownOrientation: for ITRF and TEME, outside of the published Earth orientation.
    """
    if frame in ("GCRF", "ICRF"):
        return r_km, v_km_s
    if frame == "EME2000":
        bias = erfa.bp06(erfa.DJ00, 0.0)[0]
        return bias.T @ r_km, bias.T @ v_km_s
    seen = orientation(time_ns)
    utc = _UNIX_JD + time_ns // _DAY_NS, time_ns % _DAY_NS / _DAY_NS
    tt, ut1 = erfa.taitt(*erfa.utctai(*utc)), erfa.utcut1(*utc, seen.ut1_minus_utc_s)
    polar = erfa.pom00(seen.polar_x_rad, seen.polar_y_rad, erfa.sp00(*tt))
    to_earth = erfa.c2t06a(*tt, *ut1, seen.polar_x_rad, seen.polar_y_rad)
    if frame == "TEME":
        # Turned by mean sidereal time it is Earth-fixed but for polar motion (Vallado, AIAA 2006-6753, appendix C).
        turn: FloatArray = to_earth.T @ polar @ erfa.rz(erfa.gmst82(*ut1), np.eye(3))
        return turn @ r_km, turn @ v_km_s
    rate = polar @ np.array([0.0, 0.0, EARTH_ROTATION_RAD_S * (1 - seen.excess_day_s / _DAY_S)])
    return to_earth.T @ r_km, to_earth.T @ (v_km_s + np.cross(rate, r_km))


def orientation(time_ns: int) -> Orientation:
    """The Earth's orientation at ``time_ns`` (UTC), between the daily values. Raises UnknownOrientation."""
    days = _bulletin()
    mjd = _UNIX_JD - _MJD_JD + time_ns / _DAY_NS
    first, last = days["mjd"][0], days["mjd"][-1]
    if not first <= mjd <= last:
        span = " to ".join("{:04}-{:02}-{:02}".format(*erfa.jd2cal(_MJD_JD, day)[:3]) for day in (first, last))
        raise UnknownOrientation(f"the Earth's orientation is known from {span} only")
    x, y, ut1_minus_tai, lod = (float(np.interp(mjd, days["mjd"], days[n])) for n in ("x", "y", "ut1_tai", "lod"))
    leap = float(_leap_seconds(np.array([mjd]))[0])
    return Orientation(ut1_minus_tai + leap, x * erfa.DAS2R, y * erfa.DAS2R, lod / 1000)


@cache
def _bulletin() -> dict[str, npt.NDArray[np.float64]]:
    """The daily values up to the last day that has all."""
    lines = Path(str(astropy_iers_data.IERS_A_FILE)).read_text().splitlines()
    full = [line for line in lines if line[slice(*_COLUMNS["ut1"])].strip()]
    days = {
        name: np.array([float(line[slice(*place)].strip() or 0.0) for line in full]) for name, place in _COLUMNS.items()
    }
    # UTC jumps at leap seconds, TAI does not: only the latter can be interpolated.
    return {**days, "ut1_tai": days["ut1"] - _leap_seconds(days["mjd"])}


def _leap_seconds(mjd: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    year, month, day, fraction = erfa.jd2cal(_MJD_JD, mjd)
    return np.asarray(erfa.dat(year, month, day, fraction))
