"""When a batch was where: from reception to the subscriber, for an alert; the facts behind the page and the trace."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.observability.lineage import Stage, stages

_NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class TimelineSpan:
    """A part of a batch's way. ``began_ns`` and ``ended_ns`` are mission time; ``facts`` are for people.

    ``parents``: the indices of the spans that it consumed.
    """

    name: str
    began_ns: int
    ended_ns: int
    facts: dict[str, str | int]
    parents: tuple[int, ...] = ()

    @property
    def duration_s(self) -> float:
        """Compute how long the span took, seconds."""
        return (self.ended_ns - self.began_ns) / 1e9


@dataclass(frozen=True)
class AlertTimeline:
    """The way of the batch with which an alert entry was delivered; ``spans`` in the order of their ends."""

    alert_id: str
    delivery: str
    spans: Sequence[TimelineSpan]

    @property
    def total_s(self) -> float:
        """From the first instant to the last, seconds."""
        return (max(s.ended_ns for s in self.spans) - min(s.began_ns for s in self.spans)) / 1e9


def timelines(lake: Lake, alert_id: str, deliveries: Sequence[int]) -> list[AlertTimeline]:
    """Return the timeline of each commit of `alert_deliveries` with these sequences that the log still holds."""
    log = lake.log(ALERT_DELIVERIES)
    found = (log.find(sequence) for sequence in sorted(set(deliveries)))
    return [timeline(lake, alert_id, commit) for commit in found if commit]


def timeline(lake: Lake, alert_id: str, delivery: Commit) -> AlertTimeline:
    """Return the way of the batch that the commit ``delivery`` of `alert_deliveries` ended."""
    spans: list[TimelineSpan] = []
    index: dict[tuple[str, int], int] = {}
    for stage in stages(lake, ALERT_DELIVERIES, delivery):
        if stage.commit.manifest.segments:
            spans.append(_landed(lake, stage))
        began_ns = stage.commit.manifest.as_of_ns
        ended_ns = max(_committed_ns(lake, stage.commit), began_ns)
        parents = tuple(index[key] for key in stage.consumed if key in index)
        landed = (len(spans) - 1,) if stage.commit.manifest.segments else ()
        spans.append(TimelineSpan(stage.table.name, began_ns, ended_ns, _facts(stage), (*landed, *parents)))
        index[stage.key] = len(spans) - 1
    return AlertTimeline(alert_id, f"commit {delivery.sequence} of {ALERT_DELIVERIES.name}", spans)


def _landed(lake: Lake, stage: Stage) -> TimelineSpan:
    """From the first reception of its records until the plan that took their segments."""
    segments = stage.commit.manifest.segments
    span = (stage.commit.sequence - 1, stage.commit.sequence)
    received = lake.log(stage.table).rows_of(span, ["received_time_ns"]).column("received_time_ns")
    planned_ns = stage.commit.manifest.as_of_ns
    first_ns = min(pc.min(received).as_py() or planned_ns, planned_ns)
    names = ", ".join(f"{segment.zone}/{segment.name}" for segment in segments[:5])
    facts: dict[str, str | int] = {"segments": len(segments), "names": names}
    return TimelineSpan("received, sealed and pending", first_ns, planned_ns, facts)


def _committed_ns(lake: Lake, commit: Commit) -> int:
    return lake.clock.now_ns(commit.timestamp_ms * _NS_PER_MS)


def _facts(stage: Stage) -> dict[str, str | int]:
    manifest = stage.commit.manifest
    return {
        "sequence": manifest.sequence,
        "version": stage.commit.version,
        "rows": stage.commit.rows_written,
        "run": manifest.run_id,
        "consumed": ", ".join(map(str, manifest.windows)),
    }
