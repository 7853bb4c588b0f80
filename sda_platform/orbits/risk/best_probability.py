"""Best available probability of collision per pass: the 2D one where it is valid, else one from a more exact method.

Passes with a concern (``validity``) are computed again without the assumption of straight motion
(``collision_rate``). Where pairs may meet repeatedly, so that the expected number of collisions exceeds their
probability, Monte Carlo trials decide (``monte_carlo``). Errors with long tails are split into Gaussian ones, whose
probabilities are averaged (``gaussian_parts``).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.dynamics.numerical import in_threads
from sda_platform.orbits.equinoctial import UncertainOrbit, uncertain_orbit
from sda_platform.orbits.risk.collision_rate import MOST_EVALUATIONS, ExpectedCollisions, expected_collisions
from sda_platform.orbits.risk.deciding_parts import are_diluted, deciding
from sda_platform.orbits.risk.degenerate import is_usable
from sda_platform.orbits.risk.gaussian_parts import Parts, parts_of, stated_risk, straight_probability
from sda_platform.orbits.risk.levels import DILUTED, YELLOW_FROM
from sda_platform.orbits.risk.monte_carlo import Counted, count_collisions
from sda_platform.orbits.risk.probability import ShortEncounterRisk, maximum_over_unknown
from sda_platform.orbits.risk.validity import (
    COVARIANCE_MISSING,
    LACKING,
    Encounters,
    missing_covariances,
)
from sda_platform.orbits.risk.work_budget import WorkBudget, WorkExhausted

FOSTER, HALL, MONTE_CARLO = "FOSTER-1992", "HALL-2021", "MONTE-CARLO"
METHODS = (FOSTER, HALL, MONTE_CARLO)
PERSISTENT, UNRESOLVED = "persistent_encounter", "unresolved_encounter"
EXHAUSTED, UNUSABLE = "work_budget_exhausted", "unusable_input"

# 2D and 3D agree when they differ by less than this part.
_AGREEMENT = 0.02
# Monte Carlo pays where fifty thousand trials contain some fifty collisions or more.
_COUNTABLE = 1e-3
_MOST_TRIALS = 50_000
_FEWEST_HITS = 10
_SEED = 508
# km and km/s: beyond any orbit about the Earth, and small enough to be squared.
_LARGEST_STATE = 1e9
# A pair that is near more than this part of the time at the edge of the window has not separated.
_SEPARATED = 1e-3


@dataclasses.dataclass(frozen=True, eq=False)
class BestProbability:
    """Risk of ``n`` passes.

    Attributes:
        probability: (n,) the best available; NaN where there is none.
        method: of each, one of METHODS.
        standard_error: (n,) of a Monte Carlo probability, NaN for the others.
        valid_2d: of each whether the 2D probability is valid: no concern, or confirmed without straight motion. None:
            unknown, because the input lacks a required covariance.
        probability_for_risk: (n,) determines the risk level: ``probability``, but where ``valid_2d`` is unknown the
            largest of all answers. Where the covariance of one object is missing, these include the largest over all
            that it may have. Where both are, it is NaN unless the known answers are above green.
        flags: of each pass the concerns and findings by name.
        two_dimensional: results of the 2D methods; with long tails, maximum and sigmas are those of the Gaussians that
            hold 95 %. Where the covariance of one object is missing, the maximum is that over all that it may have, and
            has no scale.
    """

    probability: FloatArray
    method: list[str]
    standard_error: FloatArray
    valid_2d: list[bool | None]
    probability_for_risk: FloatArray
    flags: list[list[str]]
    two_dimensional: ShortEncounterRisk


@dataclasses.dataclass(frozen=True)
class _Answer:
    probability: float
    method: str
    standard_error: float = float("nan")
    findings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class _Verdict:
    """The answer for one pass, whether 2D is valid, and the probability for the risk level."""

    answer: _Answer
    valid_2d: bool | None
    probability_for_risk: float


_NO_VERDICT = _Verdict(_Answer(float("nan"), FOSTER), None, float("nan"))


def best_probabilities(passes: Encounters, *, most_evaluations: int = MOST_EVALUATIONS) -> BestProbability:
    """Compute the probability of collision of passes, reproducibly: trials have a fixed seed.

    Never raises for any numbers: a pass without an answer has NaN and a flag with the reason. One pass may take
    ``most_evaluations`` without straight motion; beyond that only its 2D answer is returned. Of a pass with long tails,
    these go to the sizes of errors that add most to the probability; the others are corrected as those are.
    """
    usable = np.flatnonzero(_are_usable(passes))
    assessed = passes.take(usable)
    plane = stated_risk(assessed)
    missing = missing_covariances(assessed)
    parts = parts_of(assessed)
    bound = _bound_by_the_other(assessed, parts, missing)
    straight, repaired = straight_probability(parts.passes)
    counts, reasons = deciding(parts, straight, len(usable))
    judged = [_Verdict(_Answer(float(each), FOSTER), True, float(each)) for each in straight]

    ends = np.searchsorted(parts.owner, np.arange(len(usable) + 1))
    added = parts.weight * np.nan_to_num(straight)

    def judge(rows: slice) -> None:
        for begin, end in zip(ends[:-1][rows], ends[1:][rows], strict=True):
            deciding_parts = begin + np.flatnonzero(counts[begin:end])
            budget = WorkBudget(most_evaluations)
            for place, part in enumerate(deciding_parts[np.argsort(-added[deciding_parts], kind="stable")].tolist()):
                verdict = _judged(
                    parts.passes, part, float(straight[part]), bool(repaired[part]), reasons[part], budget
                )
                judged[part], counts[part] = verdict, not place or EXHAUSTED not in reasons[part]

    in_threads(judge, len(usable), os.cpu_count() or 1)
    plane = plane.over_sizes(parts.summed(straight, len(usable)))
    sums = parts.summed(np.nan_to_num(straight), len(usable))
    is_diluted = are_diluted(assessed, parts, plane) & np.isnan(bound)
    verdicts, flags = [_NO_VERDICT] * len(passes.radius_km), [[UNUSABLE] for _ in passes.radius_km]
    for row, place in enumerate(usable.tolist()):
        own = np.arange(ends[row], ends[row + 1])
        counting = own[counts[own]].tolist()
        verdict = _averaged(judged, own, counts, parts.weight, straight, float(sums[row]))
        names = [name for part in counting for name in reasons[part]]
        flags[place] = [*dict.fromkeys(names), *([DILUTED] if is_diluted[row] else [])]
        for_risk = float(np.fmax(verdict.probability_for_risk, bound[row]))
        if missing[:, row].all() and for_risk < YELLOW_FROM:
            for_risk = float("nan")
        verdicts[place] = dataclasses.replace(verdict, probability_for_risk=for_risk)
    return BestProbability(
        np.array([verdict.answer.probability for verdict in verdicts]),
        [verdict.answer.method for verdict in verdicts],
        np.array([verdict.answer.standard_error for verdict in verdicts]),
        [verdict.valid_2d for verdict in verdicts],
        np.array([verdict.probability_for_risk for verdict in verdicts]),
        flags,
        plane.with_maximum(bound).spread(usable, len(verdicts)),
    )


def _averaged(
    judged: Sequence[_Verdict],
    own: IntArray,
    counts: npt.NDArray[np.bool_],
    weight: FloatArray,
    straight: FloatArray,
    summed: float,
) -> _Verdict:
    """Return the verdict of a pass by those of its parts ``own`` that count.

    The 2D answers of all, whose weighted sum is ``summed``, are wrong as far as those of the counting ones are. Without
    any 2D answer it is the mean over the counting ones.
    """
    if len(own) == 1:
        return judged[int(own[0])]
    counting = own[counts[own]]
    verdicts, weights = [judged[part] for part in counting], weight[counting]
    plain = float(weights @ np.nan_to_num(straight[counting]))

    def mean(answers: Sequence[float]) -> float:
        found = float(weights @ np.array(answers))
        return min(summed * (found / plain) if plain > 0 else found / float(weights.sum()), 1.0)

    valid = [each.valid_2d for each in verdicts]
    errors = [part * each.answer.standard_error for part, each in zip(weights, verdicts, strict=True)]
    known = [error for error in errors if not np.isnan(error)]
    answer = _Answer(
        mean([each.answer.probability for each in verdicts]),
        max((each.answer.method for each in verdicts), key=METHODS.index),
        float(np.linalg.norm(known)) if known else float("nan"),
    )
    for_risk = mean([each.probability_for_risk for each in verdicts])
    return _Verdict(answer, None if None in valid else all(valid), for_risk)


def _bound_by_the_other(passes: Encounters, parts: Parts, missing: npt.NDArray[np.bool_]) -> FloatArray:
    """Return the largest probability (n,) by the one known covariance, over all sizes of its errors, where the other is
    ``missing`` (2, n); else NaN.
    """
    bound = np.full(len(passes.radius_km), np.nan)
    for known, unknown in ((0, 1), (1, 0)):
        is_half_known = missing[unknown] & ~missing[known]
        rows = np.flatnonzero(is_half_known[parts.owner])
        part = parts.passes.take(rows)
        covariance = (part.covariance_1, part.covariance_2)[known][:, :3, :3]
        largest = np.zeros(len(parts.owner))
        largest[rows] = maximum_over_unknown(part.dr_km, part.dv_km_s, covariance, 1000 * part.radius_km)
        bound[is_half_known] = parts.summed(largest, len(bound))[is_half_known]
    return bound


def _are_usable(passes: Encounters) -> npt.NDArray[np.bool_]:
    states = np.concatenate([passes.r1_km, passes.v1_km_s, passes.r2_km, passes.v2_km_s], axis=1)
    sound = np.isfinite(states).all(axis=1) & (np.abs(states) < _LARGEST_STATE).all(axis=1)
    sound &= (passes.radius_km > 0) & (passes.radius_km < _LARGEST_STATE)
    return np.asarray(sound & is_usable(passes.covariance_1) & is_usable(passes.covariance_2))


def _judged(
    passes: Encounters, row: int, probability_2d: float, is_repaired: bool, reasons: list[str], budget: WorkBudget
) -> _Verdict:
    """Return the verdict on one pass with Gaussian errors; adds findings to its ``reasons``."""
    straight = _Answer(probability_2d, FOSTER)
    if is_repaired and "indefinite_covariance" not in reasons:
        reasons.append("indefinite_covariance")
    lacking = bool(LACKING & set(reasons))
    valid: bool | None = not np.isnan(straight.probability) and not is_repaired
    best, for_risk = straight, straight.probability
    # Without a position covariance no motion says more: the level follows the bound over all that it may be.
    if COVARIANCE_MISSING not in reasons and set(reasons) - LACKING - {"indefinite_velocity_covariance"}:
        longer = _without_straight_motion(passes, row, budget)
        agrees = abs(longer.probability - straight.probability) <= _AGREEMENT * longer.probability
        valid = agrees and "indefinite_covariance" not in reasons
        reasons.extend(longer.findings)
        if not lacking and not agrees and not np.isnan(longer.probability):
            best, for_risk = longer, longer.probability
        if lacking:
            for_risk = float(np.fmax(straight.probability, longer.probability))
    return _Verdict(best, None if lacking else valid, for_risk)


def _without_straight_motion(passes: Encounters, row: int, budget: WorkBudget) -> _Answer:
    radius_km = float(passes.radius_km[row])
    try:
        with np.errstate(all="ignore"):  # a flag names what is not found
            first = uncertain_orbit(passes.r1_km[row], passes.v1_km_s[row], passes.covariance_1[row])
            second = uncertain_orbit(passes.r2_km[row], passes.v2_km_s[row], passes.covariance_2[row])
            return _of_orbits(first, second, radius_km, budget)
    except WorkExhausted:
        return _Answer(float("nan"), HALL, findings=(UNRESOLVED, EXHAUSTED))
    except (ValueError, ArithmeticError):  # no closed orbit, or a matrix that no decomposition converges for
        return _Answer(float("nan"), HALL, findings=(UNRESOLVED,))


def _of_orbits(first: UncertainOrbit, second: UncertainOrbit, radius_km: float, budget: WorkBudget) -> _Answer:
    period_s = 2 * np.pi / max(first.elements[0], second.elements[0])
    expected, persistent = _one_encounter(first, second, radius_km, period_s, budget)
    # Those inside when a pair that never separates comes into view have not collided until then.
    total = expected.entries if persistent else expected.total
    findings = (PERSISTENT,) if persistent else ()
    if expected.converged and total < _COUNTABLE:
        return _Answer(total, HALL, findings=findings)
    budget.spend(_MOST_TRIALS)  # a trial takes about as long as an evaluation
    counted = count_collisions(
        first,
        second,
        radius_km,
        expected.start_s,
        expected.end_s,
        seed=_SEED,
        most_trials=_MOST_TRIALS,
        count_inside_at_start=not persistent,
    )
    if expected.converged and _confirmed(total, counted):
        return _Answer(min(total, 1.0), HALL, findings=findings)
    if counted.hits < _FEWEST_HITS:
        return _Answer(float("nan"), HALL, findings=(*findings, UNRESOLVED))
    return _Answer(counted.probability, MONTE_CARLO, counted.standard_error, findings)


def _one_encounter(
    first: UncertainOrbit, second: UncertainOrbit, radius_km: float, period_s: float, budget: WorkBudget
) -> tuple[ExpectedCollisions, bool]:
    """Expected collisions within a quarter of a revolution of TCA, or half of one for pairs that need it; and whether
    the pair has not separated even then.
    """
    quarter = expected_collisions(first, second, radius_km, period_s / 4, budget)
    if quarter.is_separate(_SEPARATED):
        return quarter, False
    half = expected_collisions(first, second, radius_km, period_s / 2, budget)
    if half.is_separate(_SEPARATED):
        return half, False
    return quarter, True


def _confirmed(expected: float, counted: Counted) -> bool:
    return abs(expected - counted.probability) <= 3 * counted.standard_error
