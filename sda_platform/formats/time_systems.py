"""Time systems: those of messages, converted to UTC, and TAI. Leap seconds are those of ``astropy-iers-data``."""

from functools import cache
from pathlib import Path
from typing import Final

import astropy_iers_data
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sda_platform.formats.errors import RecordError
from sda_platform.units import DAY_NS, SECOND_NS

# What is added to the system to have TAI, in nanoseconds. TDB stays within 2 ms of TT.
_TO_TAI_NS: Final = {"TAI": 0, "TT": -32_184_000_000, "TDT": -32_184_000_000, "GPS": 19_000_000_000}
_UTC: Final = "UTC"
_UNIX_MJD: Final = 40_587
_OTHERS: Final = ("TDB", "TCB", "TCG", "UT1", "GMST", "MET", "MRT", "SCLK")
CONVERTED_TIME_SYSTEMS: Final = (_UTC, *_TO_TAI_NS)
TIME_SYSTEMS: Final = (*CONVERTED_TIME_SYSTEMS, *_OTHERS)
"""The time systems that the standards name."""


def require_time_system(name: str) -> None:
    """Raise RecordError for a time system that no standard names."""
    if name.strip().upper() not in TIME_SYSTEMS:
        raise RecordError(
            "out_of_range", f"TIME_SYSTEM is {ascii(name)[:40]}, must be one of {', '.join(TIME_SYSTEMS)}"
        )


def to_utc_ns(time_ns: NDArray[np.int64], time_system: str) -> NDArray[np.int64]:
    """Unix time UTC, (n,), of instants whose digits were read as if they were UTC.

    Raises RecordError for a system that is not in CONVERTED_TIME_SYSTEMS, and for instants before leap seconds.
    """
    system = time_system.strip().upper()
    if system == _UTC:
        return time_ns
    if system not in _TO_TAI_NS:
        allowed = ", ".join(CONVERTED_TIME_SYSTEMS)
        raise RecordError("out_of_range", f"TIME_SYSTEM is {ascii(time_system)[:40]}, only {allowed} can be used")
    tai_ns = time_ns + _TO_TAI_NS[system]
    if np.any(tai_ns < _leap_seconds()[0][0]):
        raise RecordError("out_of_range", f"an instant in {system} is before 1972, when UTC had no whole leap seconds")
    return tai_to_utc_ns(tai_ns)


def utc_to_tai_ns(time_ns: ArrayLike) -> NDArray[np.int64]:
    """TAI, counted in nanoseconds like Unix time, of Unix times UTC (...); before 1972 it is 10 s ahead.

    Differences of TAI are elapsed seconds; those of Unix times lack the leap seconds between them.
    """
    utc_ns = np.asarray(time_ns, dtype=np.int64)
    starts_ns, offsets_ns = _leap_seconds()
    index = np.searchsorted(starts_ns - offsets_ns, utc_ns, side="right") - 1
    return np.asarray(utc_ns + offsets_ns[np.maximum(index, 0)])


def tai_to_utc_ns(tai_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Unix time UTC of instants (...) in TAI: the inverse of `utc_to_tai_ns`."""
    starts_ns, offsets_ns = _leap_seconds()
    index = np.searchsorted(starts_ns, tai_ns, side="right") - 1
    return np.asarray(tai_ns - offsets_ns[np.maximum(index, 0)])


@cache
def leap_second_ends_ns() -> frozenset[int]:
    """Return the Unix times UTC, ns, of the midnights before which there was a leap second."""
    starts_ns, offsets_ns = _leap_seconds()
    return frozenset((starts_ns - offsets_ns)[1:].tolist())


@cache
def _leap_seconds() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the instants (TAI, ns) from which each offset TAI - UTC (ns) holds, from 1972 on."""
    lines = Path(str(astropy_iers_data.IERS_LEAP_SECOND_FILE)).read_text().splitlines()
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    days = np.array([round(float(row[0])) - _UNIX_MJD for row in rows], np.int64)
    offsets = np.array([int(row[-1]) * SECOND_NS for row in rows], np.int64)
    return days * DAY_NS + offsets, offsets
