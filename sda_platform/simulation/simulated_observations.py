"""Simulated observations of one span: payloads and their truth."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class SimulatedObservations:
    """n undamaged observations of one feed, in order of true time; `payloads` have no reception stamp yet."""

    feed: str
    payloads: list[bytes]
    observation_id: list[str]
    source_id: npt.NDArray[np.str_]
    norad_id: IntArray
    true_time_ns: IntArray
    sensor_time_ns: IntArray
    received_time_ns: IntArray
    r_teme_km: FloatArray
    v_teme_km_s: FloatArray

    def __len__(self) -> int:
        return len(self.payloads)

    def received_at(self, received_time_ns: IntArray) -> Self:
        """Return the same observations with other reception times (n,)."""
        return type(self)(**{**self.__dict__, "received_time_ns": received_time_ns})
