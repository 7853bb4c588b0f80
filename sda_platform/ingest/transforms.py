"""Transforms of package ingest: Arrow in, Arrow out, no Spark."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.ingest.tables import OBSERVATIONS

RECORD_COLUMNS = (*OBSERVATIONS.content_schema.names, "error_kind")
"""The columns of `raw_records` that `new_observations` takes."""


def new_observations(raw: pa.Table, known: pa.Table) -> pa.Table:
    """Return the valid observations of ``raw``, with RECORD_COLUMNS, that are not in ``known``, each once, in order of
    ids.

    Of several deliveries of one observation the first by (segment, record) is kept, whatever order they arrive in.
    """
    valid = raw.filter(pc.is_null(raw["error_kind"])).select(OBSERVATIONS.content_schema.names)
    ids = known["observation_id"].combine_chunks()
    new = valid.filter(pc.invert(pc.is_in(valid["observation_id"], value_set=ids)))
    ordered = new.sort_by([(name, "ascending") for name in ("observation_id", "segment_sha256", "record_number")])
    names = ordered["observation_id"].to_numpy()
    return ordered.filter(np.append(True, names[1:] != names[:-1])[: len(names)])
