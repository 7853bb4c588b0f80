"""Plans: what the next commit would consume, as a pure function of the heads."""

import pytest

from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.log_commits import Commit, Head
from sda_platform.lake.manifest import GENESIS, CommitManifest, SegmentRef, TableSnapshot, TableWindow
from sda_platform.lake.planning import Plan, plan_segments, plan_windows
from sda_platform.lake.table import Table

NOW_NS = 1_000


def head_of(table: Table, sequence: int, version: int, *windows: TableWindow, as_of_ns: int = 10) -> Head:
    manifest = CommitManifest(table.name, sequence, GENESIS, as_of_ns, "run", f"nonce-{sequence}", windows)
    return Head(version, sequence, Commit(version, 0, 0, manifest))


def plan(head: Head, *upstream: tuple[Table, Head], now_ns: int = NOW_NS) -> Plan:
    return plan_windows(OBSERVATIONS, head, upstream, now_ns=now_ns, run_id="run")


def test_an_empty_table_plans_from_the_beginning_of_its_input() -> None:
    made = plan(Head(), (RAW_RECORDS, head_of(RAW_RECORDS, 3, 4)))
    assert (made.sequence, made.previous_sha256, made.base_version) == (1, GENESIS, -1)
    consumed = head_of(RAW_RECORDS, 3, 4).manifest_sha256
    assert made.windows == (TableWindow("raw_records", 0, 3, -1, 4, consumed),)
    assert not made.is_empty


def test_the_next_window_begins_where_the_last_one_ended() -> None:
    head = head_of(OBSERVATIONS, 5, 9, TableWindow("raw_records", 1, 3, 1, 4))
    upstream = head_of(RAW_RECORDS, 7, 11)
    made = plan(head, (RAW_RECORDS, upstream))
    assert made.windows == (TableWindow("raw_records", 3, 7, 4, 11, upstream.manifest_sha256),)
    assert (made.sequence, made.previous_sha256, made.base_version) == (6, head.manifest_sha256, 9)


def test_nothing_new_upstream_is_an_empty_plan() -> None:
    head = head_of(OBSERVATIONS, 5, 9, TableWindow("raw_records", 1, 3, 1, 4))
    assert plan(head, (RAW_RECORDS, head_of(RAW_RECORDS, 3, 4))).is_empty
    assert plan(Head(), (RAW_RECORDS, Head())).is_empty


def test_a_commit_that_is_not_ours_upstream_is_nothing_new() -> None:
    """OPTIMIZE raises the table's version, but brings no sequence."""
    head = head_of(OBSERVATIONS, 5, 9, TableWindow("raw_records", 1, 3, 1, 4))
    upstream = Head(version=8, sequence=3, commit=head_of(RAW_RECORDS, 3, 4).commit)
    assert plan(head, (RAW_RECORDS, upstream)).is_empty


def test_one_input_may_stand_still_while_another_moves() -> None:
    head = head_of(
        OBSERVATIONS, 1, 0, TableWindow("raw_records", 0, 3, -1, 4), TableWindow("dead_letters", 0, 2, -1, 1)
    )
    made = plan(head, (RAW_RECORDS, head_of(RAW_RECORDS, 3, 4)), (DEAD_LETTERS, head_of(DEAD_LETTERS, 3, 2)))
    assert [str(w) for w in made.windows] == ["raw_records –", "dead_letters v2"]
    assert not made.is_empty


def test_an_observed_table_is_pinned_but_does_not_trigger() -> None:
    made = plan_windows(
        OBSERVATIONS, Head(), (), now_ns=NOW_NS, run_id="run", observed=[(RAW_RECORDS, head_of(RAW_RECORDS, 3, 4))]
    )
    assert made.snapshot(RAW_RECORDS) == TableSnapshot("raw_records", 4, 3)
    assert made.is_empty


def test_as_of_never_runs_backwards() -> None:
    head = head_of(OBSERVATIONS, 1, 0, as_of_ns=5_000)
    assert plan(head, now_ns=4_999).as_of_ns == 5_000
    assert plan(head, now_ns=5_001).as_of_ns == 5_001


def test_an_input_that_was_restored_stops_the_table_loudly() -> None:
    head = head_of(OBSERVATIONS, 5, 9, TableWindow("raw_records", 1, 3, 1, 4))
    with pytest.raises(InvariantError, match="consumed raw_records up to sequence 3, but raw_records now ends at 2"):
        plan(head, (RAW_RECORDS, head_of(RAW_RECORDS, 2, 4)))


def test_two_planners_that_see_the_same_heads_make_the_same_plan() -> None:
    heads = (Head(), (RAW_RECORDS, head_of(RAW_RECORDS, 3, 4)))
    assert plan(*heads) == plan(*heads)


def test_segments_are_listed_in_one_order_however_they_were_taken() -> None:
    refs = [SegmentRef(zone, name, name * 64, 1, 1) for zone, name in (("radar", "b"), ("isl", "c"), ("radar", "a"))]
    plans = {
        plan_segments(RAW_RECORDS, Head(), order, now_ns=NOW_NS, run_id="r").segments for order in (refs, refs[::-1])
    }
    assert [[(s.zone, s.name) for s in p] for p in plans] == [[("isl", "c"), ("radar", "a"), ("radar", "b")]]


def test_what_a_plan_does_not_name_cannot_be_read_through_it() -> None:
    made = plan(Head(), (RAW_RECORDS, Head()))
    with pytest.raises(KeyError, match="the plan for observations does not consume dead_letters"):
        made.window(DEAD_LETTERS)
    with pytest.raises(KeyError, match="the plan for observations does not read raw_records"):
        made.snapshot(RAW_RECORDS)
