"""Find the observations that arrived after their window was closed, from the commits of `fused_tracks` alone."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.fusion.tables import FIRST_OPEN_WINDOW, FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit

_COLUMNS = (
    "observation_id",
    "segment_sha256",
    "segment_name",
    "record_number",
    "received_time_ns",
    "source_id",
    "sensor_time_ns",
)


def first_open_window_ns(store: Lake) -> int | None:
    """Return the begin of the first window that is open for observations that arrive now; None: there is none yet."""
    commit = store.log(FUSED_TRACKS).head().commit
    return None if commit is None else commit.manifest.watermarks.get(FIRST_OPEN_WINDOW)


def late_observations(store: Lake, commits: Iterable[Commit]) -> pa.Table:
    """Return the observations that these ``commits`` of `fused_tracks` counted as late and left out.

    What was reprocessed is never late: its window was fitted again.
    """
    found = [OBSERVATIONS.arrow_schema.empty_table().select(_COLUMNS)]
    for manifest in (commit.manifest for commit in commits):
        consumed = manifest.window(OBSERVATIONS.name)
        if consumed is None or not manifest.counts.get("late"):
            continue
        arrived = store.log(OBSERVATIONS).rows_of(
            (consumed.after_sequence, consumed.upto_sequence), [*_COLUMNS, "reprocess_count"]
        )
        first_open_ns = manifest.watermarks[FIRST_OPEN_WINDOW]
        late = pc.and_(pc.less(arrived["sensor_time_ns"], first_open_ns), pc.is_null(arrived["reprocess_count"]))
        found.append(arrived.filter(late).select(_COLUMNS))
    return pa.concat_tables(found)
