"""The sensor of the outbox: alerts that wait are delivered once the subscriber answers, by one run at a time."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

import sda_platform.definitions  # noqa: F401  # the packages declare there which job makes which table
from sda_platform.delivery.configured import chosen_subscriber
from sda_platform.delivery.sensors import request_delivery
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.orchestration.declarations import jobs_of
from sda_platform.orchestration.jobs import (
    ALERTS_TO_SUBSCRIBER,
    CATALOG_TO_ALERTS,
    JOBS,
    OBSERVATIONS_TO_ALERTS,
    Job,
)
from sda_platform.orchestration.retries import FAILURE_TAG, REASON_TAG
from sda_platform_tests.support.delivery_rounds import deliver, report
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.run_records import recorded_run


class Ticker:
    """The sensor on an instance, a lake and a home of its own."""

    def __init__(self, home: Path, instance: dg.DagsterInstance) -> None:
        self.home, self.instance, self.lake = home, instance, lake_at(home / "lake")
        self.subscriber = chosen_subscriber("", home)
        self.wall_s = 2e9

    def tick(self) -> dg.RunRequest | str:
        context = dg.build_sensor_context(instance=self.instance)
        answer = request_delivery(context, self.lake, self.subscriber, wall_s=self.wall_s)
        return answer if isinstance(answer, dg.RunRequest) else answer.skip_message or ""

    def run(self, status: dg.DagsterRunStatus, **tags: str) -> str:
        run_id = str(uuid.uuid4())
        self.instance.add_run(dg.DagsterRun(job_name="alerts_to_subscriber", run_id=run_id, status=status, tags=tags))
        return run_id


@pytest.fixture
def ticker(tmp_path: Path) -> Iterator[Ticker]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Ticker(tmp_path, instance)


def test_an_empty_outbox_is_skipped_with_that_reason(ticker: Ticker) -> None:
    assert ticker.tick() == "no alert waits"
    report(ticker.lake, ("x", 0, "insert"))
    deliver(ticker.lake, ticker.subscriber)
    assert ticker.tick() == "no alert waits"


def test_alerts_that_wait_get_a_run_of_their_own_lane(ticker: Ticker) -> None:
    report(ticker.lake, ("x", 0, "insert"))
    request = ticker.tick()
    assert isinstance(request, dg.RunRequest)
    assert request.run_key == "alerts 0-1:1"
    assert request.tags == {"sda/pool": "delivery", "sda/batch": "alerts 0-1", "sda/attempt": "1"}


@pytest.mark.parametrize("job", [OBSERVATIONS_TO_ALERTS, CATALOG_TO_ALERTS, ALERTS_TO_SUBSCRIBER])
def test_a_run_that_delivers_is_left_to_deliver_them(ticker: Ticker, job: Job) -> None:
    report(ticker.lake, ("x", 0, "insert"))
    running = recorded_run(ticker.instance, job, dg.DagsterRunStatus.STARTED)
    assert ticker.tick() == f"run {running[:8]} is under way and will deliver what waits"


@pytest.mark.parametrize("job", [each for each in JOBS if each not in jobs_of(ALERT_DELIVERIES)])
def test_a_run_of_the_same_pool_that_does_not_deliver_holds_nothing_back(ticker: Ticker, job: Job) -> None:
    report(ticker.lake, ("x", 0, "insert"))
    recorded_run(ticker.instance, job, dg.DagsterRunStatus.STARTED)
    assert isinstance(ticker.tick(), dg.RunRequest)


def test_a_run_of_chosen_assets_delivers_if_the_deliveries_are_one_of_them(ticker: Ticker) -> None:
    report(ticker.lake, ("x", 0, "insert"))
    recorded_run(ticker.instance, CATALOG_TO_ALERTS, dg.DagsterRunStatus.STARTED, tables=("element_sets",))
    assert isinstance(ticker.tick(), dg.RunRequest)
    recorded_run(ticker.instance, "__ASSET_JOB", dg.DagsterRunStatus.QUEUED, tables=(ALERT_DELIVERIES.name,))
    assert "is under way and will deliver what waits" in str(ticker.tick())


def test_while_the_subscriber_is_away_no_run_is_started_and_the_reason_is_logged(
    ticker: Ticker, tmp_path: Path
) -> None:
    report(ticker.lake, ("x", 0, "insert"))
    ticker.subscriber = chosen_subscriber("http://127.0.0.1:1/alerts", tmp_path)
    reason = ticker.tick()
    assert isinstance(reason, str)
    assert reason.startswith("alerts of 1 commits wait; http://127.0.0.1:1/alerts: ConnectError")
    ticker.subscriber = chosen_subscriber("", tmp_path)
    assert isinstance(ticker.tick(), dg.RunRequest)


def test_a_failed_delivery_is_followed_by_another_attempt_unless_it_is_permanent(ticker: Ticker) -> None:
    report(ticker.lake, ("x", 0, "insert"))
    request = ticker.tick()
    assert isinstance(request, dg.RunRequest)
    ticker.run(dg.DagsterRunStatus.FAILURE, **request.tags)
    second = ticker.tick()
    assert isinstance(second, dg.RunRequest)
    assert second.run_key == "alerts 0-1:2"
    told = {FAILURE_TAG: "permanent", REASON_TAG: "ValueError: no alert"}
    ticker.run(dg.DagsterRunStatus.FAILURE, **second.tags, **told)
    assert "ValueError: no alert; permanent, so not repeated" in str(ticker.tick())
