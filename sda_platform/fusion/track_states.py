"""Track states: new, confirmed, coasting, lost. A pure fold over the windows in which the object was observed.

With hysteresis: a single window neither confirms a track nor ends its coasting, and a gap of one or two windows does
not start it. Time alone moves a track towards lost; only windows move it towards confirmed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from sda_platform.units import DAY_NS, SECOND_NS

NEW, CONFIRMED, COASTING, LOST = STATES = ("new", "confirmed", "coasting", "lost")


@dataclass(frozen=True)
class LifeRules:
    """Conditions of state changes: nanoseconds of event time, and counts of windows."""

    confirming_windows: int = 3
    returning_windows: int = 2
    streak_gap_ns: int = 120 * SECOND_NS
    """A longer gap between windows ends a streak; a confirmed track unobserved for this long coasts."""
    new_lost_after_ns: int = 600 * SECOND_NS
    lost_after_ns: int = DAY_NS


@dataclass(frozen=True)
class Life:
    """State of a track; ``streak`` counts its latest windows without a gap."""

    state: str
    since_ns: int
    last_seen_ns: int
    streak: int


def life_of(seen_ns: Sequence[int], now_ns: int, before: Life | None = None, rules: LifeRules = LifeRules()) -> Life:
    """Return the state, at ``now_ns``, of a track observed at these times, ascending, after the state ``before``.

    Raises ValueError for a track without observations and without a state before.
    """
    life = before
    gaps = np.flatnonzero(np.diff(np.asarray(seen_ns, np.int64)) > rules.streak_gap_ns) + 1
    cuts = [0, *gaps.tolist(), len(seen_ns)]
    for start, end in pairwise(cuts):
        if start < end:
            life = seen(life, seen_ns[start:end], rules)
    if life is None:
        raise ValueError("a track that was never seen has no life")
    return passed(life, now_ns, rules)


def born(time_ns: int) -> Life:
    """A track with its first window."""
    return Life(NEW, time_ns, time_ns, 1)


def seen(life: Life | None, times_ns: Sequence[int], rules: LifeRules) -> Life:
    """After more windows, at least one, without a gap between them; a lost track starts again."""
    before = None if life is None else passed(life, times_ns[0], rules)
    if before is None or before.state == LOST:
        first = born(times_ns[0])
        return seen(first, times_ns[1:], rules) if len(times_ns) > 1 else first
    streak = before.streak if times_ns[0] - before.last_seen_ns <= rules.streak_gap_ns else 0
    after = replace(before, last_seen_ns=times_ns[-1], streak=streak + len(times_ns))
    needed = {NEW: rules.confirming_windows, COASTING: rules.returning_windows}.get(after.state)
    if needed is not None and after.streak >= needed:
        return replace(after, state=CONFIRMED, since_ns=times_ns[max(needed - streak, 1) - 1])
    return after


def passed(life: Life, now_ns: int, rules: LifeRules) -> Life:
    """After time alone; a new state is dated to its beginning."""
    lost_ns = life.last_seen_ns + (rules.new_lost_after_ns if life.state == NEW else rules.lost_after_ns)
    if life.state != LOST and now_ns > lost_ns:
        return replace(life, state=LOST, since_ns=lost_ns)
    coasting_ns = life.last_seen_ns + rules.streak_gap_ns
    if life.state == CONFIRMED and now_ns > coasting_ns:
        return replace(life, state=COASTING, since_ns=coasting_ns)
    return life
