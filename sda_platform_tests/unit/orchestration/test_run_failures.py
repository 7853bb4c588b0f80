"""Each failed run is reported once in the log, and at least once to the webhook, whatever becomes of the webhook."""

import logging
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from sda_platform.lake.errors import EngineUnavailable, InvariantError
from sda_platform.orchestration.retries import with_retries
from sda_platform.orchestration.run_failures import FailureReports, run_failures
from sda_platform_tests.support.failure_webhook import FailureWebhook, failure_webhook

UI = "http://ui.example:3000"


@pytest.fixture
def webhook() -> Iterator[FailureWebhook]:
    with failure_webhook() as server:
        yield server


class Ticks:
    """The sensor, tick after tick, on one instance."""

    def __init__(self, instance: dg.DagsterInstance, webhook: str, caplog: pytest.LogCaptureFixture) -> None:
        self.instance, self._reports = instance, FailureReports(webhook, UI)
        self._cursor: str | None = None
        self._caplog = caplog

    def tick(self) -> str:
        """One evaluation; its skip reason."""
        context = dg.build_sensor_context(
            self.instance, cursor=self._cursor, resources={"failure_reports": self._reports}
        )
        context.log.addHandler(self._caplog.handler)
        answer = run_failures(context)
        self._cursor = context.cursor
        assert isinstance(answer, dg.SkipReason)
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
    assert ticks.tick() == "1 failed runs were reported"
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
    assert ticks.tick() == "2 failed runs were reported"
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
        assert ticks.tick() == "1 failed runs were reported"
        assert [key for key, _ in again.received] == [failed]


def test_a_report_that_is_refused_for_its_content_holds_no_other_back(ticks: Ticks, webhook: FailureWebhook) -> None:
    ticks.fail(ValueError("first"))
    second = ticks.fail(ValueError("second"))
    webhook.statuses.append(422)
    assert ticks.tick() == "2 failed runs were reported"
    assert [key for key, _ in webhook.received] == [second]


def test_without_a_webhook_the_failure_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        ticks = Ticks(instance, "", caplog)
        ticks.fail(ValueError("a defect"))
        assert ticks.tick() == "1 failed runs were reported"
        assert len(ticks.logged) == 1
