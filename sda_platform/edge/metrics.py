"""Metrics in Prometheus' text format, read from the live objects when they are asked for."""

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector as Family

from sda_platform.edge.channel import OverflowPolicy
from sda_platform.edge.collector import Collector
from sda_platform.edge.sources.source import SourceState


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
        rate = GaugeMetricFamily("source_rate", "Records per second, mean over 30 s.", labels=["source", "kind"])
        up = GaugeMetricFamily("source_up", "1 while the source has not failed.", labels=["source", "kind"])
        errors = CounterMetricFamily("source_errors", "What a source refused, by reason.", labels=["source", "reason"])
        restarts = CounterMetricFamily("operator_restart", "Restarts of a source.", labels=["operator"])
        uptime = GaugeMetricFamily("operator_uptime_seconds", "Since its last start.", labels=["operator"])
        connections = GaugeMetricFamily("source_connections", "Open connections.", labels=["source"])
        drops = CounterMetricFamily("kernel_drops", "Datagrams that the kernel dropped.", labels=["source"])
        breaker = GaugeMetricFamily("circuit_breaker_state", "0 closed, 1 open, 2 half-open.", labels=["breaker"])
        for name, each in running.items():
            source = each.source
            rate.add_metric([name, source.kind], self._collector.rates.of(name))
            up.add_metric([name, source.kind], float(source.state is not SourceState.FAILED))
            for reason, count in sorted(source.errors.items()):
                errors.add_metric([name, reason], count)
            restarts.add_metric([name], each.restarts)
            uptime.add_metric([name], time.monotonic() - each.started_s)
            for family, fact in ((connections, source.connections), (drops, source.kernel_drops)):
                if fact is not None:
                    family.add_metric([name], fact)
            if source.breaker_state is not None:
                breaker.add_metric([name], source.breaker_state)
        yield from (rate, up, errors, restarts, uptime, connections, drops, breaker)

    def _records(self) -> Iterator[Metric]:
        labels = ["source", "priority"]
        decisions = CounterMetricFamily("priority_classifier_decisions", "Records by priority.", labels=["priority"])
        by_name = {
            name: CounterMetricFamily(f"records_{name}", text, labels=labels)
            for name, text in (
                ("received", "Records received."),
                ("sealed", "Records in sealed segments."),
                ("deferred", "Records that took the way round a burst."),
                ("dropped", "Records that were dropped by policy."),
            )
        }
        in_flight = GaugeMetricFamily("records_in_flight", "Records in memory.", labels=labels)
        totals: dict[str, int] = {}
        for (source, priority), account in self._collector.ledger.accounts().items():
            for name, family in by_name.items():
                family.add_metric([source, priority.label], getattr(account, name))
            in_flight.add_metric([source, priority.label], account.in_flight)
            totals[priority.label] = totals.get(priority.label, 0) + account.received
        for label, total in totals.items():
            decisions.add_metric([label], total)
        yield from (decisions, *by_name.values(), in_flight)

    def _edges(self) -> Iterator[Metric]:
        occupancy = GaugeMetricFamily("channel_occupancy", "Share of the capacity in use.", labels=["edge"])
        used = GaugeMetricFamily("channel_used_bytes", "Bytes in use.", labels=["edge"])
        capacity = GaugeMetricFamily("channel_capacity_bytes", "Declared capacity.", labels=["edge", "policy"])
        stalls = CounterMetricFamily("channel_stalls", "How often a sender waited.", labels=["edge"])
        stalled = CounterMetricFamily("channel_stalled_seconds", "How long senders waited.", labels=["edge"])
        refused = CounterMetricFamily(
            "flow_policy_drops", "Records that an edge refused, by its policy.", labels=["edge", "policy", "priority"]
        )
        shed = CounterMetricFamily("shedding_sink_drops", "Records refused on edges that shed.", labels=["edge"])
        overdue = CounterMetricFamily("timed_sink_deadline_drops", "Records refused at a deadline.", labels=["edge"])
        backlog = GaugeMetricFamily("intake_backlog", "What waits in a zone, share of what may wait.", labels=["zone"])
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
        labels = ["zone", "priority"]
        segments = CounterMetricFamily("segments_sealed", "Sealed segments.", labels=labels)
        size = CounterMetricFamily("sink_bytes_written", "Bytes in sealed segments.", labels=labels)
        failures = GaugeMetricFamily("seal_failures", "Failed attempts in a row.", labels=labels)
        latency = HistogramMetricFamily("seal_latency_seconds", "From the socket into a segment.", labels=labels)
        for sealer in self._collector.sealers:
            at = [sealer.zone, sealer.priority.label]
            segments.add_metric(at, sealer.segments)
            size.add_metric(at, sealer.sealed_bytes)
            failures.add_metric(at, sealer.failures)
            latency.add_metric(at, sealer.latency.buckets(), sealer.latency.sum_s)
        yield from (segments, size, failures, latency)

    def _bottleneck(self) -> Metric:
        family = GaugeMetricFamily("bottleneck", "1 for the edge in front of the slowest stage.", labels=["edge"])
        name = self._collector.occupancy.bottleneck()
        if name is not None:
            family.add_metric([name], 1.0)
        return family
