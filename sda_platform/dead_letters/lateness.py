"""Find the observations that arrived after their window was closed, from the commits of `fused_tracks` alone."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.dead_letters.rejected import LETTER_COLUMNS
from sda_platform.fusion.tables import FIRST_OPEN_WINDOW, FUSED_TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import TableWindow
from sda_platform.lake.time_spans import stored_within

_LATE_COLUMNS = ("segment_sha256", "segment_name", "record_number", "received_time_ns", "source_id", "sensor_time_ns")


def late_observations(store: Lake, window: TableWindow) -> pa.Table:
    """The observations that the commits of ``window`` on `fused_tracks` counted as late and left out.

    What was reprocessed is never late: its window was fitted again.
    """
    found = [OBSERVATIONS.arrow_schema.empty_table().select(_LATE_COLUMNS)]
    log = store.log(FUSED_TRACKS)
    commits = [] if window.is_empty else log.commits(None, after=window.after_sequence)
    for manifest in (commit.manifest for commit in commits if commit.sequence <= window.upto_sequence):
        consumed = manifest.window(OBSERVATIONS.name)
        if consumed is None or not manifest.counts["late"]:
            continue
        arrived = store.log(OBSERVATIONS).rows_of(
            (consumed.after_sequence, consumed.upto_sequence), [*_LATE_COLUMNS, "reprocess_count"]
        )
        first_open_ns = manifest.watermarks[FIRST_OPEN_WINDOW]
        late = pc.and_(pc.less(arrived["sensor_time_ns"], first_open_ns), pc.is_null(arrived["reprocess_count"]))
        found.append(arrived.filter(late).select(_LATE_COLUMNS))
    return pa.concat_tables(found)


def raw_records_of(store: Lake, observations: pa.Table) -> pa.Table:
    """The raw records of the segments that these observations came in."""
    near = stored_within("received_time_ns", observations["received_time_ns"])
    near &= ds.field("segment_sha256").isin(pc.unique(observations["segment_sha256"]).to_pylist())
    columns = ["segment_sha256", "record_number", *LETTER_COLUMNS]
    return store.log(RAW_RECORDS).rows(columns, near)
