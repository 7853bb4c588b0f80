"""The least burn of a satellite that brings its risk to a goal, verified by numerical integration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.conjunction.best_states import BestStates
from sda_platform.conjunction.planned_trajectory import Burn, SizedBurns, burned
from sda_platform.conjunction.whatif import Encounter, Scene, total

_BURN_TIMES, _FIRST_M_S, _LADDER, _STEPS, _MOST_SCREENED, _MOST_KNOWN = 24, 1e-3, 1.3, 16, 6, 40
# The search among burns leaves this to the integration that verifies its result.
_SEARCH_MARGIN = 0.8


@dataclass(frozen=True)
class Avoidance:
    """A burn before all events above the goal, after which none is, and all encounters with it, integrated numerically.

    ``screened`` burns were screened in full. The sums of Pc are those of events later than the burn.
    """

    burn: Burn
    dv_m_s: float
    after: tuple[Encounter, ...]
    screened: int
    total_before: float
    total_after: float


@dataclass(frozen=True)
class Obstacle:
    """Why no burn was found: the one that came nearest, and the event that it leaves above the goal, with its Pc then.

    ``raises_total``: the goal is met, but the sum over all events is larger than before.
    """

    burn: Burn
    encounter: Encounter
    raises_total: bool = False


def least_burn(
    scene: Scene,
    before: Sequence[Encounter],
    window: tuple[int, int],
    goal: float,
    most_m_s: float,
    *,
    burn_times: int = _BURN_TIMES,
) -> Avoidance | Obstacle | None:
    """Return the smallest burn along the track within ``window`` (ns) after which every later event is at or below
    ``goal``; None: every event after the beginning of ``window`` is, without a burn.

    The burn is before each event above the goal that comes after the beginning of ``window``. Burns at ``burn_times``
    times and in both directions are tried against the known events by their 2D Pc. The smallest six are then integrated
    numerically and screened in full. The smallest of them without an event above the goal is taken, unless it raises
    the sum of Pc. Without one of at most ``most_m_s`` the obstacle is named.
    """
    above_ns = [each.tca_ns for each in before if each.tca_ns > window[0] and each.probability > goal]
    if not above_ns:
        return None
    last_ns, is_cut = min(window[1], *above_ns), min(above_ns) <= window[1]
    worst_first = sorted(before, key=lambda each: -each.probability)[:_MOST_KNOWN]
    tca_ns = np.array([each.tca_ns for each in worst_first], np.int64)
    own = scene.unchanged.near(tca_ns)
    other = scene.known.of(np.array([each.norad_id for each in worst_first], np.int64), tca_ns)
    found: list[tuple[float, Burn]] = []
    nearest: list[tuple[float, Obstacle]] = []
    for time_ns in np.linspace(window[0], last_ns, burn_times, endpoint=not is_cut).astype(np.int64).tolist():
        rows = np.flatnonzero(tca_ns > time_ns)
        later = _Later(scene, own.take(rows), other.take(rows), tca_ns[rows])
        for sign in (1.0, -1.0):
            size, left, position = later.smallest(time_ns, sign, goal, most_m_s)
            burn = Burn(time_ns, (0.0, sign * size, 0.0))
            if position is None:
                found.append((size, burn))
            else:
                nearest.append((left, Obstacle(burn, replace(worst_first[rows[position]], probability=left))))
    smallest = sorted(found, key=lambda each: each[0])[:_MOST_SCREENED]
    paths = [burned(scene.unchanged, [burn], scene.errors) for _, burn in smallest]
    screened = scene.encounters_of(paths) if paths else []
    for (size, burn), after in zip(smallest, screened, strict=True):
        remaining = [each for each in after if each.tca_ns > burn.time_ns]
        worst = max(remaining, key=lambda each: each.probability, default=None)
        sums = total(before, burn.time_ns), total(after, burn.time_ns)
        meets = worst is None or worst.probability <= goal
        if meets and sums[1] <= sums[0]:
            return Avoidance(burn, size, after, len(smallest), *sums)
        if worst is not None:
            nearest.append((max(worst.probability, sums[1] if meets else 0.0), Obstacle(burn, worst, meets)))
    return min(nearest, key=lambda each: each[0])[1]


@dataclass(frozen=True, eq=False)
class _Later:
    """Known encounters (n,) after a time, for a search among burns at that time."""

    scene: Scene
    own: BestStates
    other: BestStates
    tca_ns: IntArray

    def smallest(self, time_ns: int, sign: float, goal: float, most_m_s: float) -> tuple[float, float, int | None]:
        """Return the smallest burn along the track, m/s, that brings all encounters to ``goal``, with a margin if one
        does.

        Without one: the largest burn, what it leaves, and the position of that encounter.
        """
        if not len(self.tca_ns):
            return min(_FIRST_M_S, most_m_s), 0.0, None
        count = 1 + max(0, int(np.ceil(np.log(most_m_s / _FIRST_M_S) / np.log(_LADDER))))
        sizes = np.minimum(_FIRST_M_S * _LADDER ** np.arange(count), most_m_s)
        left = self._left_by(time_ns, sign, sizes)
        worst, limit = left.max(axis=1), _SEARCH_MARGIN * goal
        if not (worst <= limit).any():
            limit = goal
        meets = np.flatnonzero(worst <= limit)
        if not len(meets):
            return float(sizes[-1]), float(left[-1].max()), int(left[-1].argmax())
        low = sizes[meets[0] - 1] if meets[0] else 0.0
        finer = np.linspace(low, sizes[meets[0]], _STEPS + 1)[1:]
        is_met = self._left_by(time_ns, sign, finer).max(axis=1) <= limit
        return float(finer[int(np.argmax(is_met))] if is_met.any() else sizes[meets[0]]), 0.0, None

    def _left_by(self, time_ns: int, sign: float, size_m_s: FloatArray) -> FloatArray:
        """2D Pc (k, n) of all encounters after a burn of each size (k,)."""
        scene, count = self.scene, len(size_m_s)
        rows = np.tile(np.arange(len(self.tca_ns)), count)
        own = SizedBurns(scene.unchanged, time_ns, (0.0, sign, 0.0), size_m_s, self.own.take(rows), scene.errors)
        return scene.probability_2d(own, self.other.take(rows), self.tca_ns[rows]).reshape(count, -1)
