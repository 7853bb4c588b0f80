"""The transform of ingest: an observation is kept once, however often and in whatever order it came."""

import random

import pyarrow as pa

from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.ingest.transforms import RECORD_COLUMNS, new_observations
from sda_platform_tests.support.delta_tables import rows_of

Record = tuple[str, str, int, str | None]


def raw(*records: Record) -> pa.Table:
    """Raw records (observation, segment, record, error)."""
    facts = (
        {"observation_id": o, "segment_sha256": s, "record_number": n, "error_kind": e, "error": e, "sensor_time_ns": n}
        for o, s, n, e in records
    )
    return rows_of(RAW_RECORDS, facts).select(RECORD_COLUMNS)


def test_an_observation_is_kept_once_however_often_in_whatever_order_it_came() -> None:
    records: list[Record] = [
        ("a", "s2", 0, None), ("a", "s1", 7, None), ("b", "s1", 1, None), ("a", "s1", 3, None), ("c", "s1", 2, "bad"),
    ]  # fmt: skip
    known = pa.table({"observation_id": ["b"]})
    for seed in range(10):
        random.Random(seed).shuffle(records)
        kept = new_observations(raw(*records), known)
        assert kept.column_names == OBSERVATIONS.content_schema.names
        facts = kept.select(["observation_id", "segment_sha256", "record_number"]).to_pylist()
        assert [tuple(each.values()) for each in facts] == [("a", "s1", 3)]
