"""Reports of failed runs: always to the log, and to a webhook if one is configured.

Dagster's own `run_failure_sensor` moves past a failure whose report did not arrive. This one reads the same events, but
its cursor stays before the first report that was not received, so each arrives at least once; the run id is the
idempotency key by which a receiver recognises a repetition.

One cause is one report: the next runs that fail alike are counted, and reported together after a pause that grows. A
webhook that does not answer is asked less and less often.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

import dagster as dg

from sda_platform.orchestration.attempts import cause_of, outcome_of
from sda_platform.orchestration.report_webhook import ReportWebhook
from sda_platform.resilience import doubling_s
from sda_platform.spark.session import POOL_TAG

# At each round of Dagster's sensor loop, which takes five seconds.
_INTERVAL_S = 4
# An older failure is no news: a webhook that was away for weeks is not flooded.
_NEWS_S = 24 * 3600.0
_AT_A_TIME = 20
_ERROR_LENGTH = 2000
# How long further failures of one cause are counted before they are reported together.
_PAUSE_S, _LONGEST_PAUSE_S = 300.0, 4 * 3600.0
# A webhook that failed so often in a row is left alone for a while.
_FAILURES_IN_A_ROW, _LEAVE_S, _LONGEST_LEAVE_S = 3, 10.0, 60.0


@dataclass(frozen=True)
class FailureReport:
    """What a person needs to begin with; ``disposition`` is transient, permanent or invariant (`dispositions`).

    ``runs``: how many runs failed for this cause since it was last reported, this one included.
    """

    run_id: str
    job: str
    pool: str
    assets: list[str]
    disposition: str
    reason: str
    error: str
    url: str
    runs: int = 1

    @property
    def cause(self) -> str:
        """What it has in common with other failures."""
        return cause_of(self.reason)

    def __str__(self) -> str:
        where = f"{self.job} failed" + (f" at {', '.join(self.assets)}" if self.assets else "")
        return f"{where}: {self.disposition}: {self.reason} ({self.url})"


@dataclass(frozen=True)
class FailureReports:
    """Where reports go, and ``ui_url``, where runs are seen."""

    webhook: ReportWebhook
    ui_url: str

    def send(self, report: FailureReport) -> str | None:
        """Post ``report``; why it did not arrive, in words without secrets, or None. Raises nothing."""
        return self.webhook.post(report.run_id, asdict(report))


@dataclass(frozen=True)
class OpenCause:
    """A cause that was reported: until wall ``due_s``, further ``runs`` are counted; the last is ``run_id``."""

    due_s: float
    pause_s: float
    runs: int = 0
    run_id: str = ""

    def counted(self, run_id: str) -> "OpenCause":
        """Count one more failure of this cause."""
        return replace(self, runs=self.runs + 1, run_id=run_id)

    def reported(self, now_s: float) -> "OpenCause":
        """Once what was counted is reported: the next pause is twice as long."""
        pause_s = min(2 * self.pause_s, _LONGEST_PAUSE_S)
        return OpenCause(now_s + pause_s, pause_s)


@dataclass(frozen=True)
class Cursor:
    """Ids of the last failure that was logged and of the last that was reported or counted; the causes that are open.

    ``unanswered``: how many posts in a row did not arrive. ``retry_s``: wall time before which there is none.
    """

    logged: int = 0
    received: int = 0
    causes: Mapping[str, OpenCause] = field(default_factory=dict)
    unanswered: int = 0
    retry_s: float = 0.0

    @classmethod
    def parse(cls, text: str | None) -> "Cursor":
        """Return the cursor in ``text``; the beginning where there is none, or another version wrote it."""
        try:
            content = json.loads(text) if text else {}
            causes = {name: OpenCause(**each) for name, each in content.pop("causes", {}).items()}
            return cls(**content, causes=causes)
        except (TypeError, ValueError, AttributeError):
            return cls()

    def with_cause(self, name: str, found: OpenCause | None) -> "Cursor":
        """With another state of the cause ``name``; None: it is over."""
        others = {key: each for key, each in self.causes.items() if key != name}
        return replace(self, causes=others | ({name: found} if found else {}))

    def after_post(self, problem: str | None, now_s: float) -> "Cursor":
        """Once a report arrived, or did not."""
        if problem is None:
            return replace(self, unanswered=0, retry_s=0.0)
        failures = self.unanswered + 1
        beyond = failures - _FAILURES_IN_A_ROW + 1
        leave_s = doubling_s(beyond, base_s=_LEAVE_S, cap_s=_LONGEST_LEAVE_S) if beyond > 0 else 0.0
        return replace(self, unanswered=failures, retry_s=now_s + leave_s)


@dg.sensor(
    minimum_interval_seconds=_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Reports failed runs in the log, and at least once to SDA_FAILURE_WEBHOOK: those of a cause together.",
)
def run_failures(
    context: dg.SensorEvaluationContext, failure_reports: dg.ResourceParam[FailureReports]
) -> dg.SkipReason:
    """Log and post what failed since the last tick; starts no run."""
    return report_failures(context, failure_reports, time.time())


def report_failures(context: dg.SensorEvaluationContext, reports: FailureReports, now_s: float) -> dg.SkipReason:
    """Return the tick of the sensor at wall ``now_s``."""
    this = _Tick(context, reports, now_s, Cursor.parse(context.cursor))
    failed = dg.RunStatusChangeRecordsFilter(
        dg.DagsterEventType.RUN_FAILURE, after_storage_id=this.cursor.received, after_timestamp=now_s - _NEWS_S
    )
    records = context.instance.fetch_run_status_changes(failed, limit=_AT_A_TIME, ascending=True).records
    for record in records:
        this.take(record.storage_id, record.event_log_entry.run_id)
    for name, cause in list(this.cursor.causes.items()):
        if cause.due_s <= now_s and this.problem is None:
            this.end_pause(name, cause)
    context.update_cursor(json.dumps(asdict(this.cursor)))
    if this.problem:
        return dg.SkipReason(f"{this.problem}; its reports wait and are sent again")
    return dg.SkipReason(_outcome(len(records), this.sent))


@dataclass
class _Tick:
    """One tick: after a post that did not arrive there is no other, and the cursor stays where it is."""

    context: dg.SensorEvaluationContext
    reports: FailureReports
    now_s: float
    cursor: Cursor
    problem: str | None = None
    sent: int = 0

    def __post_init__(self) -> None:
        if self.now_s < self.cursor.retry_s:
            self.problem = "the webhook of reports did not answer several times, and is left alone for a while"

    def take(self, storage_id: int, run_id: str) -> None:
        """Log a failure once; report it, or count it where its cause was reported."""
        report = described(self.context.instance, run_id, self.reports.ui_url)
        if storage_id > self.cursor.logged:
            self.context.log.error(str(report))
            self.cursor = replace(self.cursor, logged=storage_id)
        known = self.cursor.causes.get(report.cause)
        if self.problem is None and (known or self._post(report)):
            after = known.counted(run_id) if known else OpenCause(self.now_s + _PAUSE_S, _PAUSE_S)
            self.cursor = replace(self.cursor.with_cause(report.cause, after), received=storage_id)

    def end_pause(self, name: str, cause: OpenCause) -> None:
        """Report what was counted in the pause; a cause without a failure in it is over."""
        if not cause.runs:
            self.cursor = self.cursor.with_cause(name, None)
        elif self._post(replace(described(self.context.instance, cause.run_id, self.reports.ui_url), runs=cause.runs)):
            self.cursor = self.cursor.with_cause(name, cause.reported(self.now_s))

    def _post(self, report: FailureReport) -> bool:
        self.problem = self.reports.send(report)
        self.cursor = self.cursor.after_post(self.problem, self.now_s)
        self.sent += self.problem is None
        return self.problem is None


def _outcome(failed: int, sent: int) -> str:
    if not failed and not sent:
        return "no run failed"
    return f"{failed} failed runs, {sent} reports" + ("" if sent else ": their cause was reported before")


def described(instance: dg.DagsterInstance, run_id: str, ui_url: str) -> FailureReport:
    """Return the report of a failed run."""
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
