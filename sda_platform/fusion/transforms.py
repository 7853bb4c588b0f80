"""Transforms of package fusion: Arrow in, Arrow out, no Spark."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.fusion.live_tracks import WINDOW_COLUMNS, live_tracks
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.lake.correction_log import corrected, current_rows, fact_schema
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.propagation import Propagator

WINDOW = "window_start_ns"
FIT_COLUMNS = ("fit_id", "sequence", "op", *WINDOW_COLUMNS)
"""The columns of `fused_tracks` that `changed_tracks` takes."""
Fuse = Callable[[pa.Table], pa.Table]
"""Fits the observations of one window; see `fuse.window_fuser`."""


def with_window(observations: pa.Table, window_ns: int) -> pa.Table:
    """``observations`` with WINDOW, the start of the window of each."""
    times_ns = observations["sensor_time_ns"].to_numpy()
    return observations.append_column(WINDOW, pa.array(times_ns - np.mod(times_ns, window_ns), pa.int64()))


def track_corrections(
    observations: pa.Table, entries: pa.Table, *, fuse: Fuse, starts_ns: Sequence[int], as_of_ns: int
) -> pa.Table:
    """Fit the windows that begin at ``starts_ns`` anew: the entries that change `fused_tracks` to these fits.

    ``observations`` have WINDOW, and may be of other windows too. ``entries`` are all of the windows' fits so far.
    """
    chosen = observations.filter(pc.is_in(observations[WINDOW], value_set=pa.array(starts_ns, pa.int64())))
    ordered = chosen.sort_by(WINDOW)
    starts = ordered[WINDOW].to_numpy()
    firsts = np.flatnonzero(np.append(True, starts[1:] != starts[:-1])[: len(starts)])
    sizes = np.diff(np.append(firsts, len(starts)))
    fits = [fuse(ordered.slice(first, size)) for first, size in zip(firsts.tolist(), sizes.tolist(), strict=True)]
    fresh = pa.concat_tables([fact_schema(FUSED_TRACKS).empty_table(), *fits])
    return corrected(FUSED_TRACKS, entries, fresh, as_of_ns=as_of_ns)


def changed_tracks(
    entries: pa.Table,
    changes: pa.Table,
    previous: pa.Table,
    *,
    propagator: Propagator,
    as_of_ns: int,
    dynamics: Dynamics,
) -> pa.Table:
    """Compute the rows of `tracks` that change; see `live_tracks`.

    ``entries`` of `fused_tracks` have FIT_COLUMNS and are all of the objects with ``changes`` within the memory.
    """
    return live_tracks(current_rows(entries, "fit_id"), changes, previous, propagator, as_of_ns, dynamics)
