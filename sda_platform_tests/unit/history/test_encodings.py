"""The profile of compacted files: an encoding for each column that its type allows and the engine reads."""

import random
from pathlib import Path

import pyarrow.parquet as pq

from sda_platform.history.parquet_profile import encoding_of, file_format
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.registry import TABLES
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.parquet_encodings import UNREADABLE, candidates, write_encoded


def test_every_column_has_an_encoding_that_its_type_allows_and_the_engine_reads__DL1_A9() -> None:
    for table in TABLES:
        for column in table.columns:
            chosen = encoding_of(table, column)
            assert chosen not in UNREADABLE
            assert chosen in (candidates(column) or ("DICTIONARY",))
    by_name = {column.name: encoding_of(OBSERVATIONS, column) for column in OBSERVATIONS.columns}
    assert by_name["sensor_time_ns"] == by_name["commit_sequence"] == "DELTA_BINARY_PACKED"
    assert (by_name["observation_id"], by_name["source_id"]) == ("DELTA_BYTE_ARRAY", "DICTIONARY")
    written = file_format(OBSERVATIONS, bytes_per_row=64.0)
    assert written.encodings == by_name
    assert (written.codec, written.codec_level, written.row_group_rows) == ("ZSTD", 3, 2**18)


def test_rows_are_the_same_whatever_their_encoding__DL1_A2(tmp_path: Path) -> None:
    lake, chance = lake_at(tmp_path / "lake"), random.Random(7)
    rows = [
        {
            "observation_id": f"{chance.getrandbits(128):032x}", "source_id": f"radar-{chance.randrange(9)}",
            "segment_sha256": f"{0:064d}", "segment_name": "radar-segment", "record_number": n,
            "sensor_time_ns": n * 10**8, "range_m": chance.uniform(4e5, 4e6),
        }
        for n in range(1_000)
    ]  # fmt: skip
    commit(lake, OBSERVATIONS, rows)
    stored = lake.log(OBSERVATIONS).rows()
    profile, default = tmp_path / "profile", tmp_path / "default"
    write_encoded(stored, str(profile), {c.name: encoding_of(OBSERVATIONS, c) for c in OBSERVATIONS.columns})
    write_encoded(stored, str(default), {})
    assert pq.read_table(profile).equals(stored)
    assert profile.stat().st_size < default.stat().st_size
