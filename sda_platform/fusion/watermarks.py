"""Watermarks: the event time up to which each kind of source, and the fusion, is complete.

The watermark of a kind is its newest event time less its lateness bound. While a kind is silent, it advances with the
receptions of the others. A kind that never reported has none, and until each has one, no window closes. The pipeline's
watermark is the least of them. A window is closed once the watermark has passed its end by the allowed lateness. Later
observations of it are counted, left out, and become dead letters.
"""

from collections.abc import Mapping
from dataclasses import dataclass

PIPELINE = "pipeline"
WINDOWS_IN_TERM = 10


@dataclass(frozen=True)
class Lateness:
    """Lateness bound of each awaited kind, allowed lateness, and silence before a kind counts as idle; nanoseconds."""

    bound_ns: Mapping[str, int]
    allowed_ns: int
    idle_after_ns: int


@dataclass(frozen=True)
class Arrivals:
    """Newest event time and newest time of reception of each kind of source in a commit, ns."""

    event_ns: Mapping[str, int]
    received_ns: Mapping[str, int]


def advance(previous: Mapping[str, int], arrived: Arrivals, lateness: Lateness, as_of_ns: int) -> dict[str, int]:
    """Return the watermarks by source kind after ``arrived``, and ``pipeline`` once every awaited kind has reported.

    None ever moves back, and none passes the mission clock. Silence is measured by receptions, not by the
    clock: a platform that works off a backlog must not close windows with pending data.
    """
    frontier_ns = max(arrived.received_ns.values(), default=0)
    marks: dict[str, int] = {}
    for kind, bound in lateness.bound_ns.items():
        if kind not in arrived.event_ns and kind not in previous:
            continue
        candidates = [min(arrived.received_ns.get(kind, frontier_ns), as_of_ns) - bound - lateness.idle_after_ns]
        if kind in arrived.event_ns:
            candidates.append(min(arrived.event_ns[kind], as_of_ns) - bound)
        marks[kind] = max(*candidates, previous.get(kind, 0))
    if len(marks) == len(lateness.bound_ns):
        marks[PIPELINE] = max(min(marks.values()), previous.get(PIPELINE, 0))
    elif PIPELINE in previous:
        marks[PIPELINE] = previous[PIPELINE]
    return marks


def window_start(event_ns: int, window_ns: int) -> int:
    """Start of the tumbling window that holds ``event_ns``; windows align to the Unix epoch."""
    return event_ns - event_ns % window_ns


def term_of(event_ns: int, window_ns: int) -> int:
    """Start of the term (ten windows) that contains ``event_ns``; biases are estimated and corrected per term."""
    return window_start(event_ns, WINDOWS_IN_TERM * window_ns)


def first_open_window(watermark_ns: int, window_ns: int, lateness: Lateness) -> int:
    """Start of the first window that still accepts late data; earlier windows are closed."""
    return window_start(watermark_ns - lateness.allowed_ns, window_ns)
