"""A night in which telescopes observe."""

from functools import cache

import numpy as np

from sda_platform.arrays import IntArray
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform_tests.support.scenes import SECOND_NS, START_NS, catalogue, observe, visible

SITE = "optical-maui"
LOW, FAR = 12, 8


@cache
def night(seconds: int) -> tuple[IntArray, ObservationArrays]:
    """Which object each sighting of one telescope is of: each is seen every ten seconds, but for one look in ten."""
    rng = np.random.default_rng(3)
    every = visible("optical", START_NS, margin_deg=20.0)
    _, r, _ = catalogue().at(every.index, every.time_ns)
    here, is_low = every.source_id == SITE, np.linalg.norm(r, axis=1) < 8_400
    low, far = (every.index[here & chosen] for chosen in (is_low, ~is_low))
    objects = np.concatenate([rng.choice(low, LOW, replace=False), rng.choice(far, FAR, replace=False)])
    time_ns = START_NS + np.arange(0, seconds + 1, 10) * SECOND_NS + rng.integers(0, SECOND_NS, (len(objects), 1))
    seen = rng.random(time_ns.shape) < 0.9
    index, times = np.broadcast_to(objects[:, None], time_ns.shape)[seen], time_ns[seen]
    order = np.argsort(times, kind="stable")
    index, times = index[order], times[order]
    _, r, v = catalogue().at(index, times)
    return index, observe(np.full(len(times), SITE), times, r, v, rng)
