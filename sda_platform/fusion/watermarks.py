"""Watermarks: up to which event time each kind of source, and so the fusion, is complete.

The watermark of a kind is its newest event time less its lateness bound. While a kind is silent, it advances with what
the others still bring (E20); one that never reported has none, and until each has one, nothing is closed (DP3-F4). The
pipeline's watermark is the least of them. A window is closed once the watermark has passed its end by the allowed
lateness; what arrives for it later is counted, left out, and told as a dead letter (DP3-I15, E12).
"""

from collections.abc import Mapping
from dataclasses import dataclass

PIPELINE = "pipeline"
WINDOWS_IN_TERM = 10


@dataclass(frozen=True)
class Lateness:
    """How late each awaited kind may be, and from when a silent one counts as idle; all nanoseconds."""

    bound_ns: Mapping[str, int]
    allowed_ns: int
    idle_after_ns: int


@dataclass(frozen=True)
class Arrivals:
    """What a commit brought of each kind of source: newest event time and newest time of reception, ns."""

    event_ns: Mapping[str, int]
    received_ns: Mapping[str, int]


def advance(previous: Mapping[str, int], arrived: Arrivals, lateness: Lateness, as_of_ns: int) -> dict[str, int]:
    """The watermarks by source kind, and ``pipeline`` once every awaited kind has reported, after ``arrived``.

    None ever moves back (DP3-I10), and none passes the mission clock. A kind is silent as measured by receptions, not
    by the clock: a platform that was down and works off its backlog must not close windows whose data still waits.
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
    """Start of the tumbling window that holds ``event_ns``; windows align to the Unix epoch (DP3-I7)."""
    return event_ns - event_ns % window_ns


def term_of(event_ns: int, window_ns: int) -> int:
    """Start of the term that holds ``event_ns``: clocks are estimated from, and corrected over, so many windows."""
    return window_start(event_ns, WINDOWS_IN_TERM * window_ns)


def first_open_window(watermark_ns: int, window_ns: int, lateness: Lateness) -> int:
    """Start of the first window that still takes late data: what was measured before belongs to closed ones."""
    return window_start(watermark_ns - lateness.allowed_ns, window_ns)
