"""Samples of what the processes export, sealed into the landing zone of table `pipeline_metrics`."""

from collections.abc import Callable, Iterator, Mapping
from math import isfinite

from prometheus_client.parser import text_string_to_metric_families

from sda_platform.clock import MissionClock
from sda_platform.edge.report_client import NoReport, fetch_metrics
from sda_platform.formats.metric_values import MetricValue, encode_metric_values
from sda_platform.formats.segments import Sender
from sda_platform.landing.zone import LandingZone

Exported = Callable[[], str]
"""What one process exports now, in Prometheus' text format. Raises NoReport."""
_FORMAT = "metrics-jsonl"

_SENDER = "platform metrics"


class MetricsRecorder:
    """Samples ``processes``, by name, at intervals of ``interval_s``; the first time when one has passed.

    A sample that the landing zone does not take is made again at the next round, from the values of that moment.
    """

    def __init__(
        self, zone: LandingZone, clock: MissionClock, processes: Mapping[str, Exported], interval_s: float
    ) -> None:
        self._zone, self._clock, self._processes, self._interval_s = zone, clock, processes, interval_s
        self._last_s: float | None = None

    def round(self, now_s: float) -> int:
        """Seal a sample if one is due at ``now_s`` (monotonic seconds); how many values it has.

        A process that does not answer is left out. Raises OSError if the landing zone takes no segment.
        """
        if self._last_s is None:
            self._last_s = now_s
        if now_s - self._last_s < self._interval_s:
            return 0
        sampled_ns = self._clock.now_ns()
        values = [value for name, read in self._processes.items() for value in sampled(name, read, sampled_ns)]
        if values:
            data = encode_metric_values(values)
            self._zone.seal_at(sampled_ns, f"metrics-{sampled_ns}.metrics", data, _FORMAT, sender=Sender(_SENDER))
        self._last_s = now_s
        return len(values)


def sampled(process: str, read: Exported, sampled_ns: int) -> Iterator[MetricValue]:
    """Yield the finite values that ``process`` exports; none if it does not answer."""
    try:
        text = read()
    except NoReport:
        return
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if isfinite(sample.value):
                metric = family.name if family.type != "counter" else sample.name
                yield MetricValue(process, metric, sample.name, sample.labels, sample.value, sampled_ns)


def collector_metrics(control: str | None) -> str:
    """Read the metrics of the collector at ``control`` (host:port). Raises NoReport, also where none runs."""
    if control is None:
        raise NoReport("no collector runs")
    return fetch_metrics(control)
