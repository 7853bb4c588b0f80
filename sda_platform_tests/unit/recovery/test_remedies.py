"""Damage that a person must decide about: each remedy that a message names is executed as it stands there."""

import re
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.errors import InvariantError, TableLost
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.table import Table
from sda_platform.landing.expiry import expire_segments
from sda_platform.landing.table_zones import TableZones
from sda_platform.landing.zone import LandingZone
from sda_platform.recovery.examination import Depth
from sda_platform.recovery.rebuilding import SET_ASIDE_TABLES, rebuild
from sda_platform.recovery.repair import recover
from sda_platform.recovery.review import review
from sda_platform.registry import TABLES
from sda_platform_tests.support.crashes import crashes
from sda_platform_tests.support.delta_tables import commit, commit_file, lake_at
from sda_platform_tests.support.segments import START_NS, land, radar_segment

COMMAND = re.compile(r"`sda ([^`]+)`")
YEAR_S = 366 * 86_400


@pytest.fixture
def home(tmp_path: Path) -> Path:
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    return tmp_path


@pytest.fixture
def lake(home: Path) -> Lake:
    return lake_at(home / "lake")


@pytest.fixture
def zone(home: Path) -> LandingZone:
    return LandingZone(str(home / "landing"), "radar")


def consume(lake: Lake, zone: LandingZone, name: str) -> SegmentRef:
    """Land a segment of one record, commit it, and clear the zone of it."""
    land(zone, name, _data(name))
    segment = zone.read(next(s for s in zone.pending() if s.name == name)).ref(1)
    row = {"feed": "radar", "segment_sha256": segment.sha256, "segment_name": name, "record_number": 0}
    commit(lake, RAW_RECORDS, [row], segments=[segment])
    zone.acknowledge([segment])
    return segment


def _data(name: str) -> bytes:
    return radar_segment(1, first_track=sum(name.encode()))


def observe(lake: Lake) -> None:
    commit(lake, OBSERVATIONS, windows=lake.plan(OBSERVATIONS).windows)


def sda(home: Path, *arguments: str) -> tuple[int, str]:
    answer = CliRunner().invoke(main, ["--home", str(home), *arguments])
    return answer.exit_code, " ".join(answer.output.split())


def remedied(home: Path, told: str) -> str:
    """What the command answers that ``told`` names; it must succeed, and the lake must be sound afterwards."""
    (command,) = {each for each in COMMAND.findall(told) if each.startswith("lake verify")}
    code, answer = sda(home, *command.split())
    assert code == 0, answer
    code, sound = sda(home, "lake", "verify", "--deep")
    assert code == 0, sound
    return answer


def lose_newest_commit(lake: Lake, table: Table) -> None:
    """As in a restore of this one table from a backup that is one commit older."""
    file = commit_file(lake, table, lake.log(table).version())
    for path in file.parent.glob(f"*{file.stem}*"):
        path.unlink()


@pytest.fixture
def expired(lake: Lake, zone: LandingZone) -> Path:
    """Three segments were consumed, two of them expired, and the table is lost; where it is now."""
    segments = [consume(lake, zone, name) for name in "abc"]
    removed = expire_segments([zone], lake.log(RAW_RECORDS), before_s=time.time() + YEAR_S)
    assert (removed.segments, len(segments)) == (2, 3)
    aside = Path(lake.uri).parent / "moved away"
    shutil.move(lake.log(RAW_RECORDS).uri, aside)
    return aside


def test_a_lost_table_with_expired_segments_is_damaged_beyond_the_archive_P1_2(
    home: Path, lake: Lake, zone: LandingZone, expired: Path
) -> None:
    day = time.strftime("%Y-%m-%d", time.gmtime())
    for arguments in (
        (
            "lake",
            "verify",
        ),
        ("lake", "verify", "--deep"),
        ("lake", "verify", "--deep", "--repair"),
    ):
        code, told = sda(home, *arguments)
        assert code == 1
        assert f"raw_records is missing, and 2 consumed segments, from {day} to {day}, are beyond the archive" in told
    assert zone.pending_names() == [], "nothing was put back without the person's word"
    with pytest.raises(TableLost, match="raw_records is missing"):
        TableZones([zone], 9, 10**6).take(lake.log(RAW_RECORDS), lake.head(RAW_RECORDS))
    answer = remedied(home, told)
    assert "put 1 segments back" in answer
    assert "accepted the loss of 2 segments; they may be delivered again" in answer
    assert "c" in zone.pending_names()
    for name in ("a-later", "b-later"):
        land(zone, name, _data(name[0]))
    taken = TableZones([zone], 9, 10**6).take(lake.log(RAW_RECORDS), lake.head(RAW_RECORDS))
    assert {s.sha256 for s in taken if s.defect is None} >= {zone.read(s).sha256 for s in zone.pending()}
    assert expired.exists()


def test_no_run_begins_a_table_of_which_only_marks_are_left_P1_2(lake: Lake, zone: LandingZone) -> None:
    for name in "ab":
        consume(lake, zone, name)
    expire_segments([zone], lake.log(RAW_RECORDS), before_s=time.time() + YEAR_S)
    zone.consumed_segments.place(SegmentRef("radar", "b", "", 0, 0))
    for file in zone.consumed_segments.places[0].iterdir():
        if file.stat().st_size:
            file.unlink()
    shutil.rmtree(lake.log(RAW_RECORDS).uri)
    with pytest.raises(TableLost, match=r"1 consumed segments, from .* are beyond the archive"):
        TableZones([zone], 9, 10**6).take(lake.log(RAW_RECORDS), lake.head(RAW_RECORDS))


def test_segments_without_records_are_not_taken_for_lost_ones_P1_2(home: Path, lake: Lake, zone: LandingZone) -> None:
    land(zone, "empty", radar_segment(0))
    segment = zone.read(next(iter(zone.pending()))).ref(0)
    commit(lake, RAW_RECORDS, segments=[segment])
    zone.acknowledge([segment])
    consume(lake, zone, "a")
    consume(lake, zone, "b")
    assert expire_segments([zone], lake.log(RAW_RECORDS), before_s=time.time() + YEAR_S).segments == 1
    shutil.rmtree(lake.log(RAW_RECORDS).uri)
    assert "and 1 consumed segments" in sda(home, "lake", "verify")[1]


def test_a_table_younger_than_a_restored_backup_gets_its_segments_back_at_a_start_A2(
    home: Path, lake: Lake, zone: LandingZone
) -> None:
    metrics = next(table for table in TABLES if table.name == "pipeline_metrics")
    own = LandingZone(str(home / "landing"), metrics.zones[0])
    consume(lake, zone, "a")
    land(own, "m", b"{}")
    segment = own.read(next(iter(own.pending()))).ref(1)
    commit(lake, metrics, [{"segment_sha256": segment.sha256}], segments=[segment])
    own.acknowledge([segment])
    shutil.rmtree(lake.log(metrics).uri)
    code, told = sda(home, "lake", "verify", "--repair")
    assert (code, "put 1 segments back" in told) == (0, True), told
    assert own.pending_names() == ["m"]
    assert sda(home, "lake", "verify", "--deep")[0] == 0


def test_an_empty_lake_directory_is_not_filled_from_the_archive_A2(home: Path, lake: Lake, zone: LandingZone) -> None:
    consume(lake, zone, "a")
    shutil.rmtree(lake.uri)
    code, told = sda(home, "lake", "verify", "--repair")
    assert (code, "raw_records is missing, but its zones have consumed segments" in told) == (1, True)
    assert zone.pending_names() == []


@pytest.mark.parametrize("lost", [1, 2])
def test_tables_that_do_not_fit_together_are_named_and_the_consumer_is_rebuilt_alone_A3(
    home: Path, lake: Lake, zone: LandingZone, lost: int
) -> None:
    for name in "abc":
        consume(lake, zone, name)
    observe(lake)
    for _ in range(lost):
        lose_newest_commit(lake, RAW_RECORDS)
    with pytest.raises(InvariantError, match="must be rebuilt"):
        lake_at(home / "lake").plan(OBSERVATIONS)
    code, told = sda(home, "lake", "verify", "--repair")
    assert code == 1
    assert "observations does not fit raw_records: raw_records: commit 3 (version 2) is not the one" in told
    assert "Restore raw_records and observations together, from one backup" in told
    remedied(home, told)
    window = lake_at(home / "lake").plan(OBSERVATIONS).window(RAW_RECORDS)
    assert (window.after_sequence, window.upto_sequence) == (0, 3 - lost)
    assert (home / "lake" / SET_ASIDE_TABLES / "observations.0").exists()


def test_a_lost_table_that_was_consumed_is_rebuilt_with_what_was_made_from_it_A2(
    home: Path, lake: Lake, zone: LandingZone
) -> None:
    for name in "ab":
        consume(lake, zone, name)
    observe(lake)
    shutil.rmtree(lake.log(RAW_RECORDS).uri)
    code, told = sda(home, "lake", "verify", "--repair")
    assert (code, "raw_records is missing, but observations consumed it: it was lost" in told) == (1, True)
    assert "move all tables away" not in told
    answer = remedied(home, told)
    assert "set observations aside" in answer and "put 2 segments back" in answer
    assert sorted(zone.pending_names()) == ["a", "b"]


LEAVES = [table for table in TABLES if not any(table in other.inputs for other in TABLES if other is not table)]


@pytest.mark.parametrize("table", LEAVES, ids=lambda table: table.name)
def test_a_lost_table_that_nobody_consumes_is_not_taken_for_a_new_one(home: Path, lake: Lake, table: Table) -> None:
    """Only the verdict on it is left, such as that on the ledger of deliveries."""
    source = table.consumes[0]
    for each in (source, table):
        commit(lake, each)
        review(lake, each, ())
    assert sda(home, "lake", "verify")[0] == 0
    shutil.rmtree(lake.log(table).uri)
    code, told = sda(home, "lake", "verify", "--repair")
    assert (code, f"{table.name} is missing, but 1 commits of it were verified: it was lost" in told) == (1, True)
    with pytest.raises(TableLost, match="were verified: it was lost"):
        lake_at(home / "lake").plan(table)
    remedied(home, told)


def test_a_table_that_never_was_is_new(home: Path, lake: Lake) -> None:
    commit(lake, OBSERVATIONS)
    assert sda(home, "lake", "verify", "--deep")[0] == 0


def test_a_rebuild_that_is_killed_anywhere_is_carried_on_A3(tmp_path: Path) -> None:
    tables = (RAW_RECORDS, OBSERVATIONS)
    for n, attempt in enumerate(crashes()):
        lake, zone = lake_at(tmp_path / f"{n}" / "lake"), LandingZone(str(tmp_path / f"{n}" / "landing"), "radar")
        for name in "ab":
            consume(lake, zone, name)
        observe(lake)
        sources = {RAW_RECORDS.name: [zone]}
        with attempt:
            rebuild(lake, tables, RAW_RECORDS, sources)
        rebuild(lake, tables, RAW_RECORDS, sources)
        found = recover(lake, tables, sources, depth=Depth.COLUMNS, repair=False)
        assert [finding.outcome for finding in found] == ["sound", "sound"]
        assert sorted(zone.pending_names()) == ["a", "b"]
    assert n > 4


def test_a_rebuild_that_would_lose_rows_is_refused_before_anything_moves_P1_2(
    home: Path, lake: Lake, zone: LandingZone
) -> None:
    for name in "abc":
        consume(lake, zone, name)
    expire_segments([zone], lake.log(RAW_RECORDS), before_s=time.time() + YEAR_S)
    code, told = sda(home, "lake", "verify", "--repair", "--rebuild", "raw_records")
    assert code == 1
    assert "raw_records cannot be rebuilt as it was: 2 consumed segments" in told
    assert sda(home, "lake", "verify", "--deep")[0] == 0
    code, answer = sda(home, "lake", "verify", "--repair", "--rebuild", "raw_records", "--accept-loss", "raw_records")
    assert (code, "accepted the loss of 2 segments" in answer) == (0, True)
    assert zone.pending_names() == ["c"]


def test_a_hole_in_the_middle_of_a_log_is_found_A8(home: Path, lake: Lake, zone: LandingZone) -> None:
    for name in "abcdef":
        consume(lake, zone, name)
    DeltaTable(lake.log(RAW_RECORDS).uri).create_checkpoint()
    consume(lake, zone, "g")
    commit_file(lake, RAW_RECORDS, 2).unlink()
    for arguments in (
        (
            "lake",
            "verify",
        ),
        ("lake", "verify", "--deep"),
        ("lake", "verify", "--repair"),
    ):
        code, told = sda(home, *arguments)
        assert (code, "version 2 of the log is missing, and older ones are there" in told) == (1, True), told
    remedied(home, told)
    assert lake_at(home / "lake").log(RAW_RECORDS).rows(["segment_name"]).num_rows == 7


def test_a_log_whose_beginning_was_cleaned_up_has_no_hole_A8(home: Path, lake: Lake, zone: LandingZone) -> None:
    for name in "abcd":
        consume(lake, zone, name)
    DeltaTable(lake.log(RAW_RECORDS).uri).create_checkpoint()
    for version in (0, 1):
        commit_file(lake, RAW_RECORDS, version).unlink()
    assert sda(home, "lake", "verify")[0] == 0


@pytest.mark.parametrize("arguments", [("--rebuild", "raw_records"), ("--accept-loss", "raw_records")])
def test_what_changes_the_lake_asks_for_the_repair(home: Path, lake: Lake, arguments: tuple[str, ...]) -> None:
    lake.log(RAW_RECORDS)
    assert sda(home, "lake", "verify", *arguments)[0] == 2


def test_an_unknown_table_is_refused(home: Path, lake: Lake, zone: LandingZone) -> None:
    consume(lake, zone, "a")
    assert "there is no table 'nothing'" in sda(home, "lake", "verify", "--repair", "--rebuild", "nothing")[1]
