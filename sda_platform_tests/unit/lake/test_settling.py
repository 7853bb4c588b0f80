"""Settling a commit: only the log tells whether our rows landed, whatever the engine said."""

from collections.abc import Callable

import pytest

from sda_platform import faults
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.checkpoint import Checkpoint, SegmentRef
from sda_platform.lake.commit import Receipt, settle
from sda_platform.lake.errors import CommitConflict, InvariantError
from sda_platform.lake.planning import Plan, plan_segments
from sda_platform_tests.in_memory_log import EngineLost, InMemoryLog

SEGMENT = SegmentRef("radar", "a", "a" * 64, 1, 1)
ROWS = ["row"]


def planned(log: InMemoryLog, run_id: str = "ours") -> Plan:
    return plan_segments(RAW_RECORDS, log.head(), [SEGMENT], now_ns=1, run_id=run_id)


def settled(log: InMemoryLog, plan: Plan, write: Callable[[Checkpoint], None], nonce: str = "our nonce") -> Receipt:
    checkpoint = plan.checkpoint(nonce)
    return settle(log, plan, checkpoint, lambda: write(checkpoint))  # type: ignore[arg-type]


def another_commits(log: InMemoryLog) -> None:
    log.write(planned(log, "theirs").checkpoint("their nonce"), ["their row"])


def test_a_commit_that_landed_is_proved_by_the_log() -> None:
    log = InMemoryLog()
    receipt = settled(log, planned(log), lambda c: log.write(c, ROWS))
    assert (receipt.commit, receipt.rows_written, log.rows) == (log.head().commit, 1, ROWS)


def test_an_error_after_the_rows_landed_is_a_success() -> None:
    log = InMemoryLog()

    def write(checkpoint: Checkpoint) -> None:
        log.write(checkpoint, ROWS)
        raise EngineLost

    assert settled(log, planned(log), write).commit == log.head().commit


def test_an_error_before_the_rows_landed_is_that_error() -> None:
    log = InMemoryLog()

    def write(checkpoint: Checkpoint) -> None:
        raise EngineLost("no route")

    with pytest.raises(EngineLost, match="no route"):
        settled(log, planned(log), write)
    assert log.rows == []


def test_a_silent_skip_is_a_conflict_that_names_the_winner() -> None:
    log = InMemoryLog()
    plan = planned(log)
    another_commits(log)
    with pytest.raises(CommitConflict, match="raw_records: run theirs committed sequence 1 first; plan again"):
        settled(log, plan, lambda c: log.write(c, ROWS))
    assert log.rows == ["their row"]


def test_losing_a_race_is_a_conflict_caused_by_the_engines_error() -> None:
    log = InMemoryLog()
    plan = planned(log)
    another_commits(log)
    with pytest.raises(CommitConflict) as raised:
        settled(log, plan, lambda c: log.write(c, ROWS, began_at=0))
    assert type(raised.value.__cause__).__name__ == "ConcurrentTransaction"


def test_success_without_a_trace_in_the_log_is_an_invariant_error() -> None:
    log = InMemoryLog()
    with pytest.raises(InvariantError, match="reported success for sequence 1, but the log does not have it"):
        settled(log, planned(log), lambda c: None)


def test_the_same_run_repeated_with_a_new_nonce_is_a_conflict_not_a_second_commit() -> None:
    log = InMemoryLog()
    plan = planned(log)
    settled(log, plan, lambda c: log.write(c, ROWS))
    with pytest.raises(CommitConflict, match="run ours committed sequence 1 first"):
        settled(log, plan, lambda c: log.write(c, ROWS), nonce="another nonce")
    assert log.rows == ROWS


def test_a_kill_is_not_swallowed() -> None:
    log = InMemoryLog()

    def write(checkpoint: Checkpoint) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        settled(log, planned(log), write)


def test_a_receipt_means_that_the_rows_are_on_disk_spec_97() -> None:
    log = InMemoryLog()
    receipt = settled(log, planned(log), lambda c: log.write(c, ROWS))
    assert log.durable_version == receipt.commit.version == 0


def test_every_step_of_a_commit_is_a_fault_point() -> None:
    log, reached = InMemoryLog(), []
    faults.watch(lambda point: reached.append((point, len(log.rows), log.durable_version)))
    try:
        settled(log, planned(log), lambda c: log.write(c, ROWS))
    finally:
        faults.watch(None)
    table = planned(log).table.name
    assert reached == [
        (f"commit.planned:{table}", 0, -1),
        (f"commit.sent:{table}", 1, -1),
        (f"commit.landed:{table}", 1, -1),
        (f"commit.synced:{table}", 1, 0),
    ]


def test_a_commit_that_lands_after_its_client_gave_up_is_found_by_the_next_plan_spec_86() -> None:
    log = InMemoryLog()
    slow = planned(log).checkpoint("our nonce")

    def write(checkpoint: Checkpoint) -> None:
        raise EngineLost("timed out")

    with pytest.raises(EngineLost):
        settled(log, planned(log), write)
    log.write(slow, ROWS)  # the engine had lost its client, not its work
    assert log.head().sequence == 1
    with pytest.raises(CommitConflict):
        settled(log, planned_from_genesis(), lambda c: log.write(c, ROWS), nonce="second nonce")
    assert log.rows == ROWS


def test_a_commit_that_lands_after_its_plan_was_carried_out_again_is_skipped_spec_86() -> None:
    log = InMemoryLog()
    slow = planned(log).checkpoint("our nonce")
    settled(log, planned(log), lambda c: log.write(c, ROWS), nonce="second nonce")
    log.write(slow, ROWS)
    assert log.rows == ROWS


def planned_from_genesis() -> Plan:
    return planned(InMemoryLog())
