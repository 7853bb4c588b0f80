"""Best available probability of collision per pass: the 2D one where it is valid, else one from a more exact method.

Passes with a concern (``validity``) are computed again without the assumption of straight motion
(``collision_rate``). Where pairs may meet repeatedly, so that the expected number of collisions exceeds their
probability, Monte Carlo trials decide (``monte_carlo``). Errors with long tails are split into Gaussian ones, whose
probabilities are averaged (``gaussian_parts``).
"""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray
from sda_platform.orbits.dynamics.numerical import in_threads
from sda_platform.orbits.equinoctial import UncertainOrbit, uncertain_orbit
from sda_platform.orbits.risk.collision_rate import MOST_EVALUATIONS, ExpectedCollisions, expected_collisions
from sda_platform.orbits.risk.degenerate import is_usable
from sda_platform.orbits.risk.gaussian_parts import Parts, parts_of, stated_risk, straight_probability
from sda_platform.orbits.risk.levels import YELLOW_FROM
from sda_platform.orbits.risk.monte_carlo import Counted, count_collisions
from sda_platform.orbits.risk.probability import ShortEncounterRisk, maximum_over_unknown
from sda_platform.orbits.risk.validity import (
    COVARIANCE_MISSING,
    EXTENDED,
    LACKING,
    LOW_SPEED,
    Encounters,
    concerns,
    missing_covariances,
)
from sda_platform.orbits.risk.work_budget import WorkBudget, WorkExhausted

FOSTER, HALL, MONTE_CARLO = "FOSTER-1992", "HALL-2021", "MONTE-CARLO"
METHODS = (FOSTER, HALL, MONTE_CARLO)
PERSISTENT, UNRESOLVED, DILUTED = "persistent_encounter", "unresolved_encounter", "diluted"
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
# A part of a pass counts if it adds this much of the 2D probability; where that may be far too low, if it is as likely.
_COUNTING_SHARE, _COUNTING_WEIGHT = 0.01, 0.03
# Of all variances: by how much less one sees whether a probability is diluted.
_NARROWER = 0.98
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
    ``most_evaluations`` without straight motion; beyond that only its 2D answer is returned.
    """
    usable = np.flatnonzero(_are_usable(passes))
    assessed = passes.take(usable)
    plane = stated_risk(assessed)
    missing = missing_covariances(assessed)
    bound = _bound_by_the_other(assessed, missing)
    parts = parts_of(assessed)
    straight, repaired = straight_probability(parts.passes)
    concerned = concerns(parts.passes)
    counts = _counting(parts, straight, concerned, len(usable))
    reasons = [[name for name, of in concerned.items() if of[row]] for row in range(len(straight))]
    judged = [_Verdict(_Answer(float(each), FOSTER), True, float(each)) for each in straight]

    def judge(rows: slice) -> None:
        for row in np.flatnonzero(counts)[rows].tolist():
            budget = WorkBudget(most_evaluations)
            judged[row] = _judged(parts.passes, row, float(straight[row]), bool(repaired[row]), reasons[row], budget)

    in_threads(judge, int(counts.sum()), os.cpu_count() or 1)
    plane = plane.over_sizes(parts.summed(straight, len(usable)))
    is_diluted = _are_diluted(assessed, parts, plane)
    ends = np.searchsorted(parts.owner, np.arange(len(usable) + 1))
    verdicts, flags = [_NO_VERDICT] * len(passes.radius_km), [[UNUSABLE] for _ in passes.radius_km]
    for row, place in enumerate(usable.tolist()):
        own = np.arange(ends[row], ends[row + 1])
        verdict = _averaged(judged, own[counts[own]].tolist(), own.tolist(), parts.weight)
        names = [name for part in own[counts[own]].tolist() for name in reasons[part]]
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


def _counting(
    parts: Parts, straight: FloatArray, concerned: dict[str, npt.NDArray[np.bool_]], count: int
) -> npt.NDArray[np.bool_]:
    """Return which parts (m,) decide the probability of their pass: their concerns count, and are looked into.

    By its 2D probability, or, where that may be far too low, by its weight.
    """
    share = parts.weight * np.nan_to_num(straight)
    decides = share >= _COUNTING_SHARE * np.bincount(parts.owner, share, minlength=count)[parts.owner]
    misleads = concerned[LOW_SPEED] | concerned[EXTENDED]
    largest = np.zeros(count)
    np.maximum.at(largest, parts.owner, parts.weight)
    is_likeliest = parts.weight == largest[parts.owner]
    return np.asarray((decides & (share > 0)) | (misleads & (parts.weight >= _COUNTING_WEIGHT)) | is_likeliest)


def _are_diluted(passes: Encounters, parts: Parts, plane: ShortEncounterRisk) -> npt.NDArray[np.bool_]:
    """Return which passes (n,) would have a larger 2D probability if all errors were smaller."""
    diluted = plane.maximum_sigma_scale < 1
    if len(parts.owner) > len(passes.radius_km):
        narrow = dataclasses.replace(
            parts.passes,
            covariance_1=_NARROWER * parts.passes.covariance_1,
            covariance_2=_NARROWER * parts.passes.covariance_2,
        )
        nearer = parts.summed(straight_probability(narrow)[0], len(diluted))
        is_split = np.bincount(parts.owner, minlength=len(diluted)) > 1
        diluted = np.where(is_split, nearer > plane.probability, diluted)
    return np.asarray(diluted)


def _averaged(judged: list[_Verdict], counting: list[int], own: list[int], weight: FloatArray) -> _Verdict:
    """Return the verdict of a pass by those of its parts ``own``, of which the ``counting`` ones were looked into."""
    if len(own) == 1:
        return judged[own[0]]
    answers = [(float(weight[part]), judged[part]) for part in own]
    errors = [part_weight * each.answer.standard_error for part_weight, each in answers]
    known = [error for error in errors if not np.isnan(error)]
    valid = [judged[part].valid_2d for part in counting]
    answer = _Answer(
        sum(part_weight * each.answer.probability for part_weight, each in answers),
        max((judged[part].answer.method for part in counting), key=METHODS.index),
        float(np.linalg.norm(known)) if known else float("nan"),
    )
    for_risk = sum(part_weight * each.probability_for_risk for part_weight, each in answers)
    return _Verdict(answer, None if None in valid else all(valid), for_risk)


def _bound_by_the_other(passes: Encounters, missing: npt.NDArray[np.bool_]) -> FloatArray:
    """Return the largest probability (n,) by the one known covariance, where the other is ``missing`` (2, n);
    else NaN.
    """
    bound = np.full(len(passes.radius_km), np.nan)
    for known, unknown in ((0, 1), (1, 0)):
        rows = np.flatnonzero(missing[unknown] & ~missing[known])
        part = passes.take(rows)
        covariance = (part.covariance_1, part.covariance_2)[known][:, :3, :3]
        bound[rows] = maximum_over_unknown(part.dr_km, part.dv_km_s, covariance, 1000 * part.radius_km)
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
