"""Metrics in Prometheus' text format, read from the live objects at each request."""

import time
from collections.abc import Iterator
from typing import Any, Final

from prometheus_client.core import Metric

from sda_platform.edge.channel import OverflowPolicy
from sda_platform.edge.collector import Collector
from sda_platform.telemetry import COLLECTOR_METRICS, ExportedMetrics, family

_NAMES: Final = (*COLLECTOR_METRICS, "operator_restart_total", "operator_uptime_seconds", "circuit_breaker_state")


class CollectorMetrics(ExportedMetrics):
    """The families of a collector."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        """Every family with its samples, if there are any."""
        shown = {name: family(name) for name in _NAMES}
        for name, labels, *values in self._samples():
            shown[name].add_metric(labels, *values)
        yield from shown.values()

    def _samples(self) -> Iterator[tuple[Any, ...]]:
        """Name, labels and value; of a histogram its buckets and sum."""
        yield from self._sources()
        yield from self._records()
        yield from self._edges()
        yield from self._segments()
        yield "event_loop_lag_seconds", [], self._collector.loop_lag_s
        if (edge := self._collector.occupancy.bottleneck()) is not None:
            yield "bottleneck", [edge], 1.0

    def _sources(self) -> Iterator[tuple[Any, ...]]:
        for name, each in self._collector.supervised.items():
            source = each.source
            yield "source_rate", [name, source.kind], self._collector.rates.of(name)
            yield "source_up", [name, source.kind], float(each.problem() is None)
            for reason, count in sorted(source.errors.items()):
                yield "source_errors_total", [name, reason], count
            yield "operator_restart_total", [name], each.restarts
            yield "operator_uptime_seconds", [name], time.monotonic() - each.started_s
            if source.connections is not None:
                yield "source_connections", [name], source.connections
            if source.kernel_drops is not None:
                yield "kernel_drops_total", [name], source.kernel_drops
            if source.breaker_state is not None:
                yield "circuit_breaker_state", [name], source.breaker_state

        for name, seconds in self._collector.listening_log.seconds.items():
            yield "source_not_listened_seconds_total", [name], seconds

    def _records(self) -> Iterator[tuple[Any, ...]]:
        totals: dict[str, int] = {}
        for (source, priority), account in self._collector.ledger.accounts().items():
            at = [source, priority.label]
            for name in ("received", "sealed", "deferred", "dropped"):
                yield f"records_{name}_total", at, getattr(account, name)
            yield "records_in_flight", at, account.in_flight
            totals[priority.label] = totals.get(priority.label, 0) + account.received
        for label, total in totals.items():
            yield "priority_classifier_decisions_total", [label], total

    def _edges(self) -> Iterator[tuple[Any, ...]]:
        for channel in self._collector.topology.channels():
            edge, counts = channel.edge, channel.counts
            yield "channel_occupancy", [edge.name], channel.occupancy
            yield "channel_used_bytes", [edge.name], channel.used
            yield "channel_capacity_bytes", [edge.name, edge.policy.value], edge.capacity
            yield "channel_stalls_total", [edge.name], counts.stalls
            yield "channel_stalled_seconds_total", [edge.name], counts.stalled_s
            for priority, count in counts.refused.items():
                yield "flow_policy_drops_total", [edge.name, edge.policy.value, priority], count
            total = sum(counts.refused.values())
            if edge.policy is OverflowPolicy.SHED:
                yield "shedding_sink_drops_total", [edge.name], total
            elif edge.policy is OverflowPolicy.DEADLINE:
                yield "timed_sink_deadline_drops_total", [edge.name], total
        for zone, entry in self._collector.zones().items():
            yield "intake_backlog", [zone], entry.pressure.backlog

    def _segments(self) -> Iterator[tuple[Any, ...]]:
        for sealer in self._collector.sealers:
            at = [sealer.zone, sealer.priority.label]
            yield "segments_sealed_total", at, sealer.segments
            yield "sink_bytes_written_total", at, sealer.sealed_bytes
            yield "seal_failures", at, sealer.failures
            yield "seal_latency_seconds", at, sealer.latency.buckets(), sealer.latency.sum_s
