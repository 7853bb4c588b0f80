"""Earth orientation: converts states from any frame of a CDM or OMM into GCRF by the published parameters.

`frames` leaves UT1, polar motion and nutation out, because everything compared there is in one frame. Two objects in
different frames are compared here, where a tenth of a second of UT1 is 50 m. Precession and nutation: IAU 2006/2000A
(ERFA). UT1, polar motion and length of day: IERS Bulletin A, which covers 1973 to about a year after the installed
data.
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


_TwoParts = tuple[FloatArray, FloatArray]


class UnknownOrientation(ValueError):
    """The Earth's orientation is not published for an instant; the text gives the published span."""


@dataclasses.dataclass(frozen=True)
class Orientation:
    """Measured Earth orientation parameters at n instants, (n,) each."""

    ut1_minus_utc_s: FloatArray
    polar_x_rad: FloatArray
    polar_y_rad: FloatArray
    excess_day_s: FloatArray


FRAMES = ("GCRF", "ICRF", "EME2000", "TEME", "TOD", "ITRF")
"""The frames whose states can be compared; ITRF means each of its realisations."""


def in_gcrf(frame: str, r_km: FloatArray, v_km_s: FloatArray, time_ns: int) -> tuple[FloatArray, FloatArray]:
    """A state, (3,) each, given in one of FRAMES, in GCRF; the velocity is inertial.

    Raises:
        UnknownOrientation: for ITRF and TEME, outside of the published Earth orientation.
    """
    r, v = states_in_gcrf(frame, r_km[None], v_km_s[None], np.array([time_ns], np.int64))
    return r[0], v[0]


def states_in_gcrf(
    frame: str, r_km: FloatArray, v_km_s: FloatArray, time_ns: npt.NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """The same for states (n, 3), (n, 3) at ``time_ns`` (n,)."""
    turn = to_gcrf(frame, time_ns)
    if frame == "ITRF":
        seen = orientation(time_ns)
        spin = EARTH_ROTATION_RAD_S * (1 - seen.excess_day_s / _DAY_S)
        v_km_s = v_km_s + np.cross(_polar(seen, time_ns)[:, :, 2] * np.asarray(spin)[:, None], r_km)
    return _turned(turn, r_km), _turned(turn, v_km_s)


def states_in_teme(
    frame: str, r_km: FloatArray, v_km_s: FloatArray, time_ns: npt.NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """States (n, 3), (n, 3), given in one of FRAMES at ``time_ns`` (n,), in TEME of date. Raises as `in_gcrf`."""
    if frame == "TEME":
        return r_km, v_km_s
    r, v = states_in_gcrf(frame, r_km, v_km_s, time_ns)
    back = to_gcrf("TEME", time_ns).swapaxes(1, 2)
    return _turned(back, r), _turned(back, v)


def to_gcrf(frame: str, time_ns: npt.NDArray[np.int64]) -> FloatArray:
    """The rotations (n, 3, 3) from one of FRAMES at ``time_ns`` (n,) into GCRF. Raises as `in_gcrf`."""
    if frame in ("GCRF", "ICRF"):
        return np.broadcast_to(np.eye(3), (len(time_ns), 3, 3))
    if frame == "EME2000":
        return np.broadcast_to(erfa.bp06(erfa.DJ00, 0.0)[0].T, (len(time_ns), 3, 3))
    utc, tt = _utc_and_tt(time_ns)
    if frame == "TOD":
        return np.asarray(erfa.pnm06a(*tt).swapaxes(-1, -2))
    seen = orientation(time_ns)
    if frame == "TEME":
        return _teme_to_gcrf(seen, time_ns)
    ut1 = erfa.utcut1(*utc, seen.ut1_minus_utc_s)
    return np.asarray(erfa.c2t06a(*tt, *ut1, seen.polar_x_rad, seen.polar_y_rad).swapaxes(-1, -2))


def gcrf_to_itrf(time_ns: npt.NDArray[np.int64]) -> FloatArray:
    """The rotations (n, 3, 3) from GCRF into ITRF; beyond the published span its first or last values count.

    For predictions, where a second of UT1 turns the Earth's field and nothing else.
    """
    utc, tt = _utc_and_tt(time_ns)
    seen = _orientation(time_ns)
    ut1 = erfa.utcut1(*utc, seen.ut1_minus_utc_s)
    return np.asarray(erfa.c2t06a(*tt, *ut1, seen.polar_x_rad, seen.polar_y_rad))


def gcrf_to_teme(time_ns: npt.NDArray[np.int64]) -> FloatArray:
    """The rotations (n, 3, 3) from GCRF into TEME of date.

    They hardly depend on UT1; beyond the published span its first or last values count.
    """
    return _teme_to_gcrf(_orientation(time_ns), time_ns).swapaxes(-1, -2)


def _teme_to_gcrf(seen: Orientation, time_ns: npt.NDArray[np.int64]) -> FloatArray:
    utc, tt = _utc_and_tt(time_ns)
    ut1 = erfa.utcut1(*utc, seen.ut1_minus_utc_s)
    from_earth = erfa.c2t06a(*tt, *ut1, seen.polar_x_rad, seen.polar_y_rad).swapaxes(-1, -2)
    # Turned by mean sidereal time it is Earth-fixed but for polar motion (Vallado, AIAA 2006-6753, appendix C).
    spun = erfa.rz(erfa.gmst82(*ut1), np.eye(3))
    return np.asarray(from_earth @ _polar(seen, time_ns) @ spun)


def earth_velocity_km_s(time_ns: npt.NDArray[np.int64]) -> FloatArray:
    """The Earth's velocity (n, 3) about the barycentre of the solar system, axes of GCRF. Source: ERFA `epv00`."""
    _, tt = _utc_and_tt(time_ns)
    _, barycentric = erfa.epv00(*tt)
    return np.asarray(barycentric["v"] * (erfa.DAU / 1000.0 / _DAY_S))


def _turned(turn: FloatArray, vector: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("nij,nj->ni", turn, vector))


def _polar(seen: Orientation, time_ns: npt.NDArray[np.int64]) -> FloatArray:
    _, tt = _utc_and_tt(time_ns)
    return np.asarray(erfa.pom00(seen.polar_x_rad, seen.polar_y_rad, erfa.sp00(*tt)))


def _utc_and_tt(time_ns: npt.NDArray[np.int64]) -> tuple[_TwoParts, _TwoParts]:
    """The instants as two-part Julian dates, UTC and TT."""
    utc = np.asarray(_UNIX_JD + time_ns // _DAY_NS), np.asarray(time_ns % _DAY_NS / _DAY_NS)
    return utc, erfa.taitt(*erfa.utctai(*utc))


def orientation(time_ns: npt.NDArray[np.int64]) -> Orientation:
    """The Earth's orientation at ``time_ns`` (n,), UTC, between the daily values. Raises UnknownOrientation."""
    days = _bulletin()
    mjd = _UNIX_JD - _MJD_JD + time_ns / _DAY_NS
    first, last = days["mjd"][0], days["mjd"][-1]
    if not np.all((first <= mjd) & (mjd <= last)):
        span = " to ".join("{:04}-{:02}-{:02}".format(*erfa.jd2cal(_MJD_JD, day)[:3]) for day in (first, last))
        raise UnknownOrientation(f"the Earth's orientation is known from {span} only")
    return _orientation(time_ns)


def _orientation(time_ns: npt.NDArray[np.int64]) -> Orientation:
    days = _bulletin()
    mjd = _UNIX_JD - _MJD_JD + time_ns / _DAY_NS
    x, y, ut1_minus_tai, lod = (np.interp(mjd, days["mjd"], days[name]) for name in ("x", "y", "ut1_tai", "lod"))
    return Orientation(ut1_minus_tai + _leap_seconds(mjd), x * erfa.DAS2R, y * erfa.DAS2R, lod / 1000)


@cache
def _bulletin() -> dict[str, npt.NDArray[np.float64]]:
    """The daily values up to the last complete day."""
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
