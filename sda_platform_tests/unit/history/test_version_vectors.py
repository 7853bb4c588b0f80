"""Version vectors: one consistent state of all tables, as a decision saw it or as it stood at a time."""

import json
from functools import partial
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.catalog.tables import ELEMENT_SETS, ORBITAL_CATALOG
from sda_platform.clock import iso
from sda_platform.conjunction.alert_ids import UnknownAlert
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS, CONJUNCTION_CANDIDATES
from sda_platform.history.errors import UnknownMoment, VersionExpired
from sda_platform.history.moments import vector_of
from sda_platform.history.version_vector import VersionVector, newest_vector, vector_at
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import Table
from sda_platform_tests.support.delta_tables import commit_file, foreign, lake_at
from sda_platform_tests.unit.history.lakes import EVENT, OTHER_EVENT, TABLES, add, decide, elements

CHAIN = (ELEMENT_SETS, ORBITAL_CATALOG, CONJUNCTION_CANDIDATES, CONJUNCTION_ASSESSMENTS, CONJUNCTION_ALERTS)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two decisions, and element sets that came after the first one."""
    lake = lake_at(tmp_path, now_ns=1_000)
    add(lake, ELEMENT_SETS, elements(7, 100), elements(8, 100, record=1))
    add(lake, ORBITAL_CATALOG, elements(7, 100), elements(8, 100, record=1))
    decide(lake)
    add(lake, ELEMENT_SETS, elements(7, 200, "late"))
    add(lake, ORBITAL_CATALOG, elements(7, 200, "late"))
    decide(lake, OTHER_EVENT)
    return lake


def set_times(lake: Lake, table: Table, *seconds: int) -> None:
    """Let a table's versions have been committed so many seconds after 1970-01-02."""
    for version, time_s in enumerate(seconds):
        file = commit_file(lake, table, version)
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = (86_400 + time_s) * 1000
        file.write_text("\n".join(json.dumps(action, separators=(",", ":")) for action in actions))


def committed_by(time_ms: int, commit: Commit) -> bool:
    return commit.timestamp_ms <= time_ms


def is_consistent(lake: Lake, vector: VersionVector) -> bool:
    """Whether no table in the vector has consumed what the vector lacks."""
    for name, snapshot in vector.snapshots.items():
        end = next(lake.log(TABLES[name]).commits_from(snapshot.version), None) if snapshot.sequence else None
        for read in end.manifest.inputs() if end else ():
            if read.table in vector.snapshots and read.sequence > vector.snapshots[read.table].sequence:
                return False
    return True


def test_the_vector_of_an_alert_names_what_its_decision_read_and_nothing_else__MV8_MV9(lake: Lake) -> None:
    first, second = (vector_of(lake, TABLES, event[:8]) for event in (EVENT, OTHER_EVENT))
    sequences = {name: snapshot.sequence for name, snapshot in first.snapshots.items()}
    assert sequences == {
        "conjunction_alerts": 1, "conjunction_assessments": 1, "conjunction_candidates": 1, "orbital_catalog": 1,
        "element_sets": 1, "tracks": 0, "ephemerides": 0, "received_cdms": 0,
    }  # fmt: skip
    empty = {name for name, sequence in sequences.items() if not sequence}
    assert {s.sequence for n, s in second.snapshots.items() if n not in empty} == {2}
    assert str(first).startswith("conjunction_alerts=0,conjunction_assessments=0")
    assert first.facts == {"alert_id": EVENT, "revision": 0, "commit_sequence": 1}


def test_versions_between_the_platforms_commits_do_not_change_the_vector__MV9(lake: Lake) -> None:
    before = vector_of(lake, TABLES, OTHER_EVENT)
    foreign(lake, CONJUNCTION_ALERTS, "OPTIMIZE", "VACUUM START", "VACUUM END")
    assert vector_of(lake, TABLES, OTHER_EVENT) == before
    assert vector_of(lake, TABLES, "conjunction_alerts=4").snapshots["conjunction_alerts"].version == 1


def test_a_time_is_the_newest_commit_at_or_before_it__DL4_A1(lake: Lake) -> None:
    set_times(lake, ELEMENT_SETS, 300, 540)
    asked = {
        s: vector_of(lake, {"element_sets": ELEMENT_SETS}, iso((86_400 + s) * 10**9)) for s in (299, 300, 539, 540)
    }
    found = {s: (v.snapshots["element_sets"].version, v.snapshots["element_sets"].sequence) for s, v in asked.items()}
    assert found == {299: (-1, 0), 300: (0, 1), 539: (0, 1), 540: (1, 2)}
    late = vector_of(lake, {"element_sets": ELEMENT_SETS}, "2999-01-01")
    assert late.snapshots["element_sets"].sequence == 2


def test_a_mission_time_is_that_of_the_manifests__DL4_F1(lake: Lake) -> None:
    lake.clock = type(lake.clock)(5 * 10**9, 0, 0.0)
    add(lake, ELEMENT_SETS, elements(9, 300, "later"))
    chosen = {"element_sets": ELEMENT_SETS}
    assert vector_of(lake, chosen, "mission:1970-01-01T00:00:04").snapshots["element_sets"].sequence == 2
    assert vector_of(lake, chosen, "mission:1970-01-01T00:00:05").snapshots["element_sets"].sequence == 3


@pytest.mark.parametrize("text", ["1960-01-01", "mission:1960-01-01"])
def test_a_time_before_all_commits_is_named_as_such__U4(lake: Lake, text: str) -> None:
    assert vector_of(lake, TABLES, text).moment.startswith(f"{text}, when no table had a commit")
    assert "had a commit" not in vector_of(lake, TABLES, "2100-01-01").moment


def test_a_time_before_the_log_begins_is_refused_with_the_oldest_that_exists__DL4_A2(lake: Lake) -> None:
    set_times(lake, ELEMENT_SETS, 300, 540)
    DeltaTable(lake.log(ELEMENT_SETS).uri).create_checkpoint()
    commit_file(lake, ELEMENT_SETS, 0).unlink()
    with pytest.raises(VersionExpired, match="element_sets: 1970-01-02T00:05:00") as refused:
        vector_of(lake, {"element_sets": ELEMENT_SETS}, "1970-01-02T00:05:00")
    assert (refused.value.nearest_version, refused.value.nearest_time_ms) == (1, 86_940_000)
    assert "the oldest that can be read is version 1 of 1970-01-02T00:09:00" in str(refused.value)


def test_a_consumer_whose_clock_runs_behind_is_set_back_to_what_the_state_has__MV12(lake: Lake) -> None:
    """The second alert seems older than the assessment it was made from."""
    for table in TABLES.values():
        if lake.log(table).version() >= 0:
            set_times(lake, table, 100, 200)
    set_times(lake, CONJUNCTION_ALERTS, 100, 150)
    vector = vector_of(lake, TABLES, iso((86_400 + 160) * 10**9))
    assert {s.sequence for s in vector.snapshots.values() if s.sequence} == {1}


@settings(max_examples=25, deadline=None)
@given(
    moves=st.lists(st.sampled_from(CHAIN), max_size=12),
    times=st.lists(st.integers(0, 9), min_size=12, max_size=12),
)
def test_every_vector_is_consistent_whatever_was_committed_when_and_by_what_clock__MV13(
    tmp_path_factory: pytest.TempPathFactory, moves: list[Table], times: list[int]
) -> None:
    lake = lake_at(tmp_path_factory.mktemp("lake"))
    for number, table in enumerate(moves):
        row = (
            elements(7, number, str(number))
            if table in (ELEMENT_SETS, ORBITAL_CATALOG)
            else {"event_id": EVENT, "sequence": number}
        )
        add(lake, table, row)
    assert is_consistent(lake, newest_vector(lake, TABLES))
    for table in TABLES.values():
        set_times(lake, table, *times[: lake.log(table).version() + 1])
    for second in range(10):
        vector = vector_at(lake, TABLES, "then", partial(committed_by, (86_400 + second) * 1000))
        assert is_consistent(lake, vector)
        assert all(
            snapshot.sequence == 0 or lake.log(TABLES[name]).commit_at(snapshot.version) is not None
            for name, snapshot in vector.snapshots.items()
        )
    alerts = lake.log(CONJUNCTION_ALERTS).commits(None)
    for newest in alerts[:1]:
        revision = lake.log(CONJUNCTION_ALERTS).rows_of((newest.sequence - 1, newest.sequence)).to_pylist()[0]
        assert is_consistent(lake, vector_of(lake, TABLES, f"{EVENT}@{revision['sequence']}"))


def test_what_names_no_moment_is_refused_with_what_may_be_written(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(UnknownMoment, match="is no moment: write a time"):
        vector_of(lake, TABLES, "yesterday")
    with pytest.raises(UnknownMoment, match="no table is named nosuch"):
        vector_of(lake, TABLES, "nosuch=3")
    with pytest.raises(UnknownAlert, match="no alert begins with 'ffff'"):
        vector_of(lake, TABLES, "ffff")
    with pytest.raises(UnknownAlert, match="has no revision 3; it has 0"):
        vector_of(lake, TABLES, f"{EVENT}@3")
    with pytest.raises(VersionExpired, match="element_sets: version 9 cannot be read any more"):
        vector_of(lake, TABLES, "element_sets=9")
    stored = tmp_path / "vector.json"
    stored.write_text(json.dumps({"as_of": {"versions": {"element_sets": 0}}}))
    assert vector_of(lake, TABLES, str(stored)).snapshots["element_sets"].sequence == 1
    for damaged in ('{"as_of": {"vers', "[1]", '{"element_sets": null}'):
        stored.write_text(damaged)
        with pytest.raises(UnknownMoment, match=r"vector\.json is no file of versions"):
            vector_of(lake, TABLES, str(stored))
