"""Metrics in Prometheus' text format, read from the live objects at each request."""

import time
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector as Family

from sda_platform.edge.channel import OverflowPolicy
from sda_platform.edge.collector import Collector
from sda_platform.edge.sources.source import SourceState
from sda_platform.telemetry import family


class CollectorMetrics(Family):
    """The families of a collector (DP1-O2, DP4-O1)."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def text(self) -> bytes:
        """All families, as a scrape gets them."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def describe(self) -> list[Metric]:
        """Nothing: families follow from the configuration."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Every family with its samples."""
        yield from self._sources()
        yield from self._records()
        yield from self._edges()
        yield from self._segments()
        yield self._bottleneck()

    def _sources(self) -> Iterator[Metric]:
        running = self._collector.supervised
        rate = family("source_rate")
        up = family("source_up")
        errors = family("source_errors_total")
        restarts = family("operator_restart_total")
        uptime = family("operator_uptime_seconds")
        connections = family("source_connections")
        drops = family("kernel_drops_total")
        breaker = family("circuit_breaker_state")
        for name, each in running.items():
            source = each.source
            rate.add_metric([name, source.kind], self._collector.rates.of(name))
            up.add_metric([name, source.kind], float(source.state is not SourceState.FAILED))
            for reason, count in sorted(source.errors.items()):
                errors.add_metric([name, reason], count)
            restarts.add_metric([name], each.restarts)
            uptime.add_metric([name], time.monotonic() - each.started_s)
            for metric, fact in ((connections, source.connections), (drops, source.kernel_drops)):
                if fact is not None:
                    metric.add_metric([name], fact)
            if source.breaker_state is not None:
                breaker.add_metric([name], source.breaker_state)
        yield from (rate, up, errors, restarts, uptime, connections, drops, breaker)

    def _records(self) -> Iterator[Metric]:
        decisions = family("priority_classifier_decisions_total")
        by_name = {name: family(f"records_{name}_total") for name in ("received", "sealed", "deferred", "dropped")}
        in_flight = family("records_in_flight")
        totals: dict[str, int] = {}
        for (source, priority), account in self._collector.ledger.accounts().items():
            for name, metric in by_name.items():
                metric.add_metric([source, priority.label], getattr(account, name))
            in_flight.add_metric([source, priority.label], account.in_flight)
            totals[priority.label] = totals.get(priority.label, 0) + account.received
        for label, total in totals.items():
            decisions.add_metric([label], total)
        yield from (decisions, *by_name.values(), in_flight)

    def _edges(self) -> Iterator[Metric]:
        occupancy = family("channel_occupancy")
        used = family("channel_used_bytes")
        capacity = family("channel_capacity_bytes")
        stalls = family("channel_stalls_total")
        stalled = family("channel_stalled_seconds_total")
        refused = family("flow_policy_drops_total")
        shed = family("shedding_sink_drops_total")
        overdue = family("timed_sink_deadline_drops_total")
        backlog = family("intake_backlog")
        for channel in self._collector.topology.channels():
            edge, counts = channel.edge, channel.counts
            occupancy.add_metric([edge.name], channel.occupancy)
            used.add_metric([edge.name], channel.used)
            capacity.add_metric([edge.name, edge.policy.value], edge.capacity)
            stalls.add_metric([edge.name], counts.stalls)
            stalled.add_metric([edge.name], counts.stalled_s)
            for priority, count in counts.refused.items():
                refused.add_metric([edge.name, edge.policy.value, priority], count)
            total = sum(counts.refused.values())
            if edge.policy is not OverflowPolicy.BLOCK:
                (shed if edge.policy is OverflowPolicy.SHED else overdue).add_metric([edge.name], total)
        for zone, entry in self._collector.zones().items():
            backlog.add_metric([zone], entry.pressure.backlog)
        yield from (occupancy, used, capacity, stalls, stalled, refused, shed, overdue, backlog)

    def _segments(self) -> Iterator[Metric]:
        segments = family("segments_sealed_total")
        size = family("sink_bytes_written_total")
        failures = family("seal_failures")
        latency = family("seal_latency_seconds")
        for sealer in self._collector.sealers:
            at = [sealer.zone, sealer.priority.label]
            segments.add_metric(at, sealer.segments)
            size.add_metric(at, sealer.sealed_bytes)
            failures.add_metric(at, sealer.failures)
            latency.add_metric(at, sealer.latency.buckets(), sealer.latency.sum_s)
        yield from (segments, size, failures, latency)

    def _bottleneck(self) -> Any:
        shown = family("bottleneck")
        name = self._collector.occupancy.bottleneck()
        if name is not None:
            shown.add_metric([name], 1.0)
        return shown
