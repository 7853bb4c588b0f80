"""Time as SGP4 takes it: Julian days and fractions, UTC, that differ by elapsed time."""

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.time_systems import utc_to_tai_ns
from sda_platform.units import DAY_NS

_UNIX_EPOCH_JD = 2440587.5
_TAI_MINUS_UTC_NS = 37_000_000_000


def julian(time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the Julian days (n,) of instants (n,), Unix time UTC, and their fractions."""
    whole, rest = np.divmod(time_ns, DAY_NS)
    return np.ascontiguousarray(whole + _UNIX_EPOCH_JD), np.ascontiguousarray(rest / DAY_NS)


def elapsed(time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return days and fractions that differ by elapsed time: a leap second between epoch and time counts."""
    day, fraction = julian(time_ns)
    return day, fraction + leap_days(time_ns)


def leap_days(time_ns: IntArray) -> FloatArray:
    """Return the leap seconds at instants (n,) less those of today, in days: 0 since 2017."""
    return np.asarray((utc_to_tai_ns(time_ns) - time_ns - _TAI_MINUS_UTC_NS) / DAY_NS)
