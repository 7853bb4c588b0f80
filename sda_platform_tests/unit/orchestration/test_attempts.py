"""Attempts count for their cause: another batch waits too, and a job that fails leaves its pool to others."""

from collections.abc import Iterator

import dagster as dg
import pytest

from sda_platform.orchestration.attempts import Attempts, FailureStreak, unfinished_run_of
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS, ORBIT_DETERMINATION
from sda_platform_tests.support.run_records import failed_run, recorded_run

BROADCAST = "SparkException: Could not execute broadcast in 300 secs. You can set"


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def attempts(instance: dg.DagsterInstance, batch: str) -> Attempts:
    return Attempts.of(instance, CATALOG_TO_ALERTS, batch)


def fail(instance: dg.DagsterInstance, number: int, reason: str = BROADCAST, disposition: str = "permanent") -> str:
    return failed_run(
        instance,
        CATALOG_TO_ALERTS,
        f"{reason} {number}",
        disposition,
        tags={"sda/batch": f"b{number}", "sda/attempt": "1"},
    )


def test_failures_for_one_cause_are_attempts_of_one_row_whatever_the_batch(instance: dg.DagsterInstance) -> None:
    for number in range(15):
        fail(instance, number)
    request = attempts(instance, "another batch").next_run(CATALOG_TO_ALERTS)
    assert request.run_key == "another batch:16"
    assert request.tags["sda/attempt"] == "16"


def test_after_three_failures_alike_another_batch_waits_and_says_why(instance: dg.DagsterInstance) -> None:
    fail(instance, 1), fail(instance, 2)
    ended_s = FailureStreak.of(instance, CATALOG_TO_ALERTS.name).ended_s
    assert attempts(instance, "x").refusal(ended_s) is None
    fail(instance, 3)
    refusal = attempts(instance, "x").refusal(FailureStreak.of(instance, CATALOG_TO_ALERTS.name).ended_s)
    assert refusal is not None and "3 runs in a row failed alike: another one in" in refusal
    assert attempts(instance, "x").refusal(ended_s + 3600.0) is None


def test_another_cause_or_a_success_begins_the_count_anew(instance: dg.DagsterInstance) -> None:
    for number in range(4):
        fail(instance, number)
    fail(instance, 4, "OSError: [Errno 28] No space left on device", "transient")
    streak = FailureStreak.of(instance, CATALOG_TO_ALERTS.name)
    assert (streak.runs, streak.alike) == (5, 1)
    recorded_run(instance, CATALOG_TO_ALERTS, dg.DagsterRunStatus.SUCCESS)
    assert FailureStreak.of(instance, CATALOG_TO_ALERTS.name) == FailureStreak()


def test_a_long_failing_run_leaves_the_pool_as_long_to_others() -> None:
    assert FailureStreak(5, 5, "r", BROADCAST, took_s=330.0).rest_s() == 330.0
    assert FailureStreak(5, 5, "r", BROADCAST, took_s=5000.0).rest_s() == 900.0
    assert FailureStreak(2, 2, "r", BROADCAST, took_s=330.0).rest_s() == 0.0
    assert FailureStreak(50, 50, "r", "SubscriberUnavailable: away", took_s=9.0).rest_s() == 0.0


def test_a_killed_worker_counts_too(instance: dg.DagsterInstance) -> None:
    for _ in range(116):
        recorded_run(instance, CATALOG_TO_ALERTS, dg.DagsterRunStatus.FAILURE)
    streak = FailureStreak.of(instance, CATALOG_TO_ALERTS.name)
    assert (streak.reason, streak.alike) == ("its worker was killed", 50), "bounded by what is looked at"


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTED])
def test_a_schedule_stands_back_for_its_own_job_and_not_for_its_pool(
    instance: dg.DagsterInstance, status: dg.DagsterRunStatus
) -> None:
    recorded_run(instance, CATALOG_TO_ALERTS, dg.DagsterRunStatus.STARTED)
    assert unfinished_run_of(instance, ORBIT_DETERMINATION) is None
    own = recorded_run(instance, ORBIT_DETERMINATION, status)
    assert unfinished_run_of(instance, ORBIT_DETERMINATION) == own
