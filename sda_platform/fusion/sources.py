"""State of the sources: what a commit received, how late it was, and which sources are silent.

The state between commits is stored among the watermarks. ``heard/<source>`` is the newest event time of one sensor;
``awaited/<kind>`` the time since which a kind that never reported holds the windows open.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.clock import iso
from sda_platform.fusion.watermarks import Arrivals
from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.units import DAY_NS, MINUTE_NS, SECOND_NS

HEARD, AWAITED = "heard/", "awaited/"
ORBITING: str = "optical-orbit"
"""The one source that all observers in orbit are (``optical-orbit-51985``): thousands, each silent for hours."""
_LINK = "isl-"
ARRIVAL_COLUMNS = ("source_kind", "source_id", "sensor_time_ns", "received_time_ns")
# After this time a kind that never reported is an error: the windows that it holds open stall.
AWAITED_GRACE_NS = MINUTE_NS
# A healthy source of these feeds always has something to report; a telescope has days and clouds.
_CONTINUOUS_NS = 600 * SECOND_NS
# A source silent for this long is dropped, so that the list stays bounded.
_DROPPED_AFTER_NS = 7 * DAY_NS
_NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Silence:
    """A silent source or kind; ``since_ns`` is its last report or the start of waiting."""

    source: str
    since_ns: int
    never_reported: bool

    def lasted_s(self, now_ns: int) -> float:
        """Return seconds of silence."""
        return (now_ns - self.since_ns) / SECOND_NS

    def describe(self, now_ns: int) -> str:
        """Text with source, duration and consequence."""
        silent_s = self.lasted_s(now_ns)
        if self.never_reported:
            return (
                f"{self.source} never reported, awaited since {iso(self.since_ns)} ({silent_s:,.0f} s): no window can "
                "close; if there is no such source, leave it out of SDA_SOURCES"
            )
        return f"{self.source} silent for {silent_s:,.0f} s, last received {iso(self.since_ns)}"


def arrivals(arrived: pa.Table) -> Arrivals:
    """Return the newest event and reception of each kind among new observations."""
    newest = arrived.group_by("source_kind").aggregate([("sensor_time_ns", "max"), ("received_time_ns", "max")])
    rows = newest.to_pylist()
    return Arrivals(
        {row["source_kind"]: row["sensor_time_ns_max"] for row in rows},
        {row["source_kind"]: row["received_time_ns_max"] for row in rows},
    )


def source_watermarks(
    previous: Mapping[str, int], arrived: pa.Table, marks: Mapping[str, int], awaited: Mapping[str, int], as_of_ns: int
) -> dict[str, int]:
    """Source state for the next commit: newest event time by source, and ``awaited`` kinds without a report."""
    received = heard_marks(previous, arrived, as_of_ns)
    known = {name: at for name, at in received.items() if as_of_ns - at < _DROPPED_AFTER_NS}
    missing = {f"{AWAITED}{kind}" for kind in awaited if kind not in marks}
    return {**known, **{name: previous.get(name, as_of_ns) for name in sorted(missing)}}


def heard_marks(previous: Mapping[str, int], arrived: pa.Table, as_of_ns: int) -> dict[str, int]:
    """Newest event time by source (``heard/<source>``), of the marks before and of what ``arrived``."""
    received = {name: at for name, at in previous.items() if name.startswith(HEARD)}
    for row in arrived.group_by("source_id").aggregate([("sensor_time_ns", "max")]).to_pylist():
        source = row["source_id"]
        name = f"{HEARD}{ORBITING if source.startswith(ORBITING) else source}"
        # A clock that runs ahead does not keep its source from being silent.
        received[name] = max(received.get(name, 0), min(row["sensor_time_ns_max"], as_of_ns))
    return received


def heard_sources(marks: Mapping[str, int]) -> dict[str, int]:
    """Return by source the time of its newest observation, by the marks of a commit."""
    return {name.removeprefix(HEARD): at for name, at in sorted(marks.items()) if name.startswith(HEARD)}


def silences(
    marks: Mapping[str, int],
    now_ns: int,
    *,
    known_upto: Mapping[str, int] | None = None,
    excused_upto: Mapping[str, int] | None = None,
    all_after_ns: int = 0,
) -> list[Silence]:
    """Sources silent for longer than their feed allows, by the time at which each was heard last.

    ``known_upto``: by kind, the instant up to which arrivals are known, where segments wait to be read; silence counts
    until then. ``excused_upto``: by source, the instant from which its silence counts. ``all_after_ns``: if all sources
    that report without pause are silent for longer, they are one silence, and each that was so before is another.
    """
    excused = excused_upto or {}
    upto = {feed.name: min((known_upto or {}).get(feed.name, now_ns), now_ns) for feed in OBSERVATION_FEEDS}
    found = [
        Silence(name.removeprefix(AWAITED), since_ns, True)
        for name, since_ns in sorted(marks.items())
        if name.startswith(AWAITED) and now_ns - since_ns > AWAITED_GRACE_NS
    ]
    limits = {feed.name: feed.max_silence_ns for feed in OBSERVATION_FEEDS}
    kinds = {source: source.partition("-")[0] for source in heard_sources(marks)}
    heard = {
        source: at
        for source, at in heard_sources(marks).items()
        if upto.get(kinds[source], now_ns) - excused.get(source, 0) > limits.get(kinds[source], 0)
    }
    continuous = {source: at for source, at in heard.items() if limits.get(kinds[source], 0) == _CONTINUOUS_NS}
    silent_ns = [upto[kinds[source]] - at for source, at in continuous.items()]
    if all_after_ns and len(silent_ns) > 1 and min(silent_ns) > all_after_ns:
        names = ", ".join(sorted({kinds[source] for source in continuous}))
        since_ns = max(continuous.values())
        found.append(Silence(f"every source of {names}", since_ns, False))
        # One that was silent before the others stays a fault of its own.
        heard = {s: at for s, at in heard.items() if s not in continuous or since_ns - at > all_after_ns}
    for source, heard_ns in heard.items():
        if upto.get(kinds[source], now_ns) - heard_ns > limits.get(kinds[source], 0):
            found.append(Silence(source, heard_ns, False))
    return found


def unlisted(sources: Iterable[str], sensors: Container[str]) -> list[str]:
    """Return those of ``sources`` that the list of ground sensors lacks, so that no fit uses what they observe.

    Satellites and observers in orbit state where they are, and are not listed.
    """
    return sorted({name for name in sources if not name.startswith((ORBITING, _LINK)) and name not in sensors})


def lags_ms(arrived: pa.Table, as_of_ns: int) -> dict[str, int]:
    """Median lags of the arrived observations by kind: source lag until reception and pipeline lag since.

    An observation received before it was measured counts as ``skewed``, with zero lag.
    """
    source_ns = pc.subtract(arrived["received_time_ns"], arrived["sensor_time_ns"])
    counts = {"skewed": pc.sum(pc.less(source_ns, 0)).as_py() or 0}
    for kind in sorted(pc.unique(arrived["source_kind"]).to_pylist()):
        of_kind = pc.equal(arrived["source_kind"], kind)
        ours_ns = pc.subtract(as_of_ns, arrived["received_time_ns"].filter(of_kind))
        theirs_ns = pc.max_element_wise(source_ns.filter(of_kind), 0)
        counts[f"{kind}_source_lag_ms"] = _median(theirs_ns) // _NS_PER_MS
        counts[f"{kind}_pipeline_lag_ms"] = max(_median(ours_ns), 0) // _NS_PER_MS
    return counts


def _median(values: Any) -> int:
    # An element of the list, not a mean of two: the same whatever the order.
    return int(pc.quantile(values, 0.5, interpolation="lower")[0].as_py())
