"""Observations of small windows, chosen in this process: the engine only commits them.

The rule is that of `transforms.new_observations`, and the rows are equal.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.lake.time_spans import stored_within

MOST_RECORDS = 200_000
"""From more raw records on, the engine chooses. The rows of so many take some 100 MB here."""
_COLUMNS = [column.name for column in OBSERVATIONS.columns if column.name != COMMIT_SEQUENCE]


def new_observations(store: Lake, plan: Plan) -> pa.Table:
    """Select the new observations of the plan's window in this process, as on Spark."""
    raw = store.new_rows(plan, RAW_RECORDS, [*_COLUMNS, "error_kind"])
    near = stored_within("sensor_time_ns", raw.column("sensor_time_ns"))
    known = store.earlier_rows(plan, ["observation_id"], near)
    return first_deliveries(raw, known.column("observation_id"))


def first_deliveries(raw: pa.Table, known: pa.ChunkedArray) -> pa.Table:
    """The valid observations of ``raw`` with an id that is not in ``known``, each once: the first by (segment, record).

    The result is in the order of the ids.
    """
    valid = raw.filter(pc.is_null(raw.column("error_kind"))).select(_COLUMNS)
    new = valid.filter(pc.invert(pc.is_in(valid.column("observation_id"), known.combine_chunks())))
    ordered = new.sort_by([(name, "ascending") for name in ("observation_id", "segment_sha256", "record_number")])
    ids = ordered.column("observation_id").to_numpy()
    return ordered.filter(np.append(True, ids[1:] != ids[:-1])[: len(ids)])
