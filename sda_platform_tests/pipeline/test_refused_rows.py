"""Rows of the engine that break the contract of their table are left out of the commit and become dead letters."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sda_platform.clock import MissionClock
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.dead_letters.rejected import refused_letters
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.tables import TRACKS
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.errors import BrokenContract
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform_tests.support.delta_tables import genesis_window, rows_of


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path), MissionClock(1, 0, 0.0), lambda: spark)
    lake.reads_unverified, lake.requires_lineage = True, False
    return lake


def planned(lake: Lake, table: Table) -> Plan:
    alone, head = replace(table, consumes=(), reads=()), lake.head(table)
    return lake.plan_landing(alone, head, [SegmentRef("radar", f"{head.sequence}.seg", "0" * 64, 1, 1)])


def test_entries_of_a_refused_correction_stay_out_of_a_frame_together(lake: Lake, spark: SparkSession) -> None:
    for number in (0, 1):
        rows = [
            {"event_id": event, "sequence": at, "op": op, "miss_distance_km": math.nan if event == "a" and at else 0.5}
            for event in "abc"
            for at, op in ([(0, "insert")] if not number else [(0, "retract"), (1, "insert")])
        ]
        frame = spark.createDataFrame(rows_of(CONJUNCTION_ASSESSMENTS, rows)).drop(COMMIT_SEQUENCE)
        lake.append(planned(lake, CONJUNCTION_ASSESSMENTS), frame)
    found = lake.log(CONJUNCTION_ASSESSMENTS).rows(["event_id", "sequence", "op"]).to_pylist()
    assert [(r["sequence"], r["op"]) for r in found if r["event_id"] == "a"] == [(0, "insert")]
    assert len(found) == 1 + 2 * 3
    letters = refused_letters(lake, [(CONJUNCTION_ASSESSMENTS, genesis_window(CONJUNCTION_ASSESSMENTS, 2))], 9)
    assert sorted("refused entry" in text for text in letters["error"].to_pylist()) == [False, True]


def test_arrow_rows_and_frames_lose_the_same_rows(lake: Lake, spark: SparkSession) -> None:
    rows = rows_of(TRACKS, [{"norad_id": n, "x_km": math.inf if n % 3 == 0 else 0.5} for n in range(1, 30)])
    content = rows.drop_columns([COMMIT_SEQUENCE])
    kept: list[list[int]] = []
    texts: list[list[str]] = []
    for frame in (content, spark.createDataFrame(content)):
        lake.append(planned(lake, TRACKS), frame)
        kept.append(sorted(lake.log(TRACKS).rows_of((len(kept), len(kept) + 1), ["norad_id"])["norad_id"].to_pylist()))
        window = replace(genesis_window(TRACKS, len(kept)), after_sequence=len(kept) - 1)
        texts.append([t.split(", ", 1)[1] for t in refused_letters(lake, [(TRACKS, window)], 9)["error"].to_pylist()])
    assert kept[0] == kept[1] == [n for n in range(1, 30) if n % 3]
    assert sorted(texts[0]) == sorted(texts[1])


def test_a_frame_of_a_table_that_may_leave_no_row_out_commits_nothing(lake: Lake, spark: SparkSession) -> None:
    rows = rows_of(ALERT_DELIVERIES, [{"sequence": 0}, {"sequence": -1}]).drop_columns([COMMIT_SEQUENCE])
    with pytest.raises(BrokenContract):
        lake.append(planned(lake, ALERT_DELIVERIES), spark.createDataFrame(rows))
    assert lake.head(ALERT_DELIVERIES).sequence == 0


def test_a_landed_record_of_a_frame_stays_with_an_error(lake: Lake, spark: SparkSession) -> None:
    rows = rows_of(RAW_RECORDS, [{"record_number": n, "range_m": float(n)} for n in range(3)])
    lake.append(planned(lake, RAW_RECORDS), spark.createDataFrame(rows.drop_columns([COMMIT_SEQUENCE])))
    found = lake.log(RAW_RECORDS).rows(["record_number", "error_kind", "range_m"]).sort_by("record_number").to_pylist()
    assert [(row["error_kind"], row["range_m"]) for row in found] == [
        ("broken_contract", None),
        (None, 1.0),
        (None, 2.0),
    ]
