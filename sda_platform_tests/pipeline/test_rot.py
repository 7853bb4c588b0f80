"""What Spark wrote and a disk changed: every data file has the checksums by which verification finds it."""

import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sda_platform.clock import MissionClock
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform.recovery.examination import Depth, examine
from sda_platform_tests.campaign.damage import flipped, zeroed
from sda_platform_tests.support.delta_tables import rows_of
from sda_platform_tests.support.segments import START_NS


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lake:
    """A lake with one commit of 5,000 records, written by Spark."""
    made = Lake(str(tmp_path_factory.mktemp("rot") / "lake"), MissionClock(START_NS, 0, 0.0), lambda: spark, "run")
    segment = SegmentRef("radar", "a.seg", "0" * 64, 1, 1)
    plan = made.plan_landing(RAW_RECORDS, made.head(RAW_RECORDS), [segment])
    rows = [{"record_number": n, "payload": random.Random(n).randbytes(24)} for n in range(5_000)]
    made.append(plan, rows_of(RAW_RECORDS, rows))
    return made


def data_file(lake: Lake) -> Path:
    return max(Path(lake.log(RAW_RECORDS).uri).glob("*.parquet"), key=lambda file: file.stat().st_size)


@pytest.mark.parametrize("hadoop_checksums", [True, False])
def test_no_flipped_bit_of_a_file_that_spark_wrote_is_returned_unseen_D5(lake: Lake, hadoop_checksums: bool) -> None:
    file, log, chance = data_file(lake), lake.log(RAW_RECORDS), random.Random(7)
    written, expected, sums = file.read_bytes(), log.rows(), file.with_name(f".{file.name}.crc")
    kept = sums.read_bytes()
    if not hadoop_checksums:
        sums.unlink()
    unseen, returned = [], []
    for bit in chance.sample(range(8 * len(written)), 200):
        changed = bytearray(written)
        changed[bit // 8] ^= 1 << (bit % 8)
        file.write_bytes(changed)
        is_seen = not examine(log, Depth.COLUMNS).is_sound
        try:
            is_harmless = log.rows().equals(expected)
        except (InvariantError, pa.ArrowException):
            is_harmless = True  # refused
        unseen += [] if is_seen or (is_harmless and not hadoop_checksums) else [bit]
        returned += [] if is_harmless else [bit]
    file.write_bytes(written)
    sums.write_bytes(kept)
    assert (unseen, returned) == ([], [])


@pytest.mark.parametrize("change", [zeroed, flipped])
def test_a_spoiled_page_is_named_at_every_start_D5(lake: Lake, change: object) -> None:
    file, log = data_file(lake), lake.log(RAW_RECORDS)
    written, sums = file.read_bytes(), file.with_name(f".{file.name}.crc")
    kept = sums.read_bytes()
    sums.unlink()
    file.write_bytes(change(written))  # type: ignore[operator]
    problems = examine(log, Depth.PRESENCE).problems
    file.write_bytes(written)
    sums.write_bytes(kept)
    assert len(problems) == 1 and file.name in problems[0], problems
    assert examine(log, Depth.COLUMNS).is_sound
