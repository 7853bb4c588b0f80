"""Screening of one span of time in which element sets take over from others: a task that needs no other task's answer.

The span is searched with a margin, so that each minimum that can belong to an encounter at a border is known. What is
found depends on the span only by what lies in it.
"""

from dataclasses import replace

import numpy as np

from sda_platform.arrays import IntArray
from sda_platform.orbits.in_force import Terms
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.piecewise import REACH_NS, within_terms
from sda_platform.orbits.screening.search import ScreeningResult
from sda_platform.orbits.screening.volume_search import counts, screen_volume
from sda_platform.orbits.screening.volumes import Volume

# A minimum in the span, one of the same encounter beyond it, and how far beyond its term that one's row is searched.
_MARGIN_NS = 2 * REACH_NS


def screen_span(
    propagator: Propagator,
    terms: Terms,
    primaries: IntArray,
    secondaries: IntArray,
    start_ns: int,
    end_ns: int,
    volume: Volume,
) -> ScreeningResult:
    """Screen as `screen_volume` over [start, end), where each row counts in its term only.

    ``terms``: when each row of the propagator is in force (row 0 … n-1).
    """
    first_ns, last_ns = start_ns - _MARGIN_NS, end_ns + _MARGIN_NS
    near = (terms.from_ns < last_ns) & (terms.until_ns > first_ns)
    primaries, secondaries = primaries[near[primaries]], secondaries[near[secondaries]]
    searched = np.union1d(primaries, secondaries)
    if (terms.from_ns[searched] <= first_ns).all() and (terms.until_ns[searched] >= last_ns).all():
        return screen_volume(propagator, primaries, secondaries, start_ns, end_ns, volume)
    found = screen_volume(
        propagator, primaries, secondaries, first_ns, last_ns, volume, terms, counted_ns=(start_ns, end_ns)
    )
    kept = within_terms(propagator, terms, found, start_ns, end_ns, volume.searched_km)
    # A minimum at a border is another one than that which was searched.
    return replace(kept, events=kept.events.take(counts(propagator, kept.events, volume))) if volume.sigmas else kept
