"""Data files that Arrow writes have the rows, the bounds and the checksums that the log and its readers need."""

import errno
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from sda_platform.clock import MissionClock
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake import data_files
from sda_platform.lake.errors import EngineUnavailable
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform_tests.support.delta_tables import rows_of

TIMES = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20)


@given(times=TIMES, files=st.integers(1, 4))
def test_the_files_have_all_rows_in_order_and_bounds_that_hold_for_each_file(
    times: list[int | None], files: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("table")
    rows = rows_of(OBSERVATIONS, [{"observation_id": str(n), "sensor_time_ns": t} for n, t in enumerate(times)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.cpu_count", lambda: files)
        patch.setattr(data_files, "_BYTES_PER_FILE", 1)
        written = json.loads(data_files.write(OBSERVATIONS, str(directory), rows, "one"))
    assert len({each["path"] for each in written}) == len(written) <= files
    parts = [pq.read_table(directory / each["path"], page_checksum_verification=True) for each in written]
    assert pa.concat_tables(parts).cast(rows.schema).equals(rows)
    for each, part in zip(written, parts, strict=True):
        assert each["size"] == (directory / each["path"]).stat().st_size
        found, stats = [t for t in part["sensor_time_ns"].to_pylist() if t is not None], json.loads(each["stats"])
        assert (stats["numRecords"], stats["nullCount"]["sensor_time_ns"]) == (len(part), len(part) - len(found))
        bounds = [stats[key].get("sensor_time_ns") for key in ("minValues", "maxValues")]
        assert bounds == ([min(found), max(found)] if found else [None, None])
        assert stats["minValues"].keys() <= set(OBSERVATIONS.bounded_columns)


def test_a_full_disk_is_reported_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(OBSERVATIONS, [{"observation_id": str(n), "sensor_time_ns": n} for n in range(4)])
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(data_files, "_BYTES_PER_FILE", 1)
    complete = pq.write_table

    def write_table(part: pa.Table, file: Any, **options: Any) -> None:
        complete(part, file, **options)
        if part["sensor_time_ns"][0].as_py():  # the second file
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq, "write_table", write_table)
    with pytest.raises(OSError, match="No space left"):
        data_files.write(OBSERVATIONS, str(tmp_path), rows, "one")
    assert list(tmp_path.iterdir()) == []


def test_attempts_without_an_engine_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sda_platform.lake.lake._STAGED_FROM_BYTES", 0)

    def no_session() -> SparkSession:
        raise EngineUnavailable("no engine answers")

    lake = Lake(str(tmp_path), MissionClock(1, 0, 0.0), no_session)
    lake.requires_lineage = False
    plan = lake.plan_landing(OBSERVATIONS, lake.head(OBSERVATIONS), [SegmentRef("radar", "a", "0" * 64, 1, 1)])
    with pytest.raises(EngineUnavailable):
        lake.append(plan, rows_of(OBSERVATIONS, [{"observation_id": "a"}]))
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_changed_byte_of_a_page_is_noticed(tmp_path: Path) -> None:
    rows = rows_of(OBSERVATIONS, [{"observation_id": "a", "sensor_time_ns": 5}])
    (file,) = json.loads(data_files.write(OBSERVATIONS, str(tmp_path), rows, "one"))
    path = tmp_path / file["path"]
    column = pq.ParquetFile(path).metadata.row_group(0).column(rows.column_names.index("observation_id"))
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError):
        pq.read_table(path, page_checksum_verification=True)
