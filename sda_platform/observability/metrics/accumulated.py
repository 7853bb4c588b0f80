"""Metrics since the start of a process: samples added up as Prometheus expects them, and shown as its text."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from sda_platform.observability.metrics.samples import MetricSample
from sda_platform.telemetry import METRICS, ExportedMetrics, MetricKind, family

BOUNDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 3600.0)
"""Upper bounds of histograms in seconds; those in ms have a thousand times as much."""


@dataclass
class Buckets:
    """A histogram: counts by upper bound, the last without one, and the sum."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def add(self, value: float) -> None:
        """Count one observation."""
        self.counts = self.counts or [0] * (len(self.bounds) + 1)
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        """Yield each upper bound with the number of observations up to it."""
        reached, found = 0, []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            reached += count
            found.append((bound, float(reached)))
        return found


class AccumulatedMetrics(ExportedMetrics):
    """The newest value of gauges, the sum of counters and the buckets of histograms, by metric and labels."""

    def __init__(self) -> None:
        self._values: defaultdict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
        self._buckets: defaultdict[str, dict[tuple[str, ...], Buckets]] = defaultdict(dict)

    def add(self, samples: Iterable[MetricSample]) -> None:
        """Add ``samples``. Raises KeyError for a metric that the catalogue lacks."""
        for sample in samples:
            kind = METRICS[sample.metric].kind
            if kind is MetricKind.HISTOGRAM:
                scale = 1000.0 if sample.metric.endswith("_ms") else 1.0
                fresh = Buckets(tuple(bound * scale for bound in BOUNDS))
                self._buckets[sample.metric].setdefault(sample.labels, fresh).add(sample.value)
            else:
                before = self._values[sample.metric].get(sample.labels, 0.0) if kind is MetricKind.COUNTER else 0.0
                self._values[sample.metric][sample.labels] = before + sample.value

    def replace(self, samples: Iterable[MetricSample]) -> None:
        """Show of each gauge that ``samples`` has these values only."""
        given = list(samples)
        for metric in {sample.metric for sample in given}:
            self._values[metric] = {}
        self.add(given)

    def clear(self, metric: str) -> None:
        """Show no value of ``metric``."""
        self._values.pop(metric, None)

    def value(self, metric: str, *labels: str) -> float | None:
        """Return the value of a counter or gauge; None where there is none."""
        return self._values[metric].get(labels)

    def collect(self) -> Iterator[Any]:
        """Yield every metric family with its samples."""
        for metric, values in list(self._values.items()):
            shown = family(metric)
            for labels, value in list(values.items()):
                shown.add_metric(list(labels), value)
            yield shown
        for metric, buckets in list(self._buckets.items()):
            shown = family(metric)
            for labels, each in list(buckets.items()):
                shown.add_metric(list(labels), each.cumulative(), each.total)
            yield shown
