"""Slow approaches by the best states: the closest approach and the stay in the volume along the paths themselves.

A slow pair moves on a curve, so that a straight path through its closest approach has neither. Both objects are sampled
every minute for a day on either side.
"""

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.conjunction.best_states import BestStates
from sda_platform.orbits.screening.encounter import rotating_frame_states
from sda_platform.orbits.screening.slow_approaches import NEIGHBOURHOOD_NS, SAMPLE_S, run_length
from sda_platform.orbits.screening.volumes import Volume
from sda_platform.units import SECOND_NS

_SAMPLE_NS = SAMPLE_S * SECOND_NS
_OFFSETS_NS = np.arange(-NEIGHBOURHOOD_NS, NEIGHBOURHOOD_NS + 1, _SAMPLE_NS)


def slow_tca_ns(sides: tuple[BestStates, BestStates], row: int, tca_ns: int) -> int:
    """Return the closest approach of pair ``row`` that is reached downhill from ``tca_ns``; without one, ``tca_ns``."""
    place, _ = _sampled(sides, row, tca_ns)
    square = np.asarray((place**2).sum(axis=-1))
    here = len(square) // 2
    while 0 < here < len(square) - 1:
        lower = here - 1 if square[here - 1] < square[here + 1] else here + 1
        if not square[lower] < square[here]:
            bend = square[here - 1] - 2 * square[here] + square[here + 1]
            shift = 0.5 * (square[here - 1] - square[here + 1]) / bend if bend > 0 else 0.0
            return tca_ns + int(_OFFSETS_NS[here]) + round(float(np.clip(shift, -1, 1)) * _SAMPLE_NS)
        here = lower
    return tca_ns


def stay_s(sides: tuple[BestStates, BestStates], row: int, tca_ns: int, volume: Volume) -> float:
    """Compute how long pair ``row`` stays inside ``volume`` of the first object about ``tca_ns``, seconds.

    To a minute; at most a day is counted before and after. 0: it is outside at ``tca_ns`` and in the minutes about it.
    """
    place, rate = _sampled(sides, row, tca_ns)
    inside = volume.planes(place)[0].max(axis=-1) <= 0
    middle = len(inside) // 2
    before, after = (run_length(side) for side in (inside[: middle + 1][::-1], inside[middle:]))
    within_sample_s = float(np.nan_to_num(volume.time_inside_s(place[[middle]], rate[[middle]])[0]))
    return max((before + after - 2) * SAMPLE_S, min(within_sample_s, SAMPLE_S)) if before else 0.0


def _sampled(sides: tuple[BestStates, BestStates], row: int, tca_ns: int) -> tuple[FloatArray, FloatArray]:
    """Position (t, 3) and rate (t, 3) of the second object in the rotating axes of the first."""
    rows: IntArray = np.full(len(_OFFSETS_NS), row)
    (r1, v1), (r2, v2) = (side.take(rows).path(tca_ns + _OFFSETS_NS) for side in sides)
    return rotating_frame_states(r1, v1, r2, v2)
