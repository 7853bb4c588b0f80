"""What a power loss, or worse, leaves of a lake: found at the next start, repaired where nothing is lost by it."""

import os
import random
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake import durable
from sda_platform.lake.delta_log import hadoop_checksum, log_directory
from sda_platform.lake.errors import InvariantError, TableLost
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.table import Table
from sda_platform.landing.segments import RETURNED, UNDECODABLE
from sda_platform.landing.table_zones import TableZones
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.table_checks import log_is_sound
from sda_platform.recovery import repair_record
from sda_platform.recovery.examination import Damage, Depth, damaged_files, examine
from sda_platform.recovery.fitting import unfitting
from sda_platform.recovery.repair import RepairFinding, recover
from sda_platform.recovery.setting_aside import SET_ASIDE, files_from, version_of
from sda_platform_tests.support.crashes import crashes
from sda_platform_tests.support.delta_tables import (
    checksum_pages,
    commit,
    commit_file,
    damage_checkpoint,
    lake_at,
    newest_data_file,
)
from sda_platform_tests.support.segments import land, radar_segment

# Arrow's words for a page that differs from its checksum.
MISMATCH = "cannot be read (could not verify page integrity, CRC checksum verification failed for page_ordinal 0)"
TABLES = (RAW_RECORDS, OBSERVATIONS)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_at(tmp_path / "lake")


@pytest.fixture
def zone(tmp_path: Path) -> LandingZone:
    return LandingZone(str(tmp_path / "landing"), "radar")


def consume(lake: Lake, zone: LandingZone, name: str, *, acknowledged: bool = True) -> SegmentRef:
    """Land a segment of one record and commit it."""
    data = radar_segment(1, first_track=hash(name) % 1000)
    land(zone, name, data)
    segment = zone.read(next(s for s in zone.pending() if s.name == name)).ref(1)
    commit(
        lake, RAW_RECORDS, [{"segment_sha256": segment.sha256, "segment_name": name, "record_number": 0}],
        segments=[segment],
    )  # fmt: skip
    if acknowledged:
        zone.acknowledge([segment])
    return segment


def observe(lake: Lake) -> None:
    """Have the observations consume what raw records hold."""
    commit(lake, OBSERVATIONS, windows=lake.plan(OBSERVATIONS).windows)


def started(
    lake: Lake, *zones: LandingZone, repair: bool = True, depth: Depth = Depth.PRESENCE
) -> dict[str, RepairFinding]:
    found = recover(lake, TABLES, {RAW_RECORDS.name: zones}, depth=depth, repair=repair)
    return {finding.examination.table: finding for finding in found}


def newest(lake: Lake, table: Table = RAW_RECORDS) -> Path:
    return commit_file(lake, table, max(int(f.stem) for f in Path(lake.log(table).uri, "_delta_log").glob("*.json")))


def empty(lake: Lake) -> None:
    newest(lake).write_text("")


def halve(lake: Lake) -> None:
    text = newest(lake).read_text()
    newest(lake).write_text(text[: len(text) // 2])


def lose_but_for_the_sums(lake: Lake) -> None:
    newest(lake).with_suffix(".crc").write_text("{}")
    newest(lake).unlink()


def lose_but_for_hadoops_checksum(lake: Lake) -> None:
    newest(lake).with_name(f".{newest(lake).name}.crc").write_bytes(b"crc")
    newest(lake).unlink()


def zero_the_data(lake: Lake) -> None:
    file = newest_data_file(lake, RAW_RECORDS)
    file.write_bytes(bytes(file.stat().st_size))


def truncate_the_data(lake: Lake) -> None:
    newest_data_file(lake, RAW_RECORDS).write_bytes(b"PAR1")


def lose_the_data(lake: Lake) -> None:
    newest_data_file(lake, RAW_RECORDS).unlink()


POWER_LOSSES = [
    empty, halve, lose_but_for_the_sums, lose_but_for_hadoops_checksum, zero_the_data, truncate_the_data, lose_the_data,
]  # fmt: skip
power_loss = pytest.mark.parametrize("strike", POWER_LOSSES, ids=lambda strike: strike.__name__)


def test_a_sound_lake_is_found_sound_and_left_alone(lake: Lake, zone: LandingZone) -> None:
    assert {name: f.outcome for name, f in started(lake, zone).items()} == {
        "raw_records": "sound",
        "observations": "sound",
    }
    consume(lake, zone, "a")
    consume(lake, zone, "b")
    observe(lake)
    DeltaTable(lake.log(RAW_RECORDS).uri).create_checkpoint()
    before = sorted(p.name for p in Path(lake.uri).rglob("*"))
    found = started(lake, zone, depth=Depth.COLUMNS)["raw_records"]
    assert (found.outcome, found.problems, found.examination.sequence) == ("sound", [], 2)
    assert found.examination.files_seen == 2
    assert sorted(p.name for p in Path(lake.uri).rglob("*")) == before


@power_loss
def test_a_newest_commit_that_was_not_reported_is_made_again_f_power(
    lake: Lake, zone: LandingZone, strike: Callable[[Lake], None]
) -> None:
    consume(lake, zone, "a")
    observe(lake)
    consume(lake, zone, "b", acknowledged=False)
    strike(lake)
    assert started(lake, zone, repair=False)["raw_records"].outcome == "damaged"
    found = started(lake, zone)["raw_records"]
    assert (found.outcome, found.refused) == ("repaired", None)
    assert (lake.head(RAW_RECORDS).sequence, zone.pending_names()) == (1, ["b"])
    assert list(Path(lake.log(RAW_RECORDS).uri, "_delta_log", SET_ASIDE).iterdir())
    assert started(lake, zone)["raw_records"].outcome == "sound"
    commit(lake, RAW_RECORDS, [{"segment_sha256": "b"}])
    assert lake.log(RAW_RECORDS).rows(["segment_sha256"]).num_rows == 2


@power_loss
def test_segments_of_a_lost_commit_that_were_archived_wait_again_f_power(
    lake: Lake, zone: LandingZone, strike: Callable[[Lake], None]
) -> None:
    """This cannot come from a power loss, since they are archived last; a disk can do it."""
    consume(lake, zone, "a")
    lost = consume(lake, zone, "b")
    strike(lake)
    assert started(lake, zone)["raw_records"].outcome == "repaired"
    (waiting,) = zone.pending()
    assert (waiting.name, zone.read(waiting).sha256) == ("b", lost.sha256)
    assert started(lake, zone)["raw_records"].outcome == "sound"


@power_loss
def test_a_first_commit_that_was_lost_is_made_again(
    lake: Lake, zone: LandingZone, strike: Callable[[Lake], None]
) -> None:
    consume(lake, zone, "a", acknowledged=False)
    strike(lake)
    assert started(lake, zone)["raw_records"].outcome == "repaired"
    assert (lake.head(RAW_RECORDS).sequence, zone.pending_names()) == (0, ["a"])


@power_loss
def test_a_lost_commit_that_was_consumed_is_refused_by_name_spec_98(
    lake: Lake, zone: LandingZone, strike: Callable[[Lake], None]
) -> None:
    consume(lake, zone, "a")
    consume(lake, zone, "b")
    observe(lake)
    strike(lake)
    before = sorted(p.name for p in Path(lake.uri).rglob("*"))
    found = started(lake, zone)["raw_records"]
    assert found.outcome == "damaged"
    assert found.refused is not None
    assert "raw_records lost data that a start cannot make again" in found.refused
    assert "the rows were consumed by observations" in found.refused
    assert (sorted(p.name for p in Path(lake.uri).rglob("*")), zone.pending_names()) == (before, [])


@power_loss
def test_where_the_consuming_commit_is_lost_as_well_both_are_made_again(
    lake: Lake, zone: LandingZone, strike: Callable[[Lake], None]
) -> None:
    consume(lake, zone, "a")
    observe(lake)
    consume(lake, zone, "b", acknowledged=False)
    observe(lake)
    newest(lake, OBSERVATIONS).write_text("")
    strike(lake)
    assert {f.outcome for f in started(lake, zone).values()} == {"repaired"}
    assert (lake.head(RAW_RECORDS).sequence, lake.head(OBSERVATIONS).sequence) == (1, 1)


@power_loss
def test_a_recovery_that_is_killed_anywhere_is_carried_on_cp_r1_r3(
    lake: Lake, zone: LandingZone, strike: Callable[[Lake], None]
) -> None:
    consume(lake, zone, "a")
    lost = consume(lake, zone, "b")
    strike(lake)
    for step in crashes():
        with step:
            started(lake, zone)
    assert started(lake, zone)["raw_records"].outcome == "sound"
    (waiting,) = zone.pending()
    assert (waiting.name, zone.read(waiting).sha256, lake.head(RAW_RECORDS).sequence) == ("b", lost.sha256, 1)


@pytest.mark.parametrize("is_undone", [False, True])
def test_metadata_that_a_power_loss_parted_from_archived_data_follows_it__D15(
    lake: Lake, zone: LandingZone, is_undone: bool
) -> None:
    segment = consume(lake, zone, "a")
    data, archived = zone.consumed_segments.place(segment)
    waiting = zone.pending_path("a.meta.json")
    archived.rename(waiting)
    zone.consumed_segments.name_mark("a").unlink()
    if is_undone:
        empty(lake)
    started(lake, zone)
    if is_undone:
        assert zone.pending_names() == ["a"], "data and metadata wait again, under the segment's name"
        assert not data.exists()
    else:
        assert archived.exists() and not waiting.exists() and zone.consumed_segments.name_mark("a").exists()
        assert zone.load_consumed(segment).meta is not None


def test_metadata_that_came_before_its_data_stays(lake: Lake, zone: LandingZone) -> None:
    """A copy under another name of what was consumed: it is a second delivery once its data comes."""
    segment = consume(lake, zone, "a")
    early = zone.pending_path("b.meta.json")
    early.write_bytes(zone.consumed_segments.place(segment)[1].read_bytes())
    started(lake, zone)
    assert early.exists() and not zone.consumed_segments.name_mark("b").exists()


def test_damage_before_the_newest_commit_is_refused_f_live(lake: Lake, zone: LandingZone) -> None:
    consume(lake, zone, "a")
    gone = newest_data_file(lake, RAW_RECORDS)
    consume(lake, zone, "b")
    gone.unlink()
    found = started(lake, zone)["raw_records"]
    assert found.refused is not None
    assert f"{gone.name} is missing" in found.refused
    assert "2 commits are affected, and all but the last were acknowledged" in found.refused


def test_a_commit_that_was_emptied_after_another_was_built_on_it_is_refused_spec_98(
    lake: Lake, zone: LandingZone
) -> None:
    for name in "abc":
        consume(lake, zone, name)
    commit_file(lake, RAW_RECORDS, 1).write_text("")
    found = started(lake, zone)["raw_records"]
    assert found.refused is not None
    assert "sequence 3 follows 1" in found.refused


def test_an_emptied_version_whose_batch_was_made_again_is_no_damage(lake: Lake, zone: LandingZone) -> None:
    consume(lake, zone, "a")
    consume(lake, zone, "b", acknowledged=False)
    newest(lake).write_text("")
    consume(lake, zone, "c")
    assert started(lake, zone)["raw_records"].outcome == "sound"


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_an_emptied_version_that_another_tool_compacted_is_made_again_once_f_power(
    lake: Lake, zone: LandingZone, is_checkpointed: bool
) -> None:
    consume(lake, zone, "a")
    if is_checkpointed:
        DeltaTable(lake.log(RAW_RECORDS).uri).create_checkpoint()
    consume(lake, zone, "b", acknowledged=False)
    lost = newest(lake)
    DeltaTable(lake.log(RAW_RECORDS).uri).optimize.compact()
    lost.write_text("")
    assert started(lake, zone)["raw_records"].outcome == "repaired"
    assert (lake.head(RAW_RECORDS).sequence, lake.log(RAW_RECORDS).row_count()) == (1, 1)
    consume(lake, zone, "b")
    assert (lake.head(RAW_RECORDS).sequence, lake.log(RAW_RECORDS).row_count()) == (2, 2)
    assert started(lake, zone)["raw_records"].outcome == "sound"


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_an_emptied_version_that_a_compaction_left_out_is_no_damage(
    lake: Lake, zone: LandingZone, is_checkpointed: bool
) -> None:
    consume(lake, zone, "a")
    consume(lake, zone, "b")
    if is_checkpointed:
        DeltaTable(lake.log(RAW_RECORDS).uri).create_checkpoint()
    consume(lake, zone, "c", acknowledged=False)
    newest(lake).write_text("")
    consume(lake, zone, "c")
    DeltaTable(lake.log(RAW_RECORDS).uri).optimize.compact()
    assert started(lake, zone)["raw_records"].outcome == "sound"
    assert lake.log(RAW_RECORDS).row_count() == 3


def test_a_damaged_manifest_in_the_newest_commit_is_made_again_where_it_was_not_consumed(
    lake: Lake, zone: LandingZone
) -> None:
    consume(lake, zone, "a")
    consume(lake, zone, "b")
    damage_checkpoint(lake, RAW_RECORDS, 1)
    assert not log_is_sound(lake.log(RAW_RECORDS), Path(lake.uri)).passed
    assert started(lake, zone)["raw_records"].outcome == "repaired"
    assert (lake.head(RAW_RECORDS).sequence, zone.pending_names()) == (1, ["b"])


def test_a_damaged_manifest_is_refused_by_name_where_it_was_consumed(lake: Lake, zone: LandingZone) -> None:
    consume(lake, zone, "a")
    observe(lake)
    damage_checkpoint(lake, RAW_RECORDS, 0)
    refused = str(started(lake, zone)["raw_records"].refused)
    assert "the manifest of commit 1 (version 0) is damaged" in refused
    assert "the rows were consumed by observations. Restore" in refused


def test_a_manifest_of_another_schema_version_is_refused_and_left_alone_spec_37(lake: Lake, zone: LandingZone) -> None:
    consume(lake, zone, "a")
    older = replace(lake.log(RAW_RECORDS).commits()[0].manifest, schema_version=2)
    damage_checkpoint(lake, RAW_RECORDS, 0, older.to_json())
    found = started(lake, zone)["raw_records"]
    assert found.outcome == "damaged"
    assert "use the version of the platform that wrote the lake" in str(found.refused)
    assert "lost data" not in str(found.refused)
    assert commit_file(lake, RAW_RECORDS, 0).exists()


@pytest.mark.parametrize("content", [b"", b"{torn", b'{"version": 99}'])
def test_deltas_pointer_to_its_checkpoint_is_dispensable_cp_15(lake: Lake, zone: LandingZone, content: bytes) -> None:
    consume(lake, zone, "a")
    DeltaTable(lake.log(RAW_RECORDS).uri).create_checkpoint()
    (newest(lake).parent / "_last_checkpoint").write_bytes(content)
    assert started(lake, zone)["raw_records"].outcome == "repaired"
    assert lake.head(RAW_RECORDS).sequence == 1


def test_a_torn_checkpoint_of_deltas_own_is_dispensable_cp_14(lake: Lake, zone: LandingZone) -> None:
    consume(lake, zone, "a")
    DeltaTable(lake.log(RAW_RECORDS).uri).create_checkpoint()
    (torn,) = newest(lake).parent.glob("*.checkpoint.parquet")
    torn.write_bytes(bytes(torn.stat().st_size))
    assert started(lake, zone)["raw_records"].outcome == "repaired"
    consume(lake, zone, "b")
    assert (lake.head(RAW_RECORDS).sequence, started(lake, zone)["raw_records"].outcome) == (2, "sound")


def many_records(lake: Lake) -> Path:
    """Commit 3,000 records as Spark would; returns their data file."""
    rows = [{"record_number": n, "segment_sha256": f"{n:064x}", "payload": f"{n}".encode()} for n in range(3_000)]
    commit(lake, RAW_RECORDS, rows)
    return checksum_pages(lake, RAW_RECORDS, lake.log(RAW_RECORDS).version())


def reads_as(file: Path, expected: pa.Table) -> bool:
    """Whether a reader that compares no checksums gets these rows; it reads a column as the table declares it."""
    try:
        return bool(pq.read_table(file).cast(expected.schema).equals(expected))
    except (OSError, pa.ArrowException):
        return False


def test_no_single_bit_flip_changes_what_is_read_unseen_D5(lake: Lake) -> None:
    file, log, chance = many_records(lake), lake.log(RAW_RECORDS), random.Random(7)
    written, expected = file.read_bytes(), pq.read_table(file)
    assert examine(log, Depth.COLUMNS).is_sound
    unseen, returned = [], []
    for bit in chance.sample(range(8 * len(written)), 150):
        rotted = bytearray(written)
        rotted[bit // 8] ^= 1 << (bit % 8)
        file.write_bytes(rotted)
        if examine(log, Depth.COLUMNS).is_sound and not reads_as(file, expected):
            unseen.append(bit)
        try:
            rows = log.rows()
        except (InvariantError, pa.ArrowException):
            continue
        if not rows.equals(expected.select(rows.column_names).cast(rows.schema)):
            returned.append(bit)
    assert (unseen, returned) == ([], [])


def test_a_file_that_differs_from_its_hadoop_checksums_is_found_D5(lake: Lake) -> None:
    file, log = many_records(lake), lake.log(RAW_RECORDS)
    data = bytearray(file.read_bytes())
    parts = [bytes(data[start : start + 512]) for start in range(0, len(data), 512)]
    sums = b"".join(zlib.crc32(part).to_bytes(4, "big") for part in parts)
    file.with_name(f".{file.name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + sums)
    assert examine(log, Depth.COLUMNS).is_sound
    data[-10] ^= 1  # in the footer, of which Parquet keeps no checksum
    file.write_bytes(data)
    assert examine(log, Depth.COLUMNS).problems == [
        f"live data files: {file.name} differs from the checksums that Hadoop kept of it"
    ]


def test_a_page_that_never_reached_the_disk_is_found_at_a_start_D5(lake: Lake, zone: LandingZone) -> None:
    consume(lake, zone, "a")
    lost = many_records(lake)
    data = bytearray(lost.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4096] = bytes(4096)
    lost.write_bytes(data)
    finding = started(lake, zone)[RAW_RECORDS.name]
    assert (finding.outcome, finding.problems) == ("repaired", [f"live data files: {lost.name} {MISMATCH}"])
    assert lake.head(RAW_RECORDS).sequence == 1, "the commit is made again"


def test_a_page_of_an_older_commit_that_rotted_is_named_by_a_deep_look_and_refused_spec_99_D5(
    lake: Lake, zone: LandingZone
) -> None:
    consume(lake, zone, "a")
    file = many_records(lake)
    consume(lake, zone, "b")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    log = lake.log(RAW_RECORDS)
    assert (examine(log, Depth.FOOTERS).is_sound, log.row_count()) == (True, 3_002), "footers and statistics are whole"
    finding = started(lake, zone, depth=Depth.COLUMNS)[RAW_RECORDS.name]
    assert (finding.outcome, finding.problems) == ("damaged", [f"live data files: {file.name} {MISMATCH}"])
    assert file.name in str(finding.refused)
    assert "Restore" in str(finding.refused)
    with pytest.raises(InvariantError, match="`sda lake verify --deep` names the file"):
        log.rows()


def test_while_others_write_only_what_is_settled_is_judged(lake: Lake, zone: LandingZone) -> None:
    consume(lake, zone, "a")
    (newest(lake).parent / f".{1:020d}.json.crc").write_bytes(b"of a commit that is being renamed")
    log = lake.log(RAW_RECORDS)
    assert (examine(log, Depth.NEWEST).is_sound, examine(log, Depth.PRESENCE).is_sound) == (True, False)


def test_a_verification_next_to_a_busy_platform_reports_only_what_remains_D20(lake: Lake, zone: LandingZone) -> None:
    consume(lake, zone, "a")
    derived = newest(lake).parent / f".{1:020d}.json.crc"
    derived.write_bytes(b"of a commit that is being renamed")
    waits: list[float] = []

    def renamed_meanwhile(seconds: float) -> None:
        waits.append(seconds)
        derived.unlink(missing_ok=True)

    sources = {RAW_RECORDS.name: [zone]}
    found = recover(lake, TABLES, sources, depth=Depth.FOOTERS, repair=False, wait=renamed_meanwhile)
    assert ([finding.problems for finding in found], waits) == ([[], []], [0.5])
    newest_data_file(lake, RAW_RECORDS).unlink()
    found = recover(lake, TABLES, sources, depth=Depth.FOOTERS, repair=False, wait=renamed_meanwhile)
    assert "is missing" in found[0].problems[0], "what is really damaged is reported after the second look"


def test_a_lost_table_is_built_again_from_the_archive_f_state(lake: Lake, zone: LandingZone, tmp_path: Path) -> None:
    segments = [consume(lake, zone, name) for name in ("a", f"{RETURNED}b")]
    Path(lake.log(RAW_RECORDS).uri).rename(tmp_path / "moved away")
    assert started(lake, zone)["raw_records"].outcome == "damaged"
    found = started(lake, zone, depth=Depth.COLUMNS)["raw_records"]
    assert (found.outcome, found.problems[0][:49]) == ("repaired", "rows of 2 consumed segments are not in the table:")
    assert {(s.name, zone.read(s).sha256) for s in zone.pending()} == {(s.name, s.sha256) for s in segments}
    assert started(lake, zone)["raw_records"].outcome == "sound"
    assert len(TableZones([zone], 9, 10**6).take(lake.log(RAW_RECORDS), lake.head(RAW_RECORDS))) == 2


def lose_the_table(table: Path) -> None:
    shutil.rmtree(table)


def lose_the_log(table: Path) -> None:
    shutil.rmtree(table / "_delta_log")


lost_table = pytest.mark.parametrize("lose", [lose_the_table, lose_the_log])


@lost_table
def test_a_lost_table_that_was_consumed_is_refused_at_every_start_spec_84(
    lake: Lake, zone: LandingZone, lose: Callable[[Path], None]
) -> None:
    for name in "abc":
        consume(lake, zone, name)
    observe(lake)
    lose(Path(lake.log(RAW_RECORDS).uri))
    for depth in (Depth.PRESENCE, Depth.COLUMNS):
        found = started(lake, zone, depth=depth)
        assert (found["raw_records"].outcome, found["observations"].outcome) == ("damaged", "sound")
        refused = str(found["raw_records"].refused)
        assert "raw_records is missing, but observations consumed it: it was lost. Restore" in refused
        assert zone.pending_names() == []


@lost_table
def test_a_lost_table_whose_zones_gave_it_records_is_refused_at_start_and_at_plan_time_spec_84(
    lake: Lake, zone: LandingZone, lose: Callable[[Path], None]
) -> None:
    consume(lake, zone, "a")
    lose(Path(lake.log(RAW_RECORDS).uri))
    told = r"raw_records is missing, but its zones have consumed segments, such as radar/a: it was lost. Restore"
    assert told in str(started(lake, zone)["raw_records"].refused)
    land(zone, "b", radar_segment(1, first_track=77))
    with pytest.raises(TableLost, match=told):
        TableZones([zone], 9, 10**6).take(lake.log(RAW_RECORDS), lake.head(RAW_RECORDS))


@lost_table
def test_no_plan_begins_a_table_again_that_others_consumed_spec_84(
    lake: Lake, zone: LandingZone, lose: Callable[[Path], None]
) -> None:
    consume(lake, zone, "a")
    observe(lake)
    commit(lake, DEAD_LETTERS, windows=lake.plan(replace(DEAD_LETTERS, consumes=(OBSERVATIONS,), reads=())).windows)
    lose(Path(lake.log(OBSERVATIONS).uri))
    with pytest.raises(TableLost, match="observations is missing, but dead_letters consumed it: it was lost"):
        lake.plan(OBSERVATIONS)
    with pytest.raises(InvariantError, match="it was lost, or the table was restored"):
        lake.plan(replace(DEAD_LETTERS, consumes=(OBSERVATIONS,), reads=()))


def test_no_plan_takes_the_place_of_a_lost_commit_before_a_start_repairs_it_f_power(
    lake: Lake, zone: LandingZone
) -> None:
    for name in "ab":
        consume(lake, zone, name)
    lost = commit_file(lake, RAW_RECORDS, 1)
    lost.with_suffix(".crc").write_text("{}")  # as Spark writes it after the commit

    def planned() -> int:
        return lake.plan_landing(
            RAW_RECORDS, lake.head(RAW_RECORDS), [SegmentRef("radar", "c", "0" * 64, 1, 1)]
        ).sequence

    assert planned() == 3
    lost.unlink()
    with pytest.raises(InvariantError, match="raw_records: version 1 is missing, and its checksum file is there"):
        planned()
    assert started(lake, zone)["raw_records"].outcome == "repaired"
    assert planned() == 2


def test_a_table_that_another_run_creates_meanwhile_is_not_lost_spec_84(lake: Lake, zone: LandingZone) -> None:
    before = lake.head(RAW_RECORDS)
    consume(lake, zone, "a")
    assert TableZones([zone], 9, 10**6).take(lake.log(RAW_RECORDS), before) == []


@pytest.mark.parametrize("was_consumed", [(), ("without a record",)])
def test_a_table_is_new_where_nothing_was_consumed_that_it_must_have_a_row_of_spec_84(
    lake: Lake, zone: LandingZone, was_consumed: tuple[str, ...]
) -> None:
    for name in was_consumed:
        land(zone, name, radar_segment(0))
        zone.acknowledge([zone.read(each).ref(0) for each in zone.pending()])
        assert [segment.name for segment in zone.consumed()] == [name]
    land(zone, "a", radar_segment(1))
    assert {f.outcome for f in started(lake, zone).values()} == {"sound"}
    assert len(TableZones([zone], 9, 10**6).take(lake.log(RAW_RECORDS), lake.head(RAW_RECORDS))) == 1


def test_a_defective_segment_of_a_lost_commit_is_reported_again_too_f_state(
    lake: Lake, zone: LandingZone, tmp_path: Path
) -> None:
    """Its only trace would be the bytes in quarantine, which is not reported any more."""
    data = radar_segment(2)
    land(zone, "torn", data)
    Path(tmp_path, "landing/radar/pending/torn").write_bytes(data[:-1])
    torn = zone.read(*zone.pending()).ref(1)
    assert torn.defect is not None
    commit(lake, RAW_RECORDS, [{"segment_sha256": torn.sha256, "record_number": -1}], segments=[torn])
    zone.acknowledge([torn])
    assert started(lake, zone, depth=Depth.COLUMNS)["raw_records"].outcome == "sound"
    empty(lake)
    for step in crashes():
        with step:
            started(lake, zone)
    assert started(lake, zone)["raw_records"].outcome == "sound"
    assert [zone.read(s).sha256 for s in zone.pending()] == [torn.sha256]


def test_a_segment_at_which_the_decoder_failed_waits_again_after_its_commit_was_lost__D12(
    lake: Lake, zone: LandingZone, tmp_path: Path
) -> None:
    """Its bytes are sound, and it is known by another hash than a defective one."""
    land(zone, "poison", radar_segment(2))
    refused = zone.read(*zone.pending()).refused(f"poison: {UNDECODABLE} ValueError").ref(1)
    commit(lake, RAW_RECORDS, [{"segment_sha256": refused.sha256, "record_number": -1}], segments=[refused])
    zone.acknowledge([refused])
    assert zone.pending() == []
    assert started(lake, zone, depth=Depth.COLUMNS)["raw_records"].outcome == "sound"
    empty(lake)
    for step in crashes():
        with step:
            started(lake, zone)
    assert started(lake, zone)["raw_records"].outcome == "sound"
    assert [segment.name for segment in zone.pending()] == ["poison"]


def test_a_lost_commit_that_was_read_whole_counts_as_consumed(lake: Lake, zone: LandingZone) -> None:
    consume(lake, zone, "a")
    plan = lake.plan(replace(OBSERVATIONS, consumes=(), reads=(RAW_RECORDS,)))
    commit(lake, OBSERVATIONS, snapshots=plan.snapshots)
    newest(lake).write_text("")
    assert "consumed by observations" in str(started(lake, zone)["raw_records"].refused)


@pytest.mark.parametrize("strike", [empty, halve, zero_the_data, truncate_the_data, lose_the_data])
def test_the_check_in_the_run_goes_red_spec_99(
    lake: Lake, zone: LandingZone, strike: Callable[[Lake], None], tmp_path: Path
) -> None:
    consume(lake, zone, "a")
    log = lake.log(RAW_RECORDS)
    assert log_is_sound(log, tmp_path).passed
    strike(lake)
    result = log_is_sound(log, tmp_path)
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.ERROR)


def test_the_check_shows_how_the_last_start_went(lake: Lake, zone: LandingZone, tmp_path: Path) -> None:
    consume(lake, zone, "a", acknowledged=False)
    empty(lake)
    repair_record.write(tmp_path, list(started(lake, zone).values()), seconds=0.5)
    metadata = log_is_sound(lake.log(RAW_RECORDS), tmp_path).metadata
    assert metadata["start_outcome"].value == "repaired"
    assert "set aside" in str(metadata["recovered_by"].value)


def test_a_table_that_is_lost_is_not_also_one_that_does_not_fit(lake: Lake, zone: LandingZone) -> None:
    """The start names it as lost, with a remedy of its own."""
    consume(lake, zone, "a")
    observe(lake)
    consumer = examine(lake.log(OBSERVATIONS), Depth.PRESENCE)
    shutil.rmtree(lake.log(RAW_RECORDS).uri)
    absent = examine(lake.log(RAW_RECORDS), Depth.PRESENCE)
    assert unfitting(lake, TABLES, {OBSERVATIONS.name: consumer, RAW_RECORDS.name: absent}) == {}


def test_only_a_look_at_every_column_reads_the_log_from_the_disk(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(lake, RAW_RECORDS)
    log, forgotten = lake.log(RAW_RECORDS), list[str]()
    monkeypatch.setattr(durable, "forget_cached", lambda path: forgotten.append(path.name))
    for depth in Depth:
        forgotten.clear()
        examine(log, depth)
        assert (f"{0:020}.json" in forgotten) == (depth is Depth.COLUMNS)


@pytest.mark.parametrize("by", [-1, 1])
def test_a_file_of_another_size_is_damaged_though_nobody_opens_it(lake: Lake, by: int) -> None:
    for number in range(2):
        commit(lake, RAW_RECORDS, [{"record_number": number}])
    DeltaTable(lake.log(RAW_RECORDS).uri).create_checkpoint()
    file = newest_data_file(lake, RAW_RECORDS)
    size = file.stat().st_size
    assert damaged_files(lake.log(RAW_RECORDS), Depth.PRESENCE) == {}
    os.truncate(file, size + by)
    problem = f"has {size + by} bytes, not {size}"
    assert damaged_files(lake.log(RAW_RECORDS), Depth.PRESENCE) == {file.name: problem}
    assert problem in str(examine(lake.log(RAW_RECORDS), Depth.PRESENCE).problems)


@pytest.mark.parametrize(
    ("version", "text", "found"),
    [(1, "", "empty"), (1, '{"commitInfo":', "torn"), (1, "null", "torn"), (300, "null", "torn")],
)
def test_what_a_power_loss_left_of_the_last_version_is_dispensable_of_an_earlier_one_not(
    lake: Lake, version: int, text: str, found: str
) -> None:
    commit(lake, RAW_RECORDS)
    for other in range(1, version):  # as another tool's commits
        commit_file(lake, RAW_RECORDS, other).write_text('{"commitInfo":{"operation":"OPTIMIZE"}}')
    commit_file(lake, RAW_RECORDS, version).write_text(text)
    damage = [Damage(f"version {version} is {found}", version)]
    assert list(examine(lake.log(RAW_RECORDS), Depth.PRESENCE).damage) == damage
    commit_file(lake, RAW_RECORDS, version + 1).write_text('{"commitInfo":{"operation":"OPTIMIZE"}}')
    after = [Damage(f"version {version} is torn")] if found == "torn" else []
    assert list(examine(lake.log(RAW_RECORDS), Depth.PRESENCE).damage) == after


def test_a_log_is_cut_from_its_end_so_that_the_damage_shows_until_all_is_moved(lake: Lake) -> None:
    for _ in range(3):
        commit(lake, RAW_RECORDS)
    log = lake.log(RAW_RECORDS)
    hadoop_checksum(log_directory(log.uri) / f"{1:020}.json").write_bytes(b"crc")
    commits = [name for name in files_from(log, 1) if name.endswith(".json")]
    assert commits == [f"{version:020}.json" for version in (2, 1)]
    last = [name for name in files_from(log, 1) if version_of(name) == 1]
    assert last[-1] == f"{1:020}.json" and len(last) == 2
