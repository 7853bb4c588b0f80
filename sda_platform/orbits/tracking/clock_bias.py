"""How far each source's clock is off, from residuals against orbits that others determined better.

A reading with a clock that is ahead belongs to an earlier instant than it says: its residual runs along the object's
motion across the sensor, in all components at once. The offset that explains most of that is the estimate.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.sensing.measurements import clock_sigma_s, prepare
from sda_platform.orbits.sensing.observations import ObservationArrays, TextArray
from sda_platform.orbits.sensing.sensors import Sensor, sensor_registry

_STEP_NS = 1_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class ClockOffsets:
    """One row per source, sorted by its id."""

    source_id: TextArray
    readings: IntArray
    offset_s: FloatArray
    """How far the clock is ahead."""
    sigma_s: FloatArray
    """One sigma, by the readings' own noise and the reference's."""
    bound_s: FloatArray
    """The largest skew that the clock's quality allows, of any of the readings."""
    residual_rms: FloatArray
    """Root mean square of the residuals in units of their noise, before the clock is corrected."""


def clock_offsets(
    observations: ObservationArrays,
    states_at: Callable[[IntArray], tuple[FloatArray, FloatArray]],
    sensors: Mapping[str, Sensor] | None = None,
    *,
    reference_sigma_s: float = 0.0,
) -> ClockOffsets:
    """Estimate every source's offset by weighted least squares in one unknown.

    Args:
        observations: (m,) in any order.
        states_at: states (m, 3) km and (m, 3) km/s, TEME, of each observation's object at times (m,).
        sensors: registry by source id; the built-in one if not given.
        reference_sigma_s: how uncertain the states are along their motion, one sigma.

    Source: Montenbruck & Gill, Satellite Orbits (2000), section 8.1 (consider parameters), here for a time tag.
    """
    registry = sensor_registry() if sensors is None else sensors

    def residual(ahead_ns: int) -> tuple[FloatArray, FloatArray]:
        time_ns = observations.sensor_time_ns - ahead_ns
        measured = prepare(dataclasses.replace(observations, sensor_time_ns=time_ns), registry)
        line = dataclasses.replace(measured, time_sigma_s=np.zeros(len(observations))).linearise(*states_at(time_ns))
        weight = np.where(measured.present & measured.usable[:, None], 1 / measured.variance, 0.0)
        return np.nan_to_num(line.residual), np.nan_to_num(weight)

    now, weight = residual(0)
    slope = (residual(_STEP_NS)[0] - residual(-_STEP_NS)[0]) / (2 * _STEP_NS / 1e9)
    names, source = np.unique(observations.source_id, return_inverse=True)

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(source, values.sum(axis=1), minlength=len(names)).astype(np.float64)

    information = np.maximum(total(weight * slope**2), 1e-300)
    is_link = observations.source_kind == "isl"
    bound_s = np.sqrt(3.0) * clock_sigma_s(observations.clock_quality, observations.clock_age_s, is_link)
    largest = np.zeros(len(names))
    np.maximum.at(largest, source, bound_s)
    return ClockOffsets(
        source_id=names,
        readings=np.bincount(source, minlength=len(names)),
        offset_s=-total(weight * slope * now) / information,
        sigma_s=np.sqrt(1 / information + reference_sigma_s**2),
        bound_s=largest,
        residual_rms=np.sqrt(total(weight * now**2) / np.maximum(total((weight > 0).astype(float)), 1.0)),
    )
