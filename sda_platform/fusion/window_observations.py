"""The observations that window fits rest on."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.selections import Near
from sda_platform.landing.senders import with_senders


def observations_of(
    lake: Lake, fits: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Return the observations of ``fits``, rows of `fused_tracks`: ``columns`` or all, with who sent them.

    Only files that cover the windows are read.
    """
    wanted = sorted(set(chain.from_iterable(fit["observation_ids"] for fit in fits)))
    if not wanted:
        return []
    near = Near("sensor_time_ns", pa.chunked_array([list(_edges_ns(fits))], pa.int64())).expression()
    near &= ds.field("observation_id").isin(wanted)
    return with_senders(lake, RAW_RECORDS, lake.log(OBSERVATIONS).rows(columns, near).to_pylist())


def _edges_ns(fits: Iterable[Mapping[str, Any]]) -> Iterable[int]:
    """Yield the beginning and the end of each window: the epoch is its middle."""
    for fit in fits:
        yield from (fit["window_start_ns"], 2 * fit["epoch_time_ns"] - fit["window_start_ns"])
