"""Reports of failed runs: always to the log, and to a webhook if one is configured.

Dagster's own `run_failure_sensor` moves past a failure whose report did not arrive. This one reads the same events, but
its cursor stays before the first report that was not received, so each arrives at least once; the run id is the
idempotency key by which a receiver recognises a repetition.
"""

import json
import time
from dataclasses import asdict, dataclass

import dagster as dg

from sda_platform.orchestration.attempts import outcome_of
from sda_platform.orchestration.report_webhook import ReportWebhook
from sda_platform.spark.session import POOL_TAG

# At each round of Dagster's sensor loop, which takes five seconds.
_INTERVAL_S = 4
# An older failure is no news: a webhook that was away for weeks is not flooded.
_NEWS_S = 24 * 3600.0
_AT_A_TIME = 20
_ERROR_LENGTH = 2000


@dataclass(frozen=True)
class FailureReport:
    """What a person needs to begin with; ``disposition`` is transient, permanent or invariant (`dispositions`)."""

    run_id: str
    job: str
    pool: str
    assets: list[str]
    disposition: str
    reason: str
    error: str
    url: str

    def __str__(self) -> str:
        where = f"{self.job} failed" + (f" at {', '.join(self.assets)}" if self.assets else "")
        return f"{where}: {self.disposition}: {self.reason} ({self.url})"


@dataclass(frozen=True)
class FailureReports:
    """Where reports go: ``webhook`` is the URL that takes them, empty for none; ``ui_url`` is where runs are seen."""

    webhook: str
    ui_url: str

    def send(self, report: FailureReport) -> str | None:
        """Post ``report``; why it did not arrive, in words without secrets, or None. Raises nothing."""
        return ReportWebhook(self.webhook).post(report.run_id, asdict(report))


@dataclass(frozen=True)
class Cursor:
    """Ids of the last failure that was logged and of the last whose report was received."""

    logged: int = 0
    received: int = 0

    @classmethod
    def parse(cls, text: str | None) -> "Cursor":
        """The cursor in ``text``; the beginning where there is none, or another version wrote it."""
        try:
            return cls(**json.loads(text)) if text else cls()
        except (TypeError, ValueError):
            return cls()


@dg.sensor(
    minimum_interval_seconds=_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Reports each failed run in the log, and to SDA_FAILURE_WEBHOOK at least once.",
)
def run_failures(
    context: dg.SensorEvaluationContext, failure_reports: dg.ResourceParam[FailureReports]
) -> dg.SkipReason:
    """Log and post what failed since the last tick; starts no run."""
    cursor = Cursor.parse(context.cursor)
    failed = dg.RunStatusChangeRecordsFilter(
        dg.DagsterEventType.RUN_FAILURE, after_storage_id=cursor.received, after_timestamp=time.time() - _NEWS_S
    )
    records = context.instance.fetch_run_status_changes(failed, limit=_AT_A_TIME, ascending=True).records
    logged, received, problem = cursor.logged, cursor.received, None
    for record in records:
        report = described(context.instance, record.event_log_entry.run_id, failure_reports.ui_url)
        if record.storage_id > logged:
            context.log.error(str(report))
            logged = record.storage_id
        problem = problem or failure_reports.send(report)
        if problem is None:
            received = record.storage_id
    context.update_cursor(json.dumps(asdict(Cursor(logged, received))))
    if problem:
        return dg.SkipReason(f"{problem}; its reports wait and are sent again")
    return dg.SkipReason(f"{len(records)} failed runs were reported" if records else "no run failed")


def described(instance: dg.DagsterInstance, run_id: str, ui_url: str) -> FailureReport:
    """The report of a failed run."""
    run = instance.get_run_by_id(run_id)
    if run is None:  # its record was deleted meanwhile
        return FailureReport(run_id, "a deleted run", "", [], "unknown", "its record was deleted", "", ui_url)
    failures = [
        entry.get_dagster_event() for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    ]
    errors = [event.step_failure_data.error.to_string() for event in failures if event.step_failure_data.error]
    disposition, reason = outcome_of(run)
    return FailureReport(
        run_id=run_id,
        job=run.job_name,
        pool=run.tags.get(POOL_TAG, ""),
        assets=[event.step_key for event in failures if event.step_key],
        disposition=disposition.value,
        reason=reason,
        error="\n".join(errors)[:_ERROR_LENGTH],
        url=f"{ui_url}/runs/{run_id}",
    )
