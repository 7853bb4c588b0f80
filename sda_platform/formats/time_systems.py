"""Time systems of messages, converted to UTC. Leap seconds are those of ERFA."""

from functools import cache
from typing import Final

import erfa
import numpy as np
from numpy.typing import NDArray

from sda_platform.formats.errors import RecordError

# What is added to the system to have TAI, in nanoseconds. TDB stays within 2 ms of TT.
_TO_TAI_NS: Final = {"TAI": 0, "TT": -32_184_000_000, "TDT": -32_184_000_000, "GPS": 19_000_000_000}
_UTC: Final = "UTC"
_NS: Final = 1_000_000_000
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
    starts_ns, offsets_ns = _leap_seconds()
    index = np.searchsorted(starts_ns, tai_ns, side="right") - 1
    if np.any(index < 0):
        raise RecordError("out_of_range", f"an instant in {system} is before 1972, when UTC had no whole leap seconds")
    return np.asarray(tai_ns - offsets_ns[index])


@cache
def _leap_seconds() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The instants (TAI, ns) from which each offset TAI - UTC (ns) holds, from 1972 on."""
    table = [row for row in erfa.leap_seconds.get() if row["year"] >= 1972]
    offsets = np.array([round(row["tai_utc"]) * _NS for row in table], np.int64)
    days = [np.datetime64(f"{row['year']:04d}-{row['month']:02d}-01", "ns").astype(np.int64) for row in table]
    return np.array(days, np.int64) + offsets, offsets
