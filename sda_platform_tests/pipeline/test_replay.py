"""Replay: what the live tables hold is what follows from their inputs, bit for bit, and what is wrong is named."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from sda_platform import audit_log
from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.clock import MissionClock
from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
)
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.history.impact import impact_of
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake import executors
from sda_platform.lake.errors import VersionGone
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.table import Table
from sda_platform.lake.version_leases import VersionLeases
from sda_platform.orchestration.recomputing import recompute
from sda_platform.orchestration.replaying import make_again, replay_lake
from sda_platform.registry import TABLES
from sda_platform.replay.comparison import Comparison
from sda_platform.replay.counterfactual import OtherInput
from sda_platform.replay.differences import differences
from sda_platform.replay.digest import digest
from sda_platform.replay.history import EVERY_COMMIT, History, Span, history
from sda_platform_tests.support.lived import MET_ID
from sda_platform_tests.support.platform_run import Platform
from sda_platform_tests.support.sampling import sampled
from sda_platform_tests.support.segments import after

pytestmark = pytest.mark.timeout(600)  # the history is five runs of pools
FROM_FRAMES_TO_DELIVERY = (
    RAW_RECORDS, OBSERVATIONS, ELEMENT_SETS, DEAD_LETTERS, ORBITAL_CATALOG, FUSED_TRACKS, TRACKS,
    CONJUNCTION_CANDIDATES, CONJUNCTION_ASSESSMENTS, CONJUNCTION_ALERTS, ALERT_DELIVERIES, RECEIVED_CDMS,
)  # fmt: skip
TO_ALERTS = {table.name for table in FROM_FRAMES_TO_DELIVERY} - {"dead_letters", "alert_deliveries", "received_cdms"}
ON_SPARK = sampled(TABLES, OBSERVATIONS, ORBITAL_CATALOG, FUSED_TRACKS)
BY_RADARS = "probability,data_quality"
NAMED = ("risk", "collision_probability", "miss_distance_km", "tca_time_ns")
ANOTHER_DAY = MissionClock(after(400 * 86_400), 0, 0.0)


@pytest.fixture
def copied(lived: Platform, tmp_path: Path) -> Lake:
    """The tables of `lived` for a test to damage."""
    shutil.copytree(lived.lake.uri, tmp_path / "lake")
    return Lake(str(tmp_path / "lake"), ANOTHER_DAY, lambda: lived.lake.session)


@contextmanager
def shuffled_in(session: SparkSession, partitions: int) -> Iterator[None]:
    before = session.conf.get("spark.sql.shuffle.partitions")
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    try:
        yield
    finally:
        session.conf.set("spark.sql.shuffle.partitions", str(before))


def replayed(lived: Platform, lake: Lake, shadow: Path, *tables: Table, span: Span = EVERY_COMMIT) -> list[Comparison]:
    return replay_lake(lake, str(shadow), resources(lived), tables=tables or TABLES, span=span)


def resources(lived: Platform) -> Mapping[str, Any]:
    return lived.definitions.resources or {}


def the_history(lake: Lake, table: Table) -> History:
    found = history(lake.log(table), EVERY_COMMIT)
    assert found is not None
    return found


def test_every_table_is_what_follows_from_its_inputs__F_replay_O5(
    lived: Platform, copied: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another day, over rewritten files, in another number of partitions, and with transforms on Spark."""
    for table in TABLES:
        if copied.log(table).version() >= 0:
            DeltaTable(copied.log(table).uri).optimize.compact()
    others = [table for table in TABLES if table not in ON_SPARK]
    with shuffled_in(copied.session, 5):
        found = replayed(lived, copied, tmp_path / "in process", *others) if others else []
        monkeypatch.setattr(executors, "MOST_IN_PROCESS", -1)
        found += replayed(lived, copied, tmp_path / "on Spark", *ON_SPARK)
    written = [table.name for table in (*others, *ON_SPARK) if lived.lake.log(table).version() >= 0]
    assert [each.table for each in found] == written
    assert [line for each in found for line in each.differences] == []
    assert {each.table for each in found if each.rows} >= {table.name for table in FROM_FRAMES_TO_DELIVERY}
    late = [c.manifest.counts["late"] for c in the_history(copied, FUSED_TRACKS).commits]
    assert late[:2] == [0, 0] and late[2] > 0, "the history is one that its division into batches decides"
    assert len(the_history(copied, ORBITAL_CATALOG).commits) == 2


def test_a_range_begins_with_what_the_table_held_before_it(lived: Platform, tmp_path: Path) -> None:
    several = [table for table in TABLES if lived.lake.log(table).head().sequence > 1]
    tables = sampled(several, *sorted((ORBITAL_CATALOG, FUSED_TRACKS, ALERT_DELIVERIES), key=TABLES.index))
    found = replayed(lived, lived.lake, tmp_path / "shadow", *tables, span=Span(from_sequence=2))
    assert [(each.table, each.first_sequence) for each in found] == [(table.name, 2) for table in tables]
    assert [line for each in found for line in each.differences] == []


def test_both_readers_see_the_same_columns__O9(lived: Platform) -> None:
    for table in sampled(FROM_FRAMES_TO_DELIVERY, RAW_RECORDS, FUSED_TRACKS, CONJUNCTION_ASSESSMENTS):
        log = lived.lake.log(table)
        by_spark = lived.lake.session.read.format("delta").load(log.uri).toArrow()
        assert digest(table, by_spark) == digest(table, log.rows()), table.name


def test_another_division_of_the_same_data_gives_other_tracks__70(lived: Platform, tmp_path: Path) -> None:
    """Why a batch is replayed as it was divided: taken together, the last two batches would have had nothing late."""
    first, second, third = the_history(lived.lake, FUSED_TRACKS).commits
    before, after_it = second.manifest.windows, third.manifest.windows
    joined = tuple(
        replace(later, after_sequence=window.after_sequence, after_version=window.after_version)
        for window, later in zip(before, after_it, strict=True)
    )
    both = replace(second, manifest=replace(second.manifest, windows=joined))
    again = {
        name: make_again(
            lived.lake, FUSED_TRACKS, str(tmp_path / name), History(commits, None, True, 0), resources(lived)
        )
        for name, commits in {"as divided": (first, second, third), "together": (first, both)}.items()
    }
    assert differences(FUSED_TRACKS, lived.rows(FUSED_TRACKS), again["as divided"].rows()) == []
    assert differences(FUSED_TRACKS, lived.rows(FUSED_TRACKS), again["together"].rows()) != []


def test_a_commit_is_made_again_under_the_settings_that_it_was_made_under__37(lived: Platform, tmp_path: Path) -> None:
    others = {"fusion": FusionResource(window_s=60), "screening": ScreeningResource(horizon_h=0.1, threshold_km=1.0)}
    tables = (FUSED_TRACKS, CONJUNCTION_CANDIDATES, CONJUNCTION_ASSESSMENTS)
    found = replay_lake(lived.lake, str(tmp_path / "shadow"), {**resources(lived), **others}, tables=tables)
    assert [(each.table, each.differences) for each in found] == [(table.name, ()) for table in tables]


def test_a_lost_an_altered_and_a_doubled_row_are_named(lived: Platform, copied: Lake, tmp_path: Path) -> None:
    stored, first = DeltaTable(copied.log(OBSERVATIONS).uri), copied.log(OBSERVATIONS).rows_of((0, 1))
    first = first.sort_by("observation_id")
    ids = first.column("observation_id").to_pylist()
    stored.delete(f"observation_id = '{ids[0]}'")
    stored.update(updates={"source_id": "'another'"}, predicate=f"observation_id = '{ids[1]}'")
    write_deltalake(stored, first.slice(2, 1), mode="append")
    (found,) = replayed(lived, copied, tmp_path / "shadow", OBSERVATIONS, span=Span(to_sequence=1))
    told = "\n".join(found.differences)
    assert not found.is_identical and len(found.differences) == 3
    assert f"sequence 1: 1 rows are missing, such as observation_id='{ids[0]}'" in told
    assert f"1 rows differ in source_id, such as observation_id='{ids[1]}': stored 'another', replayed" in told
    assert f"1 rows are too many or unfounded, such as observation_id='{ids[2]}'" in told


def test_what_vacuum_removed_is_reported_and_what_does_not_need_it_is_replayed__102(
    lived: Platform, copied: Lake, tmp_path: Path
) -> None:
    catalogue = DeltaTable(copied.log(ORBITAL_CATALOG).uri)
    catalogue.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(VersionGone, match=r"orbital_catalog: version \d cannot be read any more: VACUUM removed"):
        replayed(lived, copied, tmp_path / "tracks", FUSED_TRACKS)
    (found,) = replayed(lived, copied, tmp_path / "records", RAW_RECORDS, span=Span(to_sequence=1))
    assert found.is_identical


def test_without_a_link_alerts_are_as_if_it_had_never_reported__DL6_I14(lived: Platform) -> None:
    """Hubble's link has ruled out what comes towards it; without it, the last word is that of the radars' tracks."""
    before = lived.versions(TABLES)
    result = lived.run("impact", ops={"leave_out_input": {"config": {"source": f"isl-{MET_ID}"}}})
    (told,) = (e.step_output_data.metadata for e in result.all_events if e.event_type_value == "STEP_OUTPUT")
    found: Any = told["alerts"].value
    assert found["counts"] == {"unchanged": 0, "changed": 1, "vanished": 0, "new": 0}
    (alert,) = found["alerts"]
    by_radars = next(row for row in lived.rows(CONJUNCTION_ALERTS).to_pylist() if row["change"] == BY_RADARS)
    assert (alert["event_id"], alert["verdict"], alert["rests_on_it"]) == (by_radars["event_id"], "changed", True)
    assert (alert["before"]["status"], alert["after"]["status"]) == ("withdrawn", "open")
    assert {name: alert["after"][name] for name in NAMED} == {name: by_radars[name] for name in NAMED}
    assert lived.versions(TABLES) == before and VersionLeases(lived.lake.uri).active() == []
    assert list(lived.home.glob("lake.impact*")) == []
    event = audit_log.events(lived.home)[-1]
    assert (event.operation, event.outcome) == ("impact", "0 unchanged, 1 changed, 0 vanished, 0 new")


def test_commits_made_again_with_the_bytes_that_came_have_the_same_rows__DL6_I14(
    lived: Platform, tmp_path: Path
) -> None:
    """The control: a segment of the last batch is corrected by itself, and no row differs on the forks."""
    tables = {table.name: table for table in TABLES}
    newest = the_history(lived.lake, RAW_RECORDS).commits[-1].manifest.segments[0]
    data = lived.zone(newest.zone).load_consumed(newest).data
    impact = impact_of(lived.lake, tables, newest.name)
    since = [(tables[each.table], each.sequences[0]) for each in impact.tables if each.table in TO_ALERTS]

    def made_again(directory: str, content: bytes, tables: list[tuple[Table, int]]) -> Mapping[str, TableLog]:
        other = OtherInput(corrected={newest.sha256: content})
        return recompute(lived.lake, str(tmp_path / directory), resources(lived), since=tables, other=other)

    made = made_again("same", data, since)
    assert made.keys() >= {"raw_records", "observations", "fused_tracks", "tracks"}
    for name, fork in made.items():
        assert differences(tables[name], lived.rows(tables[name]), fork.rows()) == [], name
    torn = made_again("torn", data[:-1], [each for each in since if each[0] is RAW_RECORDS])["raw_records"].rows()
    assert differences(RAW_RECORDS, lived.rows(RAW_RECORDS), torn) != []
