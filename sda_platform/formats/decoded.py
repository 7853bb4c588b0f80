"""What a wire-format decoder hands over: columns, one row per payload, limits not yet applied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sda_platform.formats.errors import RecordError


@dataclass(frozen=True, slots=True)
class Decoded:
    """Columns of n payloads. If `errors` has the row, the row's other values are undefined.

    `values` holds (n,) float columns named as in OBSERVATION_SCHEMA; `checks` further columns that only
    limits look at; `identity` the bytes an observation's identity is hashed from where they are not the whole
    payload. `received_time_ns` is int64, null if the payload has none. `angle_references` has text by name of
    ANGLE_REFERENCES, null where the payload does not state it.
    """

    errors: dict[int, RecordError]
    source_id: pa.Array
    native_track_id: pa.Array
    sensor_time_ns: NDArray[np.uint64]
    values: dict[str, NDArray[np.float64]]
    clock_quality: pa.Array
    checks: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    received_time_ns: pa.Array | None = None
    identity: Sequence[bytes] | None = None
    angle_references: Mapping[str, pa.Array] = field(default_factory=dict)


def prefixed(prefix: str, numbers: NDArray[np.uint32]) -> pa.Array:
    """Each number as text behind ``prefix``."""
    digits = pc.cast(pa.array(np.ascontiguousarray(numbers)), pa.string())
    return pc.binary_join_element_wise(pa.scalar(prefix), digits, pa.scalar(""))
