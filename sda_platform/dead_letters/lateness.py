"""Find the bytes of observations that arrived after their window was closed."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.dead_letters.rejected import LETTER_COLUMNS
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.selections import Near


def raw_records_of(store: Lake, observations: pa.Table) -> pa.Table:
    """Return the raw records of the segments that these observations came in."""
    near = Near("received_time_ns", observations["received_time_ns"]).expression()
    near &= ds.field("segment_sha256").isin(pc.unique(observations["segment_sha256"]).to_pylist())
    columns = ["segment_sha256", "record_number", *LETTER_COLUMNS]
    return store.log(RAW_RECORDS).rows(columns, near)
