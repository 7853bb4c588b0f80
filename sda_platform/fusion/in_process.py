"""Fits of windows with few observations, made in this process: the engine only commits them.

The rules are those of `transforms.track_corrections`, on the same kernel, and the rows are equal.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.fusion.fuse import OBSERVATION_COLUMNS, TRACK_SCHEMA
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.correction_rows import corrected
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.time_spans import MAX_SPANS, stored_within

MOST_OBSERVATIONS = 20_000
"""With more observations in the touched windows, the engine fits them."""

Fuser = Callable[[pa.Table], pa.Table]


def observations_of(store: Lake, plan: Plan, starts_ns: Sequence[int], window_ns: int) -> pa.Table | None:
    """The observations of these windows, with ``window_start_ns``; None if windows or observations are many."""
    if len(starts_ns) > MAX_SPANS:
        return None
    starts = np.asarray(starts_ns, dtype=np.int64)
    near = stored_within("sensor_time_ns", pa.chunked_array([np.concatenate([starts, starts + window_ns - 1])]))
    rows = store.snapshot_rows(plan, OBSERVATIONS, [*OBSERVATION_COLUMNS], near)
    times_ns = rows.column("sensor_time_ns").to_numpy()
    start_ns = times_ns - np.mod(times_ns, window_ns)
    chosen = rows.append_column("window_start_ns", pa.array(start_ns)).filter(pa.array(np.isin(start_ns, starts)))
    return chosen if chosen.num_rows <= MOST_OBSERVATIONS else None


def track_entries(store: Lake, plan: Plan, observations: pa.Table, fuse: Fuser, starts_ns: Sequence[int]) -> pa.Table:
    """Compute track corrections of the windows that begin at ``starts_ns`` in this process, as on Spark."""
    of_window = ds.field("window_start_ns")
    parts = [observations.filter(of_window == start_ns) for start_ns in starts_ns]
    fresh = pa.concat_tables([TRACK_SCHEMA.empty_table(), *(fuse(part) for part in parts if part.num_rows)])
    known = store.snapshot_rows(plan, FUSED_TRACKS, where=of_window.isin(pa.array(starts_ns, pa.int64())))
    return corrected(FUSED_TRACKS, known, fresh, as_of_ns=plan.as_of_ns)
