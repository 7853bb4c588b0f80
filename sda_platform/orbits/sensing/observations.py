"""Observations as a struct of arrays: what sensors reported, before any orbit is involved.

Holds no decoding (see ``formats``) and no measurement model (see ``measurements``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray, TextArray
from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.orbits.sensing.angle_corrections import geometric, references
from sda_platform.orbits.sensing.sensors import SensorNetwork, sensor_registry

_TEXT_COLUMNS = frozenset({"source_kind", "source_id", "clock_quality"})
_REQUIRED_COLUMNS = ("source_kind", "source_id", "sensor_time_ns")


@dataclasses.dataclass(frozen=True, eq=False)
class ObservationArrays:
    """``m`` observations, one array of shape (m,) per column, named like the observation schema.

    A number that its kind does not report is NaN, a text is empty. Angles and ranges are geometric
    (`angle_corrections`): Earth-fixed topocentric of a radar, topocentric TEME of date of a telescope. Link states are
    TEME. ``clock_correction_sigma_s`` is the 1 sigma uncertainty
    of the time-tag correction that was applied (NaN: none). ``sensors`` is the network that made the observations.
    """

    source_kind: TextArray
    source_id: TextArray
    sensor_time_ns: IntArray
    range_m: FloatArray
    range_sigma_m: FloatArray
    range_rate_m_s: FloatArray
    range_rate_sigma_m_s: FloatArray
    azimuth_rad: FloatArray
    elevation_rad: FloatArray
    right_ascension_rad: FloatArray
    declination_rad: FloatArray
    angle_sigma_rad: FloatArray
    x_m: FloatArray
    y_m: FloatArray
    z_m: FloatArray
    vx_m_s: FloatArray
    vy_m_s: FloatArray
    vz_m_s: FloatArray
    position_sigma_m: FloatArray
    velocity_sigma_m_s: FloatArray
    clock_quality: TextArray
    clock_age_s: FloatArray
    clock_correction_sigma_s: FloatArray
    sensors: SensorNetwork = dataclasses.field(default_factory=sensor_registry)

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any], sensors: SensorNetwork | None = None) -> Self:
        """Build from a mapping of column name to array-like; other keys are ignored, absent numbers are NaN.

        ``sensors``: the network that made the observations; the shipped one if not given. Angles and ranges are those
        that sensors report. What they refer to is stated by the columns of ANGLE_REFERENCES or the network.

        Raises:
            ValueError: ``source_kind``, ``source_id`` or ``sensor_time_ns`` is missing, lengths differ, or a reference
                of angles is unknown.
        """
        for name in _REQUIRED_COLUMNS:
            if name not in columns:
                raise ValueError(f"observation column {name} is missing")
        count = len(columns["sensor_time_ns"])
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name in COLUMNS:
            arrays[name] = _column(name, columns.get(name), count)
            if arrays[name].shape != (count,):
                raise ValueError(f"observation column {name} has shape {arrays[name].shape}, expected ({count},)")
        network = sensor_registry() if sensors is None else sensors
        refers = references(columns, arrays["source_id"], network)
        if refers is not None:
            arrays |= geometric(arrays, refers, network)
        return cls(**arrays, sensors=network)

    def __len__(self) -> int:
        return len(self.sensor_time_ns)

    def take(self, index: npt.ArrayLike) -> Self:
        """Return the observations at ``index`` (positions or a boolean mask), in that order."""
        chosen = np.asarray(index)
        return type(self)(**{name: getattr(self, name)[chosen] for name in COLUMNS}, sensors=self.sensors)

    def canonical_order(self, group: IntArray) -> IntArray:
        """Return positions that sort by ``group`` (m,), then time, source and every reported number.

        The order depends on the rows alone, not on how they arrived; rows that tie are equal in every column.
        """
        order = np.lexsort((self.sensor_time_ns, group))
        same = (np.diff(group[order]) == 0) & (np.diff(self.sensor_time_ns[order]) == 0)
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        # Only rows of one instant, usually few, are compared column by column.
        rows = order[tied]
        keys = [getattr(self, name)[rows] for name in COLUMNS if name not in ("sensor_time_ns", "source_id")]
        order[tied] = rows[np.lexsort((*keys, self.source_id[rows], self.sensor_time_ns[rows], group[rows]))]
        return order


def stacked(parts: Sequence[ObservationArrays]) -> ObservationArrays:
    """Return the observations of all parts, which one network made, in the order of the parts."""
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
    return ObservationArrays(**columns, sensors=parts[0].sensors)


COLUMNS = tuple(field.name for field in dataclasses.fields(ObservationArrays) if field.name != "sensors")
REPORTED_COLUMNS = (*(name for name in COLUMNS if name != "clock_correction_sigma_s"), *ANGLE_REFERENCES)
"""What sensors report: the columns that the table `observations` has as well."""


def _column(name: str, values: Any, count: int) -> npt.NDArray[Any]:
    if name == "sensor_time_ns":
        return np.asarray(values, dtype=np.int64)
    if name in _TEXT_COLUMNS:
        texts = [""] * count if values is None else ["" if value is None else value for value in values]
        return np.asarray(texts, dtype=np.str_)
    return np.full(count, np.nan) if values is None else np.asarray(values, dtype=np.float64)
