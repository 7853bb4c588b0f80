"""Each failed run is reported once in the log, and at least once to the webhook, whatever becomes of the webhook."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from sda_platform.lake.errors import EngineUnavailable, InvariantError
from sda_platform.orchestration.jobs import ALERTS_TO_SUBSCRIBER, CATALOG_TO_ALERTS, OBSERVATIONS_TO_ALERTS
from sda_platform.orchestration.report_webhook import ReportWebhook
from sda_platform.orchestration.retries import with_retries
from sda_platform.orchestration.run_failures import FailureReports, report_failures, run_failures
from sda_platform_tests.support.failure_webhook import FailureWebhook, failure_webhook
from sda_platform_tests.support.run_records import failed_run

UI = "http://ui.example:3000"


@pytest.fixture
def webhook() -> Iterator[FailureWebhook]:
    with failure_webhook() as server:
        yield server


class Ticks:
    """The sensor, tick after tick, on one instance."""

    def __init__(self, instance: dg.DagsterInstance, webhook: str, caplog: pytest.LogCaptureFixture) -> None:
        self.instance, self._reports = instance, FailureReports(ReportWebhook(webhook), UI)
        self._cursor: str | None = None
        self.now_s = time.time()
        self._caplog = caplog

    def tick(self) -> str:
        """One evaluation; its skip reason."""
        context = dg.build_sensor_context(self.instance, cursor=self._cursor)
        context.log.addHandler(self._caplog.handler)
        answer = report_failures(context, self._reports, self.now_s)
        self._cursor = context.cursor
        return answer.skip_message or ""

    @property
    def logged(self) -> list[str]:
        return [record.getMessage() for record in self._caplog.records if record.levelno == logging.ERROR]

    def fail(self, error: Exception) -> str:
        """A run of the alerts pool that fails with ``error``; its id."""

        def body() -> None:
            raise error

        told = dg.asset(name="fused_tracks")(with_retries("fused_tracks", body))  # type: ignore[arg-type]
        job = dg.Definitions([told], jobs=[dg.define_asset_job("alerts", [told])]).resolve_job_def("alerts")
        result = job.execute_in_process(instance=self.instance, raise_on_error=False, tags={"sda/pool": "alerts"})
        return result.run_id


@pytest.fixture
def ticks(webhook: FailureWebhook, caplog: pytest.LogCaptureFixture) -> Iterator[Ticks]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Ticks(instance, webhook.url, caplog)


def test_without_a_failure_nothing_is_reported(ticks: Ticks, webhook: FailureWebhook) -> None:
    assert ticks.tick() == "no run failed"
    assert webhook.received == []


@pytest.mark.parametrize(
    ("error", "disposition"),
    [
        (EngineUnavailable("nobody answers"), "transient"),
        (ValueError("a defect"), "permanent"),
        (InvariantError("a commit is lost"), "invariant"),
    ],
)
def test_a_report_says_where_what_and_what_to_do(
    ticks: Ticks, webhook: FailureWebhook, error: Exception, disposition: str
) -> None:
    run_id = ticks.fail(error)
    assert ticks.tick() == "1 failed runs, 1 reports"
    ((key, report),) = webhook.received
    assert key == report["run_id"] == run_id
    assert (report["job"], report["pool"], report["assets"]) == ("alerts", "alerts", ["fused_tracks"])
    assert report["disposition"] == disposition
    assert report["reason"] == f"{type(error).__name__}: {error}"
    assert str(error) in report["error"]
    assert report["url"] == f"{UI}/runs/{run_id}"
    assert ticks.logged == [f"alerts failed at fused_tracks: {disposition}: {report['reason']} ({report['url']})"]
    assert ticks.tick() == "no run failed", "and it is told once"
    assert len(webhook.received) == 1


@pytest.mark.parametrize("status", [500, 503, 404, 401, 429])
def test_a_report_that_was_not_received_is_sent_again_and_logged_once(
    ticks: Ticks, webhook: FailureWebhook, status: int
) -> None:
    failed = [ticks.fail(ValueError("first"))]
    webhook.statuses.append(status)
    assert ticks.tick() == f"the webhook of reports answered {status}; its reports wait and are sent again"
    failed.append(ticks.fail(ValueError("second")))
    assert ticks.tick() == "2 failed runs, 2 reports"
    assert [key for key, _ in webhook.received] == failed
    assert len(ticks.logged) == 2


def test_a_dead_webhook_breaks_nothing_and_its_address_is_not_reported(
    ticks: Ticks, webhook: FailureWebhook, caplog: pytest.LogCaptureFixture
) -> None:
    webhook.shutdown()
    webhook.server_close()
    failed = ticks.fail(ValueError("a defect"))
    reason = ticks.tick()
    assert reason == "the webhook of reports did not answer: ConnectError; its reports wait and are sent again"
    assert len(ticks.logged) == 1
    assert "secret" not in reason + caplog.text
    with failure_webhook(webhook.server_address[1]) as again:
        assert ticks.tick() == "1 failed runs, 1 reports"
        assert [key for key, _ in again.received] == [failed]


def test_a_report_that_is_refused_for_its_content_holds_no_other_back(ticks: Ticks, webhook: FailureWebhook) -> None:
    ticks.fail(ValueError("first"))
    second = ticks.fail(ValueError("second"))
    webhook.statuses.append(422)
    assert ticks.tick() == "2 failed runs, 2 reports"
    assert [key for key, _ in webhook.received] == [second]


def test_without_a_webhook_the_failure_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        ticks = Ticks(instance, "", caplog)
        ticks.fail(ValueError("a defect"))
        assert ticks.tick() == "1 failed runs, 1 reports"
        assert len(ticks.logged) == 1


def test_one_cause_is_one_report_and_then_one_for_all_that_followed(ticks: Ticks, webhook: FailureWebhook) -> None:
    runs = [
        failed_run(ticks.instance, job, f"SubscriberUnavailable: it is away, attempt {n}", reported=True)
        for n in range(20)
        for job in (OBSERVATIONS_TO_ALERTS, CATALOG_TO_ALERTS, ALERTS_TO_SUBSCRIBER)
    ]
    for _ in range(5):
        ticks.tick()
    assert [(key, report["runs"]) for key, report in webhook.received] == [(runs[0], 1)]
    assert len(ticks.logged) == 60, "the log has each"
    ticks.now_s += 301.0
    ticks.tick()
    assert [(key, report["runs"]) for key, report in webhook.received[1:]] == [(runs[-1], 59)]


def test_the_pauses_grow_and_a_cause_that_was_quiet_is_new_again(ticks: Ticks, webhook: FailureWebhook) -> None:
    began_s, at = ticks.now_s, []
    for minute in range(180):
        ticks.now_s = began_s + 60.0 * minute
        failed_run(ticks.instance, CATALOG_TO_ALERTS, f"OSError: full at {minute}", reported=True)
        before = len(webhook.received)
        ticks.tick()
        at += [minute] * (len(webhook.received) - before)
    assert at == [0, 5, 15, 35, 75, 155]
    assert sum(report["runs"] for _, report in webhook.received) == 156
    ticks.now_s += 5 * 3600.0
    ticks.tick()
    ticks.now_s += 5 * 3600.0
    ticks.tick()
    sent = len(webhook.received)
    failed_run(ticks.instance, CATALOG_TO_ALERTS, "OSError: full at 181", reported=True)
    ticks.tick()
    assert [report["runs"] for _, report in webhook.received[sent:]] == [1]


def test_another_cause_is_reported_at_once(ticks: Ticks, webhook: FailureWebhook) -> None:
    for reason in ("OSError: full", "OSError: full", "OSError: read-only", "its worker was killed"):
        failed_run(ticks.instance, CATALOG_TO_ALERTS, reason, reported=True)
        ticks.tick()
    assert [report["reason"] for _, report in webhook.received] == [
        "OSError: full", "OSError: read-only", "its worker was killed",
    ]  # fmt: skip


def test_a_webhook_that_does_not_answer_is_left_alone_and_loses_nothing(ticks: Ticks, webhook: FailureWebhook) -> None:
    ticks.fail(ValueError("a defect"))
    webhook.statuses.extend([503] * 4)
    began_s, asked = ticks.now_s, []
    for second in range(0, 60, 5):
        ticks.now_s = began_s + second
        before = len(webhook.statuses)
        ticks.tick()
        asked += [second] if len(webhook.statuses) < before or webhook.received else []
    assert asked[:5] == [0, 5, 10, 20, 40]
    assert len(webhook.received) == 1


def test_the_sensor_reads_a_cursor_of_any_version(webhook: FailureWebhook) -> None:
    for cursor in (None, "", "no json", '{"logged": 1, "received": 1}', '{"causes": {"x": {"other": 1}}}', "[]"):
        with dg.DagsterInstance.ephemeral() as instance:
            failed_run(instance, CATALOG_TO_ALERTS, "OSError: full", reported=True)
            resources = {"failure_reports": FailureReports(ReportWebhook(webhook.url), UI)}
            assert isinstance(
                run_failures(dg.build_sensor_context(instance, cursor=cursor, resources=resources)), dg.SkipReason
            )
