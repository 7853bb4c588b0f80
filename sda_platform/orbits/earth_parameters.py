"""The measured rotation of the Earth: UT1, polar motion, and the time scales that orientation follows.

Source: IERS Bulletin A (finals2000A) of the installed ``astropy-iers-data``, from 1973 to about a year after its date.
Instants are Unix times UTC. Time scales follow from them by whole leap seconds, on every day.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import astropy_iers_data
import erfa
import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray
from sda_platform.formats.time_systems import utc_to_tai_ns
from sda_platform.units import DAY_NS

TwoParts = tuple[FloatArray, FloatArray]
"""A Julian date as whole days and a fraction, (...) each."""

_UNIX_JD, _MJD_JD = 2440587.5, 2400000.5
_TT_MINUS_TAI_NS = 32_184_000_000
# Columns of finals2000A: Modified Julian Date, polar motion in arcseconds, UT1 - UTC in s.
_COLUMNS = {"mjd": (7, 15), "x": (18, 27), "y": (37, 46), "ut1": (58, 68)}


class UnknownOrientation(ValueError):
    """The Earth's orientation is not published for an instant; the text gives the published span."""


@dataclasses.dataclass(frozen=True)
class Orientation:
    """The rotation parameters at instants (...)."""

    ut1_minus_utc_s: FloatArray
    polar_x_rad: FloatArray
    polar_y_rad: FloatArray


def require_published(time_ns: npt.ArrayLike) -> None:
    """Raise UnknownOrientation where an instant (...) is outside of the published span."""
    first_ns, last_ns = published_span_ns()
    times = np.asarray(time_ns, dtype=np.int64)
    if np.any((times < first_ns) | (times > last_ns)):
        span = " to ".join(str(np.datetime64(each, "ns").astype("datetime64[D]")) for each in (first_ns, last_ns))
        raise UnknownOrientation(f"the Earth's orientation is known from {span} only (astropy-iers-data)")


def published_span_ns() -> tuple[int, int]:
    """Return the first and the last instant of the published span."""
    days = _bulletin()[0]
    first, last = ((day + _MJD_JD - _UNIX_JD) * DAY_NS for day in (days[0], days[-1]))
    return int(first), int(last)


def orientation(time_ns: npt.ArrayLike) -> Orientation:
    """Return the parameters at instants (...), linear between the daily values.

    Before and after the published span its first or last values hold. UT1 - UTC is then off by up to 0.9 s, 420 m at
    the equator; `require_published` refuses such instants.
    """
    days, ut1_minus_tai_s, x_rad, y_rad = _bulletin()
    times = np.clip(np.asarray(time_ns, dtype=np.int64), *published_span_ns())
    at = times / DAY_NS + (_UNIX_JD - _MJD_JD)
    tai_minus_utc_s = (utc_to_tai_ns(times) - times) / 1e9
    return Orientation(
        np.asarray(np.interp(at, days, ut1_minus_tai_s) + tai_minus_utc_s),
        np.asarray(np.interp(at, days, x_rad)),
        np.asarray(np.interp(at, days, y_rad)),
    )


def ut1_ns(time_ns: npt.ArrayLike, seen: Orientation) -> npt.NDArray[np.int64]:
    """UT1 of instants (...), counted in nanoseconds like Unix time."""
    return np.asarray(time_ns, dtype=np.int64) + np.rint(seen.ut1_minus_utc_s * 1e9).astype(np.int64)


def terrestrial_time(time_ns: npt.ArrayLike) -> TwoParts:
    """Convert instants (...) to Terrestrial Time (TT)."""
    return julian(utc_to_tai_ns(time_ns) + _TT_MINUS_TAI_NS)


def julian(count_ns: npt.NDArray[np.int64]) -> TwoParts:
    """Return the Julian date of nanoseconds since 1970 (...), in the time scale in which they count."""
    return np.asarray(_UNIX_JD + count_ns // DAY_NS), np.asarray(count_ns % DAY_NS / DAY_NS)


@cache
def _bulletin() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Days (MJD), UT1 - TAI in s, and the pole's coordinates in rad, up to the last complete day."""
    lines = Path(str(astropy_iers_data.IERS_A_FILE)).read_text().splitlines()
    full = [line for line in lines if line[slice(*_COLUMNS["ut1"])].strip()]
    mjd, x, y, ut1 = (np.array([float(line[slice(*place)]) for line in full]) for place in _COLUMNS.values())
    midnight_ns = np.rint((mjd + (_MJD_JD - _UNIX_JD)) * DAY_NS).astype(np.int64)
    # UTC jumps at leap seconds, TAI does not: only the latter can be interpolated.
    return mjd, ut1 - (utc_to_tai_ns(midnight_ns) - midnight_ns) / 1e9, x * erfa.DAS2R, y * erfa.DAS2R
