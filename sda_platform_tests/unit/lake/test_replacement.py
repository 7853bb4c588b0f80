"""The content of a table whose rows are replaced: which row each key has, and which commit wrote it."""

import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.clock import MissionClock
from sda_platform.fusion.tables import TRACKS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.planning import plan_windows
from sda_platform.lake.replacement import replaced_where, with_changes
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.recovery.verification import broken_chain
from sda_platform_tests.support.crashes import crashes
from sda_platform_tests.support.delta_tables import commit, lake_at, no_engine, rows_of, with_delta_rs

_CHANGES_AT = 7
_ALONE = dataclasses.replace(TRACKS, consumes=(), reads=())


def tracks(*rows: tuple[int, int, float]) -> pa.Table:
    """Rows (norad_id, commit sequence, a value)."""
    return rows_of(TRACKS, [{"norad_id": n, COMMIT_SEQUENCE: s, "x_km": v} for n, s, v in rows])


def facts(rows: pa.Table) -> list[tuple[Any, ...]]:
    columns = (rows.column(name).to_pylist() for name in ("norad_id", COMMIT_SEQUENCE, "x_km"))
    return [(n, s, v) for n, s, v in zip(*columns, strict=True)]


@given(
    st.dictionaries(st.integers(1, 9), st.integers(1, 6)), st.sets(st.integers(1, 9)), st.randoms(use_true_random=False)
)
def test_changed_rows_get_the_new_sequence_and_all_others_keep_theirs__D1(
    current: dict[int, int], changed: set[int], chance: Any
) -> None:
    """In the order of the key, however the inputs are stored."""
    before = [(number, sequence, 0.5) for number, sequence in current.items()]
    new = [(number, 1, 1.5) for number in changed]
    chance.shuffle(before)
    chance.shuffle(new)
    stays = {(number, sequence, 0.5) for number, sequence in current.items() if number not in changed}
    expected = sorted({*stays, *((number, _CHANGES_AT, 1.5) for number in changed)})
    assert facts(with_changes(TRACKS, tracks(*before), tracks(*new), _CHANGES_AT)) == expected


def test_changed_rows_need_no_sequence_of_their_own() -> None:
    changed = tracks((2, 1, 1.5)).drop_columns([COMMIT_SEQUENCE])
    assert facts(with_changes(TRACKS, tracks((1, 3, 0.5)), changed, 4)) == [(1, 3, 0.5), (2, 4, 1.5)]


def test_removed_keys_are_gone_unless_they_change__CS9() -> None:
    current, removed = tracks((1, 3, 0.5), (2, 3, 0.5), (3, 3, 0.5)), tracks((2, 1, 0.0), (3, 1, 0.0), (9, 1, 0.0))
    found = with_changes(TRACKS, current, tracks((3, 1, 1.5)), 4, removed.select(["norad_id"]))
    assert facts(found) == [(1, 3, 0.5), (3, 4, 1.5)]


def test_two_changes_of_one_key_are_an_invariant_error() -> None:
    with pytest.raises(InvariantError, match=r"tracks: rows that change have a key \(norad_id\) more than once"):
        with_changes(TRACKS, tracks(), tracks((1, 1, 0.5), (1, 1, 1.5)), 2)


def test_a_commit_replaces_its_own_rows_and_those_of_changed_and_removed_keys() -> None:
    changed, removed = tracks((2, 1, 1.5)), tracks((3, 1, 0.5), (1, 1, 0.5))
    assert replaced_where(TRACKS, changed, 4) == "commit_sequence = 4 OR norad_id IN (2)"
    assert replaced_where(TRACKS, changed, 4, removed) == "commit_sequence = 4 OR norad_id IN (1, 2, 3)"
    assert replaced_where(TRACKS, tracks(), 4) == "commit_sequence = 4", "no row that there is"


class DeltaRsLake(Lake):
    """A lake whose engine is delta-rs."""

    requires_lineage = False

    engine = staticmethod(with_delta_rs)
    reads_unverified = True

    def frame(self, table: Table, rows: pa.Table, *, stamped: bool = False) -> Any:
        return rows


def replace(lake: Lake) -> None:
    """Change object 2 and add object 3, unless a run before has done so."""
    plan = lake.plan(dataclasses.replace(TRACKS, consumes=(OBSERVATIONS,), reads=()))
    if not plan.is_empty:
        lake.replace(plan, tracks((2, 1, 1.5), (3, 1, 1.5)))


def test_an_overwrite_that_a_crash_interrupts_at_any_step_is_made_exactly_once__D1(tmp_path: Path) -> None:
    for number, attempt in enumerate(crashes()):
        lake = DeltaRsLake(str(tmp_path / str(number)), MissionClock(1, 0, 0.0), no_engine, "run")
        commit(lake, TRACKS, [{"norad_id": n, "x_km": 0.5} for n in (1, 2)])
        commit(lake, OBSERVATIONS, [{"observation_id": "a"}])
        with attempt:
            replace(lake)
        replace(lake)
        log = lake.log(TRACKS)
        assert facts(log.rows().sort_by("norad_id")) == [(1, 1, 0.5), (2, 2, 1.5), (3, 2, 1.5)]
        assert (broken_chain(log.commits()), log.head().sequence, log.commits()[0].rows_written) == ([], 2, 2)
    assert number >= 5, "it passes several points"


@given(
    st.lists(
        st.tuples(st.sets(st.integers(1, 9), max_size=4), st.sets(st.integers(1, 9), max_size=3)),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=20, deadline=None)
def test_whether_other_files_are_kept_changes_no_row__D1(commits: list[tuple[set[int], set[int]]]) -> None:
    """Whatever changes and is removed; and the files of other rows are kept."""
    with TemporaryDirectory() as directory:
        whole = DeltaRsLake(f"{directory}/whole", MissionClock(1, 0, 0.0), no_engine, "run")
        in_part = DeltaRsLake(f"{directory}/part", MissionClock(1, 0, 0.0), no_engine, "run")
        found = []
        for lake, table in ((whole, _ALONE), (in_part, dataclasses.replace(_ALONE, keeps_other_files=True))):
            for number, (changed, removed) in enumerate(commits):
                segment = SegmentRef("radar", f"{number}.seg", "0" * 64, 1, 1)
                plan = lake.plan_landing(table, lake.head(table), [segment])
                rows = tracks(*((key, 1, float(number)) for key in sorted(changed)))
                lake.replace(plan, rows, removed=tracks(*((key, 1, 0.0) for key in sorted(removed - changed))))
            log = lake.log(table)
            assert [c.rows_written for c in reversed(log.commits())] == [len(changed) for changed, _ in commits]
            found.append(facts(log.rows().sort_by("norad_id")))
        assert found[0] == found[1]


def test_a_commit_writes_only_the_files_again_that_have_a_changed_row(tmp_path: Path) -> None:
    table = dataclasses.replace(_ALONE, keeps_other_files=True)
    lake = DeltaRsLake(str(tmp_path), MissionClock(1, 0, 0.0), no_engine, "run")
    files = []
    for number, keys in enumerate(((1, 2), (3, 4), (2,))):
        plan = lake.plan_landing(table, lake.head(table), [SegmentRef("radar", f"{number}.seg", "0" * 64, 1, 1)])
        lake.replace(plan, tracks(*((key, 1, 0.5) for key in keys)))
        files.append(set(lake.log(table).live_files()["path"].to_pylist()))
    assert len(files[0] & files[1]) == 1, "the first file is kept"
    assert files[1] - files[0] <= files[2] and not files[0] & files[2], "then only the second"
    assert facts(lake.log(table).rows().sort_by("norad_id")) == [(1, 1, 0.5), (2, 3, 0.5), (3, 2, 0.5), (4, 2, 0.5)]


def test_the_rows_that_a_commit_replaces_are_those_of_its_plan_whatever_came_since_mutant_7(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake")
    commit(lake, TRACKS, [{"norad_id": 1}])
    plan = plan_windows(TRACKS, lake.head(TRACKS), (), now_ns=1, run_id="run")
    foreign = rows_of(TRACKS, [{"norad_id": 2, COMMIT_SEQUENCE: 1}])
    write_deltalake(lake.log(TRACKS).uri, foreign, mode="append")
    assert lake.current_rows(plan).column("norad_id").to_pylist() == [1]
    later = plan_windows(TRACKS, lake.head(TRACKS), (), now_ns=1, run_id="run")
    assert sorted(lake.current_rows(later).column("norad_id").to_pylist()) == [1, 2]
