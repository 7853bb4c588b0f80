"""The metrics of the platform, as the watchdog exports them: what commits brought since its start, and states now."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError

from sda_platform.fusion.sources import HEARD
from sda_platform.fusion.tables import FIRST_OPEN_WINDOW, FUSED_TRACKS
from sda_platform.fusion.watermarks import PIPELINE, window_start
from sda_platform.ground.command_states import FINAL, oldest_pending_ns
from sda_platform.ground.tables import GROUND_COMMANDS
from sda_platform.lake.errors import LakeError
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit, Head
from sda_platform.lake.table import Table
from sda_platform.lake.unconsumed import unconsumed_commits
from sda_platform.observability.metrics.accumulated import AccumulatedMetrics
from sda_platform.observability.metrics.day_of_events import DayOfEvents
from sda_platform.observability.metrics.rows_at_head import RowsAtHead
from sda_platform.observability.metrics.samples import MetricSample, samples_of
from sda_platform.observability.objectives import ObjectiveEvents, alert_latency_s, sent_entries, service_levels
from sda_platform.observability.vitals.facts import Facts
from sda_platform.observability.vitals.faults import VitalState
from sda_platform.observability.vitals.history import VitalHistory
from sda_platform.registry import TABLES
from sda_platform.tasking.sensor_use import USE_COLUMNS, booked_ahead_s, requests_by_status
from sda_platform.tasking.tables import PASS_SCHEDULE
from sda_platform.units import SECOND_NS

_WINDOWS_SHOWN = 10_000
_MAY_VANISH = (
    "vital_red", "fault_active", "runs_active", "command_oldest_seconds", "observation_requests",
    "sensor_booked_seconds",
)  # fmt: skip
"""Gauges of which a round may have no sample."""
# Bounds the series of one vital; its notices name all.
_FAULTS_SHOWN = 500


class PlatformMetrics:
    """Follows the lake from the moment of its making. Counters start at zero then, as those of any process.

    ``window_s``: the length of a fusion window.
    """

    def __init__(self, lake: Lake, *, window_s: int) -> None:
        self._lake, self._window_ns = lake, window_s * SECOND_NS
        self._followed = {table.name: lake.log(table).head().sequence for table in TABLES}
        now_ns = lake.clock.now_ns()
        self._events = DayOfEvents(lake, now_ns)
        self._repeated: set[str] = set()
        command_columns, waits = ["station", "priority", "state", "issued_time_ns"], ~ds.field("state").isin(FINAL)
        self._commands = RowsAtHead(lake, GROUND_COMMANDS, command_columns, waits)
        self._scheduled = RowsAtHead(lake, PASS_SCHEDULE, USE_COLUMNS)
        self.metrics = AccumulatedMetrics()
        paths = Counter("local" if sequence else "fresh" for sequence in self._followed.values())
        self.metrics.add(MetricSample("recovery_path_total", (path,), float(n)) for path, n in paths.items())

    def refresh(self, facts: Facts, history: VitalHistory) -> None:
        """Take the commits since the last time, and the states that ``facts`` and ``history`` describe.

        A table that cannot be read leaves out what it would have given. Raises its error once all else is shown.
        """
        for metric in _MAY_VANISH:
            self.metrics.clear(metric)
        self.metrics.replace(
            [*_landing_states(facts), *_machine_states(facts), *_vital_states(history), *_run_states(facts)]
        )
        self._count_repeated(facts)
        heads = {table.name: self._lake.log(table).head() for table in TABLES}
        self.metrics.replace(self._table_states(heads, facts.now_ns))
        failures = [error for table in TABLES if (error := self._follow(table))]
        for each in (self._commands, self._scheduled):
            if error := each.refresh(heads[each.table.name].sequence):
                failures.append(error)
        self.metrics.replace(_command_states(oldest_pending_ns(self._commands.rows), facts.now_ns))
        self.metrics.replace(_schedule_states(self._scheduled.rows, facts.now_ns))
        self.metrics.replace(self._levels(facts.now_ns, history))
        if failures:
            raise failures[0]

    def count_failed_round(self) -> None:
        """Count a round in which the metrics could not be read."""
        self.metrics.add([MetricSample("metrics_drops_total", (), 1.0)])

    def _count_repeated(self, facts: Facts) -> None:
        new = {run_id: job for run_id, job in facts.repeated if run_id not in self._repeated}
        self.metrics.add(MetricSample("retry_attempts_total", (job,), 1.0) for job in new.values())
        self._repeated = {run_id for run_id, _ in facts.repeated}

    def _follow(self, table: Table) -> Exception | None:
        """Add the new commits, each as a whole or not at all; why one could not be read, and is read again."""
        try:
            new = self._lake.log(table).commits(None, after=self._followed[table.name])
            for commit in reversed(new):
                latency_s = alert_latency_s(self._lake, commit)
                samples = list(samples_of(self._lake, table, commit))
                if latency_s is not None:
                    samples += [MetricSample("alert_latency_seconds", (), latency_s)] * sent_entries(commit)
                self.metrics.add(samples)
                self._events.add(commit, latency_s)
                self._followed[table.name] = commit.sequence
        except (LakeError, DeltaError, OSError) as error:
            return error
        return None

    def _table_states(self, heads: dict[str, Head], now_ns: int) -> Iterator[MetricSample]:
        for table in TABLES:
            commit = heads[table.name].commit
            if commit is None:
                continue
            age_s = (now_ns - commit.manifest.as_of_ns) / SECOND_NS
            yield MetricSample("checkpoint_age_seconds", (table.name,), age_s)
            lag = sum(unconsumed_commits(table, heads).values())
            yield MetricSample("upstream_lag_commits", (table.name,), float(lag))
        fused = heads[FUSED_TRACKS.name].commit
        if fused is not None and PIPELINE in fused.manifest.watermarks:
            yield from self._pending_windows(fused)

    def _pending_windows(self, fused: Commit) -> Iterator[MetricSample]:
        marks = fused.manifest.watermarks
        newest_ns = max((at for name, at in marks.items() if name.startswith(HEARD)), default=marks[PIPELINE])
        passed_ns = window_start(marks[PIPELINE], self._window_ns)
        active = max(window_start(newest_ns, self._window_ns) - passed_ns, 0) // self._window_ns + 1
        retained = max(passed_ns - marks.get(FIRST_OPEN_WINDOW, passed_ns), 0) // self._window_ns
        yield MetricSample("pending_windows", ("active",), float(min(active, _WINDOWS_SHOWN)))
        yield MetricSample("pending_windows", ("retained",), float(min(retained, _WINDOWS_SHOWN)))

    def _levels(self, now_ns: int, history: VitalHistory) -> Iterator[MetricSample]:
        events = self._events.until(now_ns)
        for level in service_levels([*events, *availability(history, self._lake)], now_ns):
            name = (level.objective.name,)
            yield MetricSample("slo_good_share", name, level.share)
            yield MetricSample("slo_budget_left", name, level.budget_left)
            yield MetricSample("slo_burn_rate", name, level.burn_rate)


def availability(history: VitalHistory, lake: Lake) -> list[ObjectiveEvents]:
    """Return the rounds of the watchdog as events; their wall hours in mission time."""
    return [
        ObjectiveEvents("availability", lake.clock.now_ns(round(hour_s * SECOND_NS)), float(good), float(total))
        for hour_s, (good, total) in history.rounds.items()
    ]


def _landing_states(facts: Facts) -> Iterator[MetricSample]:
    for zone, backlog in facts.backlogs.items():
        yield MetricSample("landing_pending_segments", (zone,), float(backlog.segments))
        yield MetricSample("landing_oldest_seconds", (zone,), backlog.oldest_s or 0.0)


def _command_states(oldest_ns: dict[tuple[str, int], int], now_ns: int) -> Iterator[MetricSample]:
    for (station, priority), issued_ns in oldest_ns.items():
        age_s = (now_ns - issued_ns) / SECOND_NS
        yield MetricSample("command_oldest_seconds", (station, str(priority)), age_s)


def _schedule_states(rows: Sequence[Mapping[str, Any]], now_ns: int) -> Iterator[MetricSample]:
    for (priority_class, owner, status), count in requests_by_status(rows, now_ns).items():
        yield MetricSample("observation_requests", (str(priority_class), owner, status), float(count))
    for sensor, booked_s in booked_ahead_s(rows, now_ns).items():
        yield MetricSample("sensor_booked_seconds", (sensor,), booked_s)


def _machine_states(facts: Facts) -> Iterator[MetricSample]:
    for disk in facts.disks:
        yield MetricSample("disk_free_share", (disk.path,), disk.free / disk.total if disk.total else 0.0)
    for process in facts.processes or ():
        yield MetricSample("operator_restart_total", (process.name,), float(process.restarts))


def _vital_states(history: VitalHistory) -> Iterator[MetricSample]:
    for name, each in history.vitals.items():
        yield MetricSample("vital_red", (name, each.reading.side), float(each.reading.state is VitalState.RED))
        for fault in each.reading.faults[:_FAULTS_SHOWN]:
            yield MetricSample("fault_active", (name, fault.subject, fault.side), 1.0)


def _run_states(facts: Facts) -> Iterator[MetricSample]:
    for (pool, state), count in Counter((run.pool, run.state) for run in facts.runs or ()).items():
        yield MetricSample("runs_active", (pool, state), float(count))
