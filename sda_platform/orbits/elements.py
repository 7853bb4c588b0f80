"""Mean orbital elements as equal-length arrays, and the altitudes that follow from them.

Holds no parsing (see ``formats``) and no propagation (see ``orbits.propagation``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import BoolArray, FloatArray, IntArray

WGS72_MU_KM3_S2 = 398600.8
WGS72_RADIUS_KM = 6378.135
WGS72_J2 = 0.001082616
SGP4_DAY_ZERO_JD = 2433281.5
"""Whence SGP4 counts days: 1949 December 31, 00:00 UTC."""
_INTEGER_COLUMNS = ("norad_id", "epoch_time_ns")
FARTHEST_APOGEE_KM = 1_500_000.0
"""Apogee altitude beyond which the Sun, and not the Earth, holds an object."""
ALWAYS_NS, FOREVER_NS = -(2**62), 2**62
"""Before and after every instant that is meant."""


@dataclasses.dataclass(frozen=True, eq=False)
class ElementSets:
    """SGP4 mean elements of ``n`` objects, one array of shape (n,) per column.

    Columns keep the names and units of the element-set schema: angles in degrees, mean motion in revolutions per day,
    ``epoch_time_ns`` in nanoseconds since the Unix epoch (UTC). The derivatives follow the OMM convention (first
    derivative halved, second divided by six); SGP4 does not use them. ``decay_time_ns`` is when the object decayed, as
    the set's source states; FOREVER_NS where it states nothing.
    """

    norad_id: IntArray
    epoch_time_ns: IntArray
    mean_motion_rev_per_day: FloatArray
    eccentricity: FloatArray
    inclination_deg: FloatArray
    raan_deg: FloatArray
    arg_of_pericenter_deg: FloatArray
    mean_anomaly_deg: FloatArray
    bstar_per_earth_radius: FloatArray
    mean_motion_dot_rev_per_day2: FloatArray
    mean_motion_ddot_rev_per_day3: FloatArray
    decay_time_ns: IntArray

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            column = getattr(self, field.name)
            if column.shape != self.norad_id.shape or column.ndim != 1:
                raise ValueError(
                    f"element column {field.name} has shape {column.shape}, expected {self.norad_id.shape}"
                )

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> Self:
        """Build from a mapping of column name to array-like; other keys are ignored.

        A missing or NaN derivative or drag term becomes 0, as in an element set that leaves it blank; a missing decay
        never comes.

        Raises:
            ValueError: a required column is missing, or lengths differ.
        """
        count = len(columns["norad_id"]) if "norad_id" in columns else 0
        arrays: dict[str, npt.NDArray[Any]] = {}
        for field in dataclasses.fields(cls):
            if field.name == "decay_time_ns":
                arrays[field.name] = _instants_or_never(columns.get(field.name), count)
                continue
            optional = field.name.startswith(("bstar", "mean_motion_d"))
            if field.name not in columns and not optional:
                raise ValueError(f"element column {field.name} is missing")
            dtype = np.int64 if field.name in _INTEGER_COLUMNS else np.float64
            column = np.asarray(columns.get(field.name, np.zeros(count)), dtype=dtype)
            arrays[field.name] = np.nan_to_num(column, posinf=np.inf, neginf=-np.inf) if optional else column
        return cls(**arrays)

    @classmethod
    def stack(cls, parts: Sequence[Self]) -> Self:
        """All rows of all parts, in order."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    def __len__(self) -> int:
        return len(self.norad_id)

    def take(self, index: npt.ArrayLike) -> Self:
        """Return the sets at ``index``: integer positions, a boolean mask or a slice-like array, in that order."""
        chosen = np.asarray(index)
        columns = {field.name: getattr(self, field.name)[chosen] for field in dataclasses.fields(self)}
        return type(self)(**columns)

    def of_object(self, norad_id: int) -> Self:
        """Return the same sets as those of object ``norad_id``."""
        return dataclasses.replace(self, norad_id=np.full(len(self), norad_id))


def _instants_or_never(column: Any, count: int) -> IntArray:
    """(n,) instants in ns, FOREVER_NS where ``column`` has none: no number, or 0 as in an array of integers."""
    if column is None:
        return np.full(count, FOREVER_NS)
    if isinstance(column, np.ndarray) and column.dtype.kind in "if":
        known = np.nan_to_num(column).astype(np.int64)
        return np.where(known == 0, FOREVER_NS, known)
    values = column.tolist() if isinstance(column, np.ndarray) else column
    is_absent = [value is None or value != value or not value for value in values]
    found = [FOREVER_NS if absent else int(value) for value, absent in zip(values, is_absent, strict=True)]
    return np.array(found, np.int64)


def semi_major_axis_km(elements: ElementSets) -> FloatArray:
    """Brouwer mean semi-major axis in km, shape (n,); NaN where the elements describe no closed orbit.

    Undoes the Kozai convention of published mean motions as SGP4 itself does.
    Source: Hoots & Roehrich, Spacetrack Report 3 (1980), section 6, WGS72 constants.
    """
    k2 = 0.5 * WGS72_J2 * WGS72_RADIUS_KM**2
    with np.errstate(all="ignore"):
        kozai_rad_s = elements.mean_motion_rev_per_day * (2 * np.pi / 86400.0)
        first_guess = np.cbrt(WGS72_MU_KM3_S2 / kozai_rad_s**2)
        cos_i = np.cos(np.radians(elements.inclination_deg))
        shape = 1.5 * k2 * (3 * cos_i**2 - 1) / (1 - elements.eccentricity**2) ** 1.5
        d1 = shape / first_guess**2
        a0 = first_guess * (1 - d1 / 3 - d1**2 - 134 / 81 * d1**3)
        axis: FloatArray = a0 / (1 - shape / a0**2)
    closed = (elements.mean_motion_rev_per_day > 0) & (elements.eccentricity >= 0) & (elements.eccentricity < 1)
    return np.where(closed, axis, np.nan)


def perigee_altitude_km(elements: ElementSets) -> FloatArray:
    """Mean perigee height above the WGS72 equatorial radius in km, shape (n,)."""
    return semi_major_axis_km(elements) * (1 - elements.eccentricity) - WGS72_RADIUS_KM


def apogee_altitude_km(elements: ElementSets) -> FloatArray:
    """Mean apogee height above the WGS72 equatorial radius in km, shape (n,)."""
    return semi_major_axis_km(elements) * (1 + elements.eccentricity) - WGS72_RADIUS_KM


def are_possible(elements: ElementSets) -> BoolArray:
    """Return whether each set (n,) is an orbit around the Earth: above the ground, and within its reach."""
    perigee_km, apogee_km = perigee_altitude_km(elements), apogee_altitude_km(elements)
    return np.asarray((perigee_km >= 0.0) & (apogee_km <= FARTHEST_APOGEE_KM))
