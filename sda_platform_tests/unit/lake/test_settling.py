"""Settling a commit: only the log shows whether our rows landed, whatever the engine said."""

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from sda_platform import failpoints
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.commit import CommitReceipt, settle
from sda_platform.lake.errors import CommitConflict, InvariantError
from sda_platform.lake.log_commits import Head
from sda_platform.lake.manifest import CommitManifest, SegmentRef
from sda_platform.lake.planning import Plan, plan_segments
from sda_platform_tests.campaign.scheduling import ConnectionLost
from sda_platform_tests.campaign.simulated_engine import HeldTable
from sda_platform_tests.support.delta_tables import rows_of

SEGMENT = SegmentRef("radar", "a", "a" * 64, 1, 1)


def row(name: str) -> pa.Table:
    return rows_of(RAW_RECORDS, [{"segment_name": name}])


OURS, THEIRS = row("ours"), row("theirs")


def held(log: HeldTable) -> list[str]:
    return list(log.rows(["segment_name"]).column("segment_name").to_pylist())


def planned(log: HeldTable, run_id: str = "ours") -> Plan:
    return plan_segments(RAW_RECORDS, log.head(), [SEGMENT], now_ns=1, run_id=run_id)


def settled(
    log: HeldTable, plan: Plan, write: Callable[[CommitManifest], None], nonce: str = "our nonce"
) -> CommitReceipt:
    manifest = plan.manifest(nonce)
    return settle(log, plan, manifest, lambda: write(manifest))


def another_commits(log: HeldTable) -> None:
    log.write(planned(log, "theirs").manifest("their nonce"), THEIRS)


def test_a_commit_that_landed_is_proved_by_the_log() -> None:
    log = HeldTable(RAW_RECORDS)
    receipt = settled(log, planned(log), lambda c: log.write(c, OURS))
    assert (receipt.commit, receipt.rows_written, held(log)) == (log.head().commit, 1, ["ours"])


def test_an_error_after_the_rows_landed_is_a_success() -> None:
    log = HeldTable(RAW_RECORDS)

    def write(manifest: CommitManifest) -> None:
        log.write(manifest, OURS)
        raise ConnectionLost

    assert settled(log, planned(log), write).commit == log.head().commit


def test_an_error_before_the_rows_landed_is_that_error() -> None:
    log = HeldTable(RAW_RECORDS)

    def write(manifest: CommitManifest) -> None:
        raise ConnectionLost("no route")

    with pytest.raises(ConnectionLost, match="no route"):
        settled(log, planned(log), write)
    assert held(log) == []


def test_a_silent_skip_is_a_conflict_that_names_the_winner() -> None:
    log = HeldTable(RAW_RECORDS)
    plan = planned(log)
    another_commits(log)
    with pytest.raises(CommitConflict, match="raw_records: run theirs committed sequence 1 first; plan again"):
        settled(log, plan, lambda c: log.write(c, OURS))
    assert held(log) == ["theirs"]


def test_losing_a_race_is_a_conflict_caused_by_the_engines_error() -> None:
    log = HeldTable(RAW_RECORDS)
    plan, began = planned(log), log.state()
    another_commits(log)
    with pytest.raises(CommitConflict) as raised:
        settled(log, plan, lambda c: log.write(c, OURS, began=began))
    assert type(raised.value.__cause__).__name__ == "ConcurrentTransaction"


def test_success_without_a_trace_in_the_log_is_an_invariant_error() -> None:
    log = HeldTable(RAW_RECORDS)
    with pytest.raises(InvariantError, match="reported success for sequence 1, but the log does not have it"):
        settled(log, planned(log), lambda c: None)


def test_the_same_run_repeated_with_a_new_nonce_is_a_conflict_not_a_second_commit() -> None:
    log = HeldTable(RAW_RECORDS)
    plan = planned(log)
    settled(log, plan, lambda c: log.write(c, OURS))
    with pytest.raises(CommitConflict, match="run ours committed sequence 1 first"):
        settled(log, plan, lambda c: log.write(c, OURS), nonce="another nonce")
    assert held(log) == ["ours"]


def test_a_kill_is_not_swallowed() -> None:
    log = HeldTable(RAW_RECORDS)

    def write(manifest: CommitManifest) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        settled(log, planned(log), write)


def test_a_receipt_means_that_the_rows_are_on_disk_spec_97() -> None:
    log = HeldTable(RAW_RECORDS)
    receipt = settled(log, planned(log), lambda c: log.write(c, OURS))
    log.disk.lose_power("drop", random.Random(1))
    assert log.head().commit == receipt.commit
    assert held(log) == ["ours"]


def test_commits_of_others_below_ours_are_on_disk_with_it_spec_97_hole_23() -> None:
    """Between plan and commit another writer may commit: without that version Delta cannot read ours."""
    log = HeldTable(RAW_RECORDS)
    settled(log, planned(log), lambda c: log.write(c, OURS))

    def write(manifest: CommitManifest) -> None:
        log.write_foreign(THEIRS)
        log.write(manifest, OURS)

    assert settled(log, planned(log), write).commit.version == 2
    log.disk.lose_power("drop", random.Random(1))
    assert (log.head().version, held(log)) == (2, ["ours", "theirs", "ours"])


def test_every_step_of_a_commit_is_a_fault_point() -> None:
    log, reached = HeldTable(RAW_RECORDS), []
    failpoints.watch(lambda point: reached.append((point, log.head().sequence, is_durable(log))))
    try:
        settled(log, planned(log), lambda c: log.write(c, OURS))
    finally:
        failpoints.watch(None)
    table = RAW_RECORDS.name
    assert reached == [
        (f"commit.planned:{table}", 0, False),
        (f"commit.sent:{table}", 1, False),
        (f"commit.landed:{table}", 1, False),
        (f"commit.synced:{table}", 1, True),
    ]


def test_a_commit_that_lands_after_its_client_gave_up_is_found_by_the_next_plan_spec_86() -> None:
    log = HeldTable(RAW_RECORDS)
    slow = planned(log).manifest("our nonce")

    def write(manifest: CommitManifest) -> None:
        raise ConnectionLost("timed out")

    with pytest.raises(ConnectionLost):
        settled(log, planned(log), write)
    log.write(slow, OURS)  # the engine had lost its client, not its work
    assert log.head().sequence == 1
    with pytest.raises(CommitConflict):
        settled(log, planned_from_genesis(), lambda c: log.write(c, OURS), nonce="second nonce")
    assert held(log) == ["ours"]


def test_a_commit_that_lands_after_its_plan_was_carried_out_again_is_skipped_spec_86() -> None:
    log = HeldTable(RAW_RECORDS)
    slow = planned(log).manifest("our nonce")
    settled(log, planned(log), lambda c: log.write(c, OURS), nonce="second nonce")
    log.write(slow, OURS)
    assert held(log) == ["ours"]


def planned_from_genesis() -> Plan:
    return plan_segments(RAW_RECORDS, Head(), [SEGMENT], now_ns=1, run_id="ours")


def is_durable(log: HeldTable) -> bool:
    return any(path.endswith(".json") for path in log.disk.durable)
