"""The metric catalogue: every metric that a process of the platform exports, by the name that Prometheus shows.

Collectors and watchdog make their families here, so a metric has one name, one meaning and one set of labels. Names are
those of the requirements; times are in seconds unless the name has another unit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

_TOTAL = "_total"


class MetricKind(StrEnum):
    """How a metric behaves: a counter only grows and starts at zero with its process."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class CataloguedMetric:
    """A metric: its exported name, kind, labels and meaning."""

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    meaning: str


def _metric(name: str, labels: str, meaning: str, kind: MetricKind = MetricKind.GAUGE) -> CataloguedMetric:
    kind = MetricKind.COUNTER if name.endswith(_TOTAL) else kind
    return CataloguedMetric(name, kind, tuple(labels.split()), meaning)


_COLLECTORS = (
    _metric("source_rate", "source kind", "Records per second, mean over 30 s."),
    _metric("source_up", "source kind", "1 while the source has not failed."),
    _metric("source_errors_total", "source reason", "What a source refused, by reason."),
    _metric("source_connections", "source", "Open connections."),
    _metric("kernel_drops_total", "source", "Datagrams that the kernel dropped."),
    _metric("priority_classifier_decisions_total", "priority", "Records by priority."),
    _metric("records_received_total", "source priority", "Records received."),
    _metric("records_sealed_total", "source priority", "Records in sealed segments."),
    _metric("records_deferred_total", "source priority", "Records that took the way round a burst."),
    _metric("records_dropped_total", "source priority", "Records that were dropped by policy."),
    _metric("records_in_flight", "source priority", "Records in memory."),
    _metric("channel_occupancy", "edge", "Share of the capacity in use."),
    _metric("channel_used_bytes", "edge", "Bytes in use."),
    _metric("channel_capacity_bytes", "edge policy", "Declared capacity."),
    _metric("channel_stalls_total", "edge", "How often a sender waited."),
    _metric("channel_stalled_seconds_total", "edge", "How long senders waited."),
    _metric("flow_policy_drops_total", "edge policy priority", "Records that an edge refused, by its policy."),
    _metric("shedding_sink_drops_total", "edge", "Records refused on edges that shed."),
    _metric("timed_sink_deadline_drops_total", "edge", "Records refused at a deadline."),
    _metric("source_not_listened_seconds_total", "source", "Time without a listening socket, also before this start."),
    _metric("intake_backlog", "zone", "What waits in a zone, share of what may wait."),
    _metric("segments_sealed_total", "zone priority", "Sealed segments."),
    _metric("sink_bytes_written_total", "zone priority", "Bytes in sealed segments."),
    _metric("seal_failures", "zone priority", "Failed attempts in a row."),
    _metric(
        "event_loop_lag_seconds",
        "",
        "Longest block of the event loop, last minute.",
        MetricKind.GAUGE,
    ),
    _metric("seal_latency_seconds", "zone priority", "From the socket into a segment.", MetricKind.HISTOGRAM),
    _metric("bottleneck", "edge", "1 for the edge in front of the slowest stage."),
)
_SUPERVISION = (
    _metric("operator_restart_total", "operator", "Restarts of a source or a process."),
    _metric("operator_uptime_seconds", "operator", "Since its last start."),
    _metric("circuit_breaker_state", "breaker", "0 closed, 1 open, 2 half-open."),
    _metric("retry_attempts_total", "operator", "Runs that followed a failure, by job."),
    _metric("vital_red", "vital side", "1 while the vital is red."),
    _metric("fault_active", "vital subject side", "1 while the fault lasts."),
    _metric("disk_free_share", "path", "Free share of a file system."),
    _metric("runs_active", "pool state", "Runs that have not ended, by state (queued, started)."),
)
_EVENT_TIME = (
    _metric("source_lag_seconds", "source", "Measurement to reception, median of a commit.", MetricKind.HISTOGRAM),
    _metric("pipeline_lag_seconds", "source", "Reception to fusion, median of a commit.", MetricKind.HISTOGRAM),
    _metric("clock_skew_observed_total", "", "Observations that were received before they were measured."),
    _metric("source_watermark_seconds", "source", "Event time up to which a kind of source is complete, Unix time."),
    _metric("pipeline_watermark_seconds", "", "Event time up to which the fusion is complete, Unix time."),
    _metric("pending_windows", "tier", "Windows that are not closed: active before the watermark passed their end, "
            "retained until the allowed lateness has passed."),
    _metric("late_events_dropped_total", "", "Observations that came after their window was closed."),
)  # fmt: skip
_TABLES = (
    _metric("commits_total", "table", "Commits of a table."),
    _metric("rows_committed_total", "table", "Rows that commits wrote."),
    _metric("operator_discards_total", "operator", "Second deliveries that intake discarded, by table."),
    _metric("segments_total", "table fate", "Segments by fate: acknowledged, duplicate, conflict, quarantined."),
    _metric("retractions_emitted_total", "table", "Retracts that commits wrote into a correction log."),
    _metric("dlq_entries_total", "operator error_kind", "Dead letters by stage and kind."),
    _metric("checkpoint_age_seconds", "operator", "Mission time since the newest commit manifest of a table."),
    _metric("checkpoint_size_bytes", "operator", "Size of the newest commit manifest."),
    _metric("checkpoint_pause_duration_ms", "operator", "From the plan to the commit.", MetricKind.HISTOGRAM),
    _metric("upstream_lag_commits", "table", "Upstream commits that a table has not consumed."),
    _metric("landing_pending_segments", "zone", "Segments that wait in a landing zone."),
    _metric("landing_oldest_seconds", "zone", "Since the oldest pending segment came; 0 where none waits."),
    _metric("observation_requests", "priority_class owner status", "Requests ahead, scheduled or unserved."),
    _metric("sensor_booked_seconds", "sensor", "Antenna time that is booked from now on, of all beams."),
    _metric("command_oldest_seconds", "station priority", "Since the oldest ground command that waits was issued."),
    _metric("recovery_path_total", "path", "Tables at the last start: local (as left or repaired), fresh (no commit)."),
)
_OBJECTIVES = (
    _metric("alert_latency_seconds", "", "From reception to the subscriber, by alert entry.", MetricKind.HISTOGRAM),
    _metric("slo_good_share", "objective", "Share of good events since midnight (UTC, mission time)."),
    _metric("slo_budget_left", "objective", "Share of the day's error budget that is left; negative: overspent."),
    _metric("slo_burn_rate", "objective", "Speed at which the last hour spent the budget; 1 spends it in a day."),
    _metric("metrics_drops_total", "", "Rounds of the watchdog that could not read the metrics."),
)
_SERVING = (
    _metric("http_requests_total", "handler client status", "Requests at the lookup endpoint; empty: not logged in."),
    _metric("http_sent_bytes_total", "handler", "Bytes of answers, without streams."),
    _metric("http_request_seconds", "handler", "From a request to the begin of its answer.", MetricKind.HISTOGRAM),
    _metric("event_stream_behind_commits", "", "Commits whose events the stream (`SDA_EVENT_STREAM`) has not got."),
)

METRICS: Final[Mapping[str, CataloguedMetric]] = MappingProxyType(
    {each.name: each for each in (*_COLLECTORS, *_SUPERVISION, *_EVENT_TIME, *_TABLES, *_OBJECTIVES, *_SERVING)}
)
"""Every metric, by its exported name."""
COLLECTOR_METRICS: Final = tuple(each.name for each in _COLLECTORS)
"""The names of those that only a collector exports."""
SERVING_METRICS: Final = tuple(each.name for each in _SERVING)
"""The names of those that the lookup endpoint exports."""
_FAMILIES: Final = {
    MetricKind.COUNTER: CounterMetricFamily,
    MetricKind.GAUGE: GaugeMetricFamily,
    MetricKind.HISTOGRAM: HistogramMetricFamily,
}


def family(name: str) -> Any:
    """An empty family (a prometheus_client metric family) of the metric with this exported name. Raises KeyError."""
    metric = METRICS[name]
    return _FAMILIES[metric.kind](name.removesuffix(_TOTAL), metric.meaning, labels=list(metric.labels))


class ExportedMetrics(Collector):
    """What a process exports. ``collect`` yields every family with its samples."""

    def text(self) -> bytes:
        """Every metric in Prometheus' text format."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def describe(self) -> list[Metric]:
        """Return nothing: what is exported follows from what `collect` finds."""
        return []
