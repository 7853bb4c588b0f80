"""Which commits a replay makes again, and what it finds where the live table differs: no engine is needed for that."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.code_version import code_version
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.errors import NotReplayable, VersionGone
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform.replay.comparison import compare
from sda_platform.replay.history import EVERY_COMMIT, Span, history
from sda_platform.replay.replaying_lake import ReplayingLake
from sda_platform_tests.support.delta_tables import commit, genesis_window, lake_at, lose_rows, next_window
from sda_platform_tests.support.segments import after


@pytest.fixture
def live(tmp_path: Path) -> Lake:
    """A table of three commits, a minute apart, of two rows each."""
    return lived_in(tmp_path / "live")


def lived_in(root: Path, **forged: Any) -> Lake:
    lake, window = lake_at(root), genesis_window(RAW_RECORDS)
    for sequence in (1, 2, 3):
        rows = [{"observation_id": f"{sequence}-{n}", "sensor_time_ns": after(n)} for n in (0, 1)]
        commit(lake, OBSERVATIONS, rows, windows=[window], as_of_ns=after(60 * sequence), nonce=str(sequence), **forged)
        window = next_window(window)
    return lake


def sequences(lake: Lake, span: Span) -> list[int]:
    found = history(lake.log(OBSERVATIONS), span)
    return [c.manifest.sequence for c in found.commits] if found else []


def verdict(live: Lake, shadow: Lake, table: Table = OBSERVATIONS, span: Span = EVERY_COMMIT) -> list[str]:
    replayed = history(live.log(table), span)
    assert replayed is not None
    return list(compare(live.log(table), shadow.log(table), replayed).differences)


@pytest.mark.parametrize(
    ("span", "chosen"),
    [
        (EVERY_COMMIT, [1, 2, 3]),
        (Span(from_sequence=2), [2, 3]),
        (Span(to_sequence=2), [1, 2]),
        (Span(2, 2), [2]),
        (Span(since_ns=after(120)), [2, 3]),
        (Span(until_ns=after(120)), [1]),
        (Span(from_sequence=2, until_ns=after(180)), [2]),
        (Span(from_sequence=4), []),
    ],
)
def test_a_span_chooses_by_sequence_and_by_mission_time(live: Lake, span: Span, chosen: list[int]) -> None:
    assert sequences(live, span) == chosen


def test_the_predecessor_of_the_first_commit_is_the_one_before_the_span(live: Lake) -> None:
    found = history(live.log(OBSERVATIONS), Span(2, 2))
    assert found is not None and not found.reaches_head
    (second,) = found.commits
    before = found.predecessor(second)
    assert before is not None and before.manifest.sequence == 1
    whole = history(live.log(OBSERVATIONS), EVERY_COMMIT)
    assert whole is not None and whole.reaches_head and whole.predecessor(whole.commits[0]) is None


def test_a_gap_in_the_log_is_named_and_what_lies_before_and_after_can_be_replayed(live: Lake) -> None:
    log = Path(live.log(OBSERVATIONS).uri) / "_delta_log"
    empty_of_ours = '{"commitInfo":{"timestamp":0,"operation":"WRITE"}}\n'
    (log / f"{1:020d}.json").write_text(empty_of_ours)
    with pytest.raises(
        NotReplayable, match="after sequence 1 the next commit in the log is 3; replay up to 1, or from 4"
    ):
        sequences(live, EVERY_COMMIT)
    with pytest.raises(NotReplayable, match="does not hold sequence 2, on which 3 builds"):
        sequences(live, Span(from_sequence=3))
    assert sequences(live, Span(to_sequence=1)) == [1]


def test_equal_histories_are_identical_and_have_one_digest__F_replay(live: Lake, tmp_path: Path) -> None:
    again = lived_in(tmp_path / "again")
    assert verdict(live, again) == []
    DeltaTable(again.log(OBSERVATIONS).uri).optimize.compact()
    replayed = history(live.log(OBSERVATIONS), EVERY_COMMIT)
    assert replayed is not None
    digests = {compare(live.log(OBSERVATIONS), each.log(OBSERVATIONS), replayed).digest for each in (live, again)}
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("forged", "told"),
    [
        ({"watermarks": {"radar": 7}}, "sequence 1: watermarks: recorded {}, replayed {'radar': 7}"),
        ({"counts": {"late": 1}}, "sequence 1: counts: recorded {}, replayed {'late': 1}"),
    ],
)
def test_a_watermark_or_count_that_comes_out_otherwise_is_named(
    live: Lake, tmp_path: Path, forged: dict[str, Any], told: str
) -> None:
    assert verdict(live, lived_in(tmp_path / "again", **forged))[0] == told


def test_other_code_alone_is_no_difference_and_is_named_with_each_that_there_is(live: Lake, tmp_path: Path) -> None:
    first = Span(to_sequence=1)
    assert verdict(live, lived_in(tmp_path / "again", code_version="0.2.0+abc"), span=first) == []
    other = lived_in(tmp_path / "other", code_version="0.2.0+abc", watermarks={"radar": 7})
    lose_rows(other, OBSERVATIONS, "observation_id = '1-1'")
    origin = "(made by unknown code, replayed by 0.2.0+abc)"
    told = verdict(live, other, span=first)
    assert told[0] == f"sequence 1 {origin}: watermarks: recorded {{}}, replayed {{'radar': 7}}"
    assert told[-1].startswith(f"sequence 1 {origin}: 1 rows are too many or unfounded")


def test_a_lost_a_doubled_and_an_invented_row_are_named_by_sequence_and_key(live: Lake, tmp_path: Path) -> None:
    again = lived_in(tmp_path / "again")
    lose_rows(live, OBSERVATIONS, "observation_id = '2-1'")
    commit(live, OBSERVATIONS, [{"observation_id": "3-0", "sensor_time_ns": after(0), "commit_sequence": 3}])
    DeltaTable(live.log(OBSERVATIONS).uri).update(updates={"sensor_time_ns": "5"}, predicate="observation_id = '1-0'")
    told = "\n".join(verdict(live, again, span=Span(to_sequence=3)))
    assert "sequence 2: 1 rows are missing, such as observation_id='2-1'" in told
    assert "sequence 3: 1 rows are too many or unfounded, such as observation_id='3-0'" in told
    assert (
        f"sequence 1: 1 rows differ in sensor_time_ns, such as observation_id='1-0': stored 5, replayed {after(0)}"
        in told
    )


def test_a_row_of_a_sequence_that_was_never_committed_is_found(live: Lake, tmp_path: Path) -> None:
    DeltaTable(live.log(OBSERVATIONS).uri).update(updates={"commit_sequence": "9"}, predicate="observation_id = '3-0'")
    told = verdict(live, lived_in(tmp_path / "again"))
    assert told[0] == "1 rows carry a sequence that was never committed"


def test_a_commit_of_a_platform_that_runs_meanwhile_is_no_difference(live: Lake, tmp_path: Path) -> None:
    replayed = history(live.log(OBSERVATIONS), EVERY_COMMIT)
    assert replayed is not None and replayed.reaches_head
    again, window = lived_in(tmp_path / "again"), genesis_window(RAW_RECORDS)
    for _ in replayed.commits:
        window = next_window(window)
    commit(live, OBSERVATIONS, [{"observation_id": "later", "sensor_time_ns": 0}], windows=[window])
    assert list(compare(live.log(OBSERVATIONS), again.log(OBSERVATIONS), replayed).differences) == []


def test_a_commit_that_the_replay_did_not_make_is_reported(live: Lake, tmp_path: Path) -> None:
    shadow = lake_at(tmp_path / "again")
    commit(shadow, OBSERVATIONS, [])
    assert "sequence 3: the replay found nothing to commit" in verdict(live, shadow)


def test_a_version_whose_files_vacuum_removed_has_an_error_of_its_own__102(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    for name in ("old", "new"):
        commit(lake, ORBITAL_CATALOG, [{"norad_id": 5, "object_name": name}])
    log = lake.log(ORBITAL_CATALOG)
    assert log.rows(["object_name"], version=0).column("object_name").to_pylist() == ["old"]
    lose_rows(lake, ORBITAL_CATALOG, "object_name = 'old'")
    DeltaTable(log.uri).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(VersionGone, match="orbital_catalog: version 0 cannot be read any more: VACUUM removed"):
        log.rows(["object_name"], version=0)


def test_a_plan_that_asks_for_other_tables_than_were_recorded_is_refused(live: Lake, tmp_path: Path) -> None:
    replayed = history(live.log(OBSERVATIONS), EVERY_COMMIT)
    assert replayed is not None
    lake = ReplayingLake(live, OBSERVATIONS, str(tmp_path / "shadow"), replayed, replayed.commits[1])
    plan = lake.plan(OBSERVATIONS)
    assert (plan.sequence, plan.as_of_ns, plan.windows) == (2, after(120), replayed.commits[1].manifest.windows)
    recorded = replayed.commits[1].manifest
    assert plan.manifest("another nonce") == replace(recorded, code_version=code_version())
    told = "sequence 2 cannot be made again: .* made it without orbital_catalog, and also from raw_records"
    with pytest.raises(NotReplayable, match=told):
        lake.plan(replace(OBSERVATIONS, consumes=(ORBITAL_CATALOG,), reads=()))
