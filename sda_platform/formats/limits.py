"""Physical limits of measured quantities, checked over whole columns.

The limits exclude values that are impossible for any sensor. Values that are unlikely for a given sensor are
rejected by association.
"""

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from math import nextafter, pi
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sda_platform.clock import iso
from sda_platform.formats.errors import RecordError

SPEED_OF_LIGHT_M_S: Final = 299_792_458.0
EARTH_POLAR_RADIUS_M: Final = 6_356_752.3
FARTHEST_M: Final = 1.0e9
ABOVE_ZERO: Final = nextafter(0.0, 1.0)
LARGEST_CLOCK_SKEW_NS: Final = 5_000_000_000
"""A clock of unknown quality may be 5 s off; a reading stamped later still after reception is impossible."""

FIRST_TIME_NS: Final = -386_380_800_000_000_000  # 1957-10-04, the first satellite
LAST_TIME_NS: Final = 4_102_444_800_000_000_000  # 2100-01-01


@dataclass(frozen=True, slots=True)
class Limit:
    """`low` <= value <= `high`, both in the unit that ends the column's name."""

    column: str
    low: float
    high: float


OBSERVATION_LIMITS: Final[tuple[Limit, ...]] = (
    Limit("range_m", ABOVE_ZERO, FARTHEST_M),
    Limit("range_sigma_m", ABOVE_ZERO, FARTHEST_M),
    Limit("range_rate_m_s", -SPEED_OF_LIGHT_M_S, SPEED_OF_LIGHT_M_S),
    Limit("range_rate_sigma_m_s", ABOVE_ZERO, SPEED_OF_LIGHT_M_S),
    Limit("azimuth_rad", -2 * pi, 2 * pi),
    Limit("elevation_rad", -pi / 2, pi / 2),
    Limit("right_ascension_rad", -2 * pi, 2 * pi),
    Limit("declination_rad", -pi / 2, pi / 2),
    Limit("angle_sigma_rad", ABOVE_ZERO, pi),
    Limit("geocentric_distance_m", EARTH_POLAR_RADIUS_M, FARTHEST_M),
    Limit("speed_m_s", 0.0, SPEED_OF_LIGHT_M_S),
    Limit("position_sigma_m", ABOVE_ZERO, FARTHEST_M),
    Limit("velocity_sigma_m_s", ABOVE_ZERO, SPEED_OF_LIGHT_M_S),
    Limit("clock_age_s", 0.0, 1.0e9),
)

ELEMENT_LIMITS: Final[tuple[Limit, ...]] = (
    Limit("norad_id", 1, 999_999_999),
    Limit("epoch_time_ns", FIRST_TIME_NS, LAST_TIME_NS),
    Limit("mean_motion_rev_per_day", ABOVE_ZERO, 20.0),
    Limit("eccentricity", 0.0, nextafter(1.0, 0.0)),
    Limit("inclination_deg", 0.0, 180.0),
    Limit("raan_deg", -360.0, 360.0),
    Limit("arg_of_pericenter_deg", -360.0, 360.0),
    Limit("mean_anomaly_deg", -360.0, 360.0),
    Limit("bstar_per_earth_radius", -1.0e3, 1.0e3),
    Limit("mean_motion_dot_rev_per_day2", -1.0e3, 1.0e3),
    Limit("mean_motion_ddot_rev_per_day3", -1.0e3, 1.0e3),
)


def note_violations(
    errors: MutableMapping[int, RecordError],
    columns: Mapping[str, NDArray[np.float64]],
    limits: Iterable[Limit],
) -> None:
    """Write the first violated limit of each row into `errors`, by row; those already in error are left as they are.

    `columns` holds (n,) arrays; NaN violates every limit, and a limit whose column is absent is not applied.
    """
    for limit in limits:
        values = columns.get(limit.column)
        if values is None:
            continue
        inside = (values >= limit.low) & (values <= limit.high)
        for row in np.flatnonzero(~inside).tolist():
            if row not in errors:
                errors[row] = RecordError("out_of_range", violation_text(limit, float(values[row])))


def note_impossible_times(
    errors: MutableMapping[int, RecordError],
    sensor_time_ns: NDArray[np.uint64],
    received_time_ns: NDArray[np.int64],
) -> None:
    """Refuse readings stamped after reception by more than any skew (watermark poison)."""
    latest = np.maximum(received_time_ns, 0).astype(np.uint64) + np.uint64(LARGEST_CLOCK_SKEW_NS)
    latest = np.minimum(latest, np.uint64(np.iinfo(np.int64).max))
    for row in np.flatnonzero(sensor_time_ns > latest).tolist():
        if row not in errors:
            ahead_s = (int(sensor_time_ns[row]) - int(received_time_ns[row])) / 1e9
            errors[row] = RecordError(
                "out_of_range",
                f"sensor_time_ns {sensor_time_ns[row]} is {ahead_s:,.3f} s after its reception at "
                f"{iso(int(received_time_ns[row]))} by the mission clock, at most 5 s can be: set the sensor's clock, "
                "or send times of the mission (`sda now`)",
            )


def violation_text(limit: Limit, value: float) -> str:
    """Describe a value and the limit that it violates, for people."""
    low = "above 0" if limit.low == ABOVE_ZERO else f"at least {limit.low:.10g}"
    return f"{limit.column} is {value!r}, must be {low} and at most {limit.high:.10g}"
