"""What a wire-format decoder hands over: columns, one row per payload, limits not yet applied."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sda_platform.formats.errors import RecordError


@dataclass(slots=True)
class Decoded:
    """Columns of n payloads. Where `errors[row]` is set, that row's other values mean nothing.

    `values` holds (n,) float columns named as in OBSERVATION_SCHEMA; `checks` further columns that only
    limits look at; `identity` the bytes an observation's identity is hashed from where they are not the whole
    payload.
    """

    errors: list[RecordError | None]
    source_id: list[str]
    native_track_id: list[str]
    sensor_time_ns: NDArray[np.uint64]
    values: dict[str, NDArray[np.float64]]
    clock_quality: list[str]
    checks: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    received_time_ns: list[int | None] | None = None
    identity: list[bytes] | None = None
