"""Red tables at the command line, in the schedule of own elements, and in the review that every start makes."""

import json
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner

import sda_platform.definitions  # noqa: F401  # declares what the tables promise
from sda_platform.cli.main import main
from sda_platform.fusion.tables import FUSED_TRACKS, TIME_TAG_BIASES, TRACKS
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform.observability.red_tables import red_tables, review_unverified
from sda_platform.orbit_determination.sensors import refused_assets
from sda_platform.orbit_determination.tables import PROVISIONAL_ELEMENTS, REFINED_ELEMENTS, REFINED_EPHEMERIDES
from sda_platform.orchestration.table_checks import review_declared
from sda_platform_tests.support.delta_tables import commit, lake_at


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_at(tmp_path / "lake", reads_unverified=False)


def land_bad(lake: Lake, name: str = "bad") -> None:
    rows = [{"segment_sha256": name, "segment_name": name, "record_number": 0, "received_time_ns": 10}]
    commit(lake, RAW_RECORDS, rows, segments=[SegmentRef("radar", name, name, 10, 2)])


def sda(home: Path, *arguments: str) -> str:
    done = CliRunner().invoke(main, ["--home", str(home), *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command_accepts_what_is_red_and_reports_it_red_03(lake: Lake, tmp_path: Path) -> None:
    land_bad(lake)
    review_declared(lake, RAW_RECORDS)
    shown = sda(tmp_path, "status")
    assert "raw_records sequence 1 since" in shown and "sda lake accept raw_records" in shown
    said = sda(tmp_path, "lake", "accept", "raw_records", "--reason", "the sensor lost it")
    assert "balance: radar/bad: 2 records landed, 1 rows stored" in said and "the sensor lost it" in said
    (shown,) = json.loads(sda(tmp_path, "status", "--json"))["red"]
    assert shown["sequence"] == 1 and "the sensor lost it" in shown["acknowledged"]
    assert "nothing of raw_records is red" in sda(tmp_path, "lake", "accept", "raw_records")
    land_bad(lake, "worse")
    review_declared(lake, RAW_RECORDS)
    (accepted,) = json.loads(sda(tmp_path, "lake", "accept", "all", "--json"))
    assert (accepted["table"], accepted["sequence"]) == ("raw_records", 2)


def test_an_unknown_table_is_refused_with_those_that_there_are(lake: Lake, tmp_path: Path) -> None:
    land_bad(lake)
    done = CliRunner().invoke(main, ["--home", str(tmp_path), "lake", "accept", "row_records"])
    assert done.exit_code == 1 and "no table is named 'row_records'" in done.output


def test_a_start_verifies_what_a_dead_run_left_without_a_verdict_red_03(lake: Lake) -> None:
    land_bad(lake)
    (line,) = review_unverified(lake)
    assert line.startswith("red: raw_records sequence 1 since") and "sda lake accept" in line
    assert [each.sequence for each in red_tables(lake)] == [1]


def test_the_schedule_leaves_out_what_a_red_table_stops_red_03(lake: Lake) -> None:
    """Rows that no segment or window accounts for are no matter here; a broken chain is red in any table."""
    commit(lake, TRACKS, previous_sha256="of another history")
    review_declared(lake, TRACKS)
    refused = refused_assets(lake)
    assert set(refused) == {dg.AssetKey(t.name) for t in (REFINED_ELEMENTS, REFINED_EPHEMERIDES)}
    assert "tracks sequence 1: chain" in refused[dg.AssetKey(REFINED_ELEMENTS.name)]
    commit(lake, FUSED_TRACKS, previous_sha256="of another history")
    review_declared(lake, FUSED_TRACKS)
    everything = {
        dg.AssetKey(t.name) for t in (REFINED_ELEMENTS, REFINED_EPHEMERIDES, PROVISIONAL_ELEMENTS, TIME_TAG_BIASES)
    }
    assert set(refused_assets(lake)) == everything
