"""A red table: it stays red, nothing reads past its bad commit in any job, and two remedies end that."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import sda_platform.definitions  # noqa: F401  # declares what the tables promise
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.errors import InvariantError, TableIsRed
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef, TableWindow
from sda_platform.lake.verdicts import Position, TableVerdict
from sda_platform.observability.red_tables import acknowledge, red_tables
from sda_platform.orchestration.dispositions import Disposition, disposition_of
from sda_platform.orchestration.table_checks import promise_result, review_declared
from sda_platform.recovery import review as reviewing
from sda_platform_tests.support.delta_tables import commit, commit_file, lake_at, lose_rows

EXACTLY_ONCE = ("chain", "keys", "balance")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_at(tmp_path, reads_unverified=False)


def land(lake: Lake, name: str, *, rows: int = 1, promised: int = 1) -> None:
    """One landing: a segment with ``promised`` records, of which ``rows`` are stored."""
    stored: list[dict[str, Any]] = [
        {"segment_sha256": name, "segment_name": name, "record_number": n, "received_time_ns": 10 + n}
        for n in range(rows)
    ]
    commit(lake, RAW_RECORDS, stored, segments=[SegmentRef("radar", name, name, 10, promised)])


def land_more(lake: Lake, count: int) -> None:
    for n in range(count):
        land(lake, f"later {n}")


def review(lake: Lake) -> TableVerdict:
    return review_declared(lake, RAW_RECORDS)


def consumable(lake: Lake) -> tuple[int, int]:
    window = lake.plan(OBSERVATIONS).window(RAW_RECORDS)
    return window.after_sequence, window.upto_sequence


def consume(lake: Lake) -> None:
    """Commit what `observations` would consume."""
    window = lake.plan(OBSERVATIONS).window(RAW_RECORDS)
    commit(lake, OBSERVATIONS, windows=[window])


def verdict_file(lake: Lake) -> Path:
    return Path(lake.uri) / "_verdicts" / "raw_records.json"


@pytest.mark.parametrize("landings", [1, 25])
def test_a_red_table_stays_red_however_many_commits_follow_spec_80(lake: Lake, landings: int) -> None:
    land(lake, "sound")
    land(lake, "bad", rows=1, promised=2)
    for n in range(landings):
        review(lake)
        land(lake, f"later {n}")
    verdict = review(lake)
    (finding,) = verdict.red
    assert (finding.sequence, finding.problems) == (2, {"balance": ["radar/bad: 2 records landed, 1 rows stored"]})
    assert verdict.verified.sequence == landings + 2
    assert consumable(lake) == (0, 1), "what came before flows"
    consume(lake)
    with pytest.raises(
        TableIsRed, match=r"observations .* raw_records sequence 2: balance: radar/bad: 2 records"
    ) as told:
        lake.plan(OBSERVATIONS)
    assert "Repair its rows" in str(told.value) and "sda lake accept raw_records" in str(told.value)
    assert disposition_of(told.value) is Disposition.PERMANENT


def test_a_red_table_is_red_in_the_job_that_did_not_write_it(lake: Lake) -> None:
    """The catalogue's job writes dead letters too, from records that another job landed."""
    land(lake, "bad", rows=1, promised=2)
    review(lake)
    with pytest.raises(TableIsRed, match="dead_letters does not read on: raw_records sequence 1"):
        lake.plan(replace(DEAD_LETTERS, consumes=(RAW_RECORDS,), reads=()))


def test_a_commit_that_no_check_has_seen_is_not_read(lake: Lake) -> None:
    """Another job may plan between a commit and its check."""
    land(lake, "first")
    assert consumable(lake) == (0, 0)
    review(lake)
    land(lake, "second", rows=1, promised=2)
    assert consumable(lake) == (0, 1)


def test_what_is_observed_whole_is_observed_as_it_was_before_the_red_commit(lake: Lake) -> None:
    land(lake, "sound")
    land(lake, "bad", rows=1, promised=2)
    review(lake)
    snapshot = lake.plan(replace(OBSERVATIONS, consumes=(), reads=(RAW_RECORDS,))).snapshot(RAW_RECORDS)
    assert (snapshot.sequence, snapshot.version) == (1, 0)


def test_a_table_that_was_read_beyond_a_red_commit_is_read_no_further(lake: Lake) -> None:
    land(lake, "sound")
    land(lake, "rots", rows=2, promised=2)
    review(lake)
    consume(lake)
    lose_rows(lake, RAW_RECORDS, "record_number = 1")
    land(lake, "later")
    assert [found.sequence for found in review(lake).red] == [2], "rows that were lost after their verification"
    with pytest.raises(TableIsRed):
        lake.plan(OBSERVATIONS)


def test_an_acknowledgement_lets_consumers_read_on_and_stays_visible(lake: Lake) -> None:
    land(lake, "bad", rows=1, promised=2)
    land_more(lake, 3)
    review(lake)
    (accepted,) = acknowledge(lake, "raw_records", "the sensor lost it")
    assert accepted.sequence == 1 and "the sensor lost it" in (accepted.acknowledged or "")
    assert consumable(lake) == (0, 4)
    result = promise_result(RAW_RECORDS, "exactly_once", review(lake), EXACTLY_ONCE)
    assert (result.passed, result.severity.value) == (False, "WARN")
    assert "the sensor lost it" in str(result.metadata["acknowledged"])
    assert [each.acknowledged for each in red_tables(lake)] == [accepted.acknowledged]
    assert acknowledge(lake, "raw_records", "") == ()


def test_an_acknowledgement_is_for_exactly_what_was_shown(lake: Lake) -> None:
    land(lake, "bad", rows=2, promised=3)
    review(lake)
    acknowledge(lake, "raw_records", "")
    land(lake, "bad too", rows=1, promised=2)
    assert [found.sequence for found in review(lake).red] == [2], "a later finding is red again"
    assert consumable(lake) == (0, 1)
    lose_rows(lake, RAW_RECORDS, "record_number = 1")
    assert [found.sequence for found in review(lake).red] == [1, 2], "and so is one that grew worse"


def test_a_second_acknowledgement_leaves_the_first_in_force_mutant_8(lake: Lake) -> None:
    land(lake, "bad", rows=2, promised=3)
    review(lake)
    acknowledge(lake, "raw_records", "known since Monday")
    land(lake, "bad too", rows=1, promised=2)
    review(lake)
    assert len(acknowledge(lake, "raw_records", "known since Tuesday")) == 1
    assert [found.sequence for found in review(lake).red] == []
    assert consumable(lake) == (0, 2)
    reasons = {each.reason for each in lake.verdicts.acknowledgements("raw_records").values()}
    assert reasons == {"known since Monday", "known since Tuesday"}


def test_a_repair_turns_the_table_green_and_lets_it_flow(lake: Lake) -> None:
    land(lake, "bad", rows=3, promised=2)
    land_more(lake, 8)
    assert review(lake).red
    lose_rows(lake, RAW_RECORDS, "record_number = 2")
    verdict = review(lake)
    assert verdict.findings == ()
    assert consumable(lake) == (0, 9)
    assert promise_result(RAW_RECORDS, "exactly_once", verdict, EXACTLY_ONCE).passed


@pytest.mark.parametrize("text", [None, "", "{torn", "[]", '{"schema_version": 99}', '{"schema_version": 1}'])
def test_a_verdict_that_is_lost_or_damaged_is_derived_again_and_nothing_is_read_meanwhile(
    lake: Lake, text: str | None
) -> None:
    land(lake, "sound")
    land(lake, "bad", rows=1, promised=2)
    land_more(lake, 7)
    before = review(lake)
    if text is None:
        verdict_file(lake).unlink()
    else:
        verdict_file(lake).write_text(text)
    assert consumable(lake) == (0, 0)
    assert review(lake) == before


def test_an_acknowledgement_outlives_the_verdict(lake: Lake) -> None:
    land(lake, "bad", rows=1, promised=2)
    review(lake)
    acknowledge(lake, "raw_records", "")
    verdict_file(lake).unlink()
    assert review(lake).red == []


def test_a_table_that_was_replaced_is_verified_from_its_beginning(lake: Lake, tmp_path: Path) -> None:
    land_more(lake, 3)
    review(lake)
    (tmp_path / "raw_records").rename(tmp_path / "moved away")
    land(lake, "bad", rows=1, promised=2)
    land_more(lake, 4)
    assert consumable(lake) == (0, 0)
    assert [found.sequence for found in review(lake).red] == [1]


class Killed(BaseException):
    """The process is killed here."""


@pytest.mark.parametrize("write", [1, 2, 3])
def test_a_review_that_is_killed_at_any_of_its_writes_is_finished_by_the_next(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    monkeypatch.setattr(reviewing, "SPAN_COMMITS", 2)
    land(lake, "sound")
    land(lake, "bad", rows=1, promised=2)
    land_more(lake, 4)
    written = 0
    real = lake.verdicts.write

    def dying(verdict: TableVerdict) -> None:
        nonlocal written
        written += 1
        if written == write:
            raise Killed
        real(verdict)

    monkeypatch.setattr(lake.verdicts, "write", dying)
    with pytest.raises(Killed):
        review(lake)
    assert consumable(lake)[1] <= 1, "nothing behind the bad commit is read"
    monkeypatch.setattr(lake.verdicts, "write", real)
    verdict = review(lake)
    assert ([f.sequence for f in verdict.red], verdict.verified.sequence) == ([2], 6)


def test_of_two_jobs_that_review_at_once_the_slower_one_lets_nothing_flow(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slower began before the bad commit and writes last: what it forgets is verified again, not read."""
    land(lake, "sound")
    real = lake.verdicts.write
    overtaken: list[TableVerdict] = []

    def slow(verdict: TableVerdict) -> None:
        monkeypatch.setattr(lake.verdicts, "write", real)
        land(lake, "bad", rows=1, promised=2)
        overtaken.append(review(lake))
        real(verdict)

    monkeypatch.setattr(lake.verdicts, "write", slow)
    slower = review(lake)
    assert [f.sequence for f in overtaken[0].red] == [2] and slower.red == []
    assert consumable(lake) == (0, 1)
    assert [f.sequence for f in review(lake).red] == [2]


def test_a_review_costs_by_what_is_new(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def counting(_store: Lake, _log: Any, commits: Any) -> list[str]:
        seen.extend(each.sequence for each in commits)
        return []

    monkeypatch.setattr(reviewing, "SPAN_COMMITS", 10)
    land_more(lake, 25)
    reviewing.review(lake, RAW_RECORDS, [counting])
    assert sorted(seen) == list(range(1, 26)), "in spans, each commit once"
    seen.clear()
    land(lake, "new")
    reviewing.review(lake, RAW_RECORDS, [counting])
    assert sorted(seen) == list(range(26 - reviewing.NEWEST_AGAIN, 27))


def test_of_a_flood_of_red_commits_no_more_than_a_bound_is_looked_for(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reviewing, "MOST_RED", 2)
    monkeypatch.setattr(reviewing, "SPAN_COMMITS", 2)
    for n in range(7):
        land(lake, f"bad {n}", rows=1, promised=2)
    assert [f.sequence for f in review(lake).red] == [1, 2]
    acknowledge(lake, "raw_records", "known")
    assert consumable(lake) == (0, 2), "what was not looked at is not read"
    assert [f.sequence for f in review(lake).red] == [3, 4]


def test_each_promise_is_named_in_the_check(lake: Lake) -> None:
    land(lake, "sound")
    commit(lake, RAW_RECORDS, windows=[], previous_sha256="of another history")
    bad = {"segment_sha256": "x", "segment_name": "x", "record_number": 0, "received_time_ns": 10}
    commit(lake, RAW_RECORDS, [bad, bad], segments=[SegmentRef("radar", "x", "x", 10, 1)])
    result = promise_result(RAW_RECORDS, "exactly_once", review(lake), EXACTLY_ONCE)
    facts = {name: value.value for name, value in result.metadata.items()}
    assert facts["broken_promises"] == ["chain", "keys", "balance"]
    assert facts["first_bad_sequence"] == 2
    assert (result.passed, result.severity.value) == (False, "ERROR")


def test_a_verdict_survives_its_json(lake: Lake) -> None:
    land(lake, "bad", rows=1, promised=2)
    verdict = review(lake)
    assert lake.verdicts.read(lake.log(RAW_RECORDS)) == verdict
    assert json.loads(verdict_file(lake).read_text())["verified"]["sequence"] == 1
    assert TableVerdict("t").readable == Position()


def test_a_window_that_was_consumed_before_there_were_verdicts_stays_consumed(lake: Lake) -> None:
    """A platform that was updated has consumed commits without a verdict: that is no restored table."""
    land_more(lake, 3)
    head = lake.log(RAW_RECORDS).head()
    window = TableWindow(RAW_RECORDS.name, 0, 3, -1, head.commit_version, head.manifest_sha256)
    commit(lake, OBSERVATIONS, windows=[window])
    assert consumable(lake) == (3, 3)


def test_where_the_last_readable_commit_was_cleaned_from_the_log_no_plan_is_made(lake: Lake) -> None:
    """A table may be red for longer than its log is kept; a plan would record a window without an end."""
    land(lake, "sound")
    land(lake, "bad", rows=1, promised=2)
    review(lake)
    DeltaTable(lake.log(RAW_RECORDS).uri).create_checkpoint()
    commit_file(lake, RAW_RECORDS, 0).unlink()
    assert [found.sequence for found in review(lake).red] == [2]
    with pytest.raises(InvariantError, match="commit 1, up to which it may be read, was cleaned from the log"):
        lake.plan(OBSERVATIONS)
    acknowledge(lake, "raw_records", "")
    assert consumable(lake) == (0, 2)
