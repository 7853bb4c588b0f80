"""Watermarks: up to which event time each kind of source, and so the fusion, is complete.

The watermark of a source kind is its newest event time less its lateness bound; one that has been silent advances
with the mission clock instead (E20). The pipeline's watermark is the least of them. A window is closed once the
watermark has passed its end by the allowed lateness; what arrives for it later is counted, left out, and told as a
dead letter (DP3-I15, E12).
"""

from collections.abc import Mapping
from dataclasses import dataclass

PIPELINE = "pipeline"


@dataclass(frozen=True)
class Lateness:
    """How late each kind may be, and from when a silent one counts as idle; all nanoseconds."""

    bound_ns: Mapping[str, int]
    allowed_ns: int
    idle_after_ns: int


def advance(
    previous: Mapping[str, int], newest_event_ns: Mapping[str, int], lateness: Lateness, as_of_ns: int
) -> dict[str, int]:
    """The watermarks by source kind, and ``pipeline``, after events up to ``newest_event_ns`` arrived.

    None ever moves back (DP3-I10). A kind that never reported holds nobody up once it is idle.
    """
    marks: dict[str, int] = {}
    for kind, bound in lateness.bound_ns.items():
        seen = newest_event_ns.get(kind)
        reported = min(seen, as_of_ns) - bound if seen is not None else previous.get(kind, 0)
        idle = as_of_ns - bound - lateness.idle_after_ns
        marks[kind] = max(reported, idle, previous.get(kind, 0))
    return {**marks, PIPELINE: max(min(marks.values()), previous.get(PIPELINE, 0))}


def window_start(event_ns: int, window_ns: int) -> int:
    """Start of the tumbling window that holds ``event_ns``; windows align to the Unix epoch (DP3-I7)."""
    return event_ns - event_ns % window_ns


def first_open_window(watermark_ns: int, window_ns: int, lateness: Lateness) -> int:
    """Start of the first window that still takes late data: what was measured before belongs to closed ones."""
    return window_start(watermark_ns - lateness.allowed_ns, window_ns)
