"""The best probability of collision there is for each pass: 2D where it may be trusted, else by a longer way.

Passes with a concern (``validity``) are computed again without straight motion (``collision_rate``).
Where pairs may come back, so that the expected number of collisions is more than their probability, trials decide
(``monte_carlo``).
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.equinoctial import UncertainOrbit, uncertain_orbit
from sda_platform.orbits.risk.collision_rate import ExpectedCollisions, expected_collisions
from sda_platform.orbits.risk.monte_carlo import Counted, count_collisions
from sda_platform.orbits.risk.probability import Assessment, assess
from sda_platform.orbits.risk.validity import Passes, concerns

FOSTER, HALL, MONTE_CARLO = "FOSTER-1992", "HALL-2021", "MONTE-CARLO"
METHODS = (FOSTER, HALL, MONTE_CARLO)
PERSISTENT, UNRESOLVED, DILUTED = "persistent_encounter", "unresolved_encounter", "diluted"

# 2D and 3D agree when they differ by less than this part.
_AGREEMENT = 0.02
# Trials are worth their time where fifty thousand of them see some fifty collisions or more.
_COUNTABLE = 1e-3
_MOST_TRIALS = 50_000
_FEWEST_HITS = 10
_SEED = 508
# A pair that is near more than this part of the time at the edge of the window has not separated.
_SEPARATED = 1e-3


@dataclasses.dataclass(frozen=True, eq=False)
class BestProbability:
    """Risk of ``n`` passes.

    Attributes:
        probability: (n,) the best available; NaN where there is none.
        method: of each, one of METHODS.
        standard_error: (n,) of a counted probability, NaN for the others.
        valid_2d: (n,) whether the 2D probability may be used: no concern, or confirmed without straight motion.
        flags: of each pass the concerns and findings by name.
        two_dimensional: what the 2D methods say.
    """

    probability: FloatArray
    method: list[str]
    standard_error: FloatArray
    valid_2d: npt.NDArray[np.bool_]
    flags: list[list[str]]
    two_dimensional: Assessment


@dataclasses.dataclass(frozen=True)
class _Answer:
    probability: float
    method: str
    standard_error: float = float("nan")
    findings: tuple[str, ...] = ()


def best_probabilities(passes: Passes) -> BestProbability:
    """Assess passes; the same passes always give the same numbers (trials have a fixed seed)."""
    plane = assess(
        passes.dr_km,
        passes.dv_km_s,
        (passes.covariance_1 + passes.covariance_2)[:, :3, :3],
        1000 * passes.radius_km,
    )
    concerned = concerns(passes)
    flags = [[name for name, of in concerned.items() if of[row]] for row in range(len(passes.radius_km))]
    probability, error = plane.probability.copy(), np.full(len(flags), np.nan)
    valid = ~np.isnan(probability) & ~plane.covariance_repaired
    method = [FOSTER] * len(flags)
    for row, reasons in enumerate(flags):
        if plane.covariance_repaired[row] and "indefinite_covariance" not in reasons:
            reasons.append("indefinite_covariance")
        if set(reasons) - {"indefinite_velocity_covariance"}:
            best = _without_straight_motion(passes, row)
            agrees = abs(best.probability - probability[row]) <= _AGREEMENT * best.probability
            valid[row] = agrees and "indefinite_covariance" not in reasons
            reasons.extend(best.findings)
            if not agrees and not np.isnan(best.probability):
                probability[row], method[row], error[row] = best.probability, best.method, best.standard_error
        if plane.maximum_sigma_scale[row] < 1:
            reasons.append(DILUTED)
    return BestProbability(probability, method, error, valid, flags, plane)


def _without_straight_motion(passes: Passes, row: int) -> _Answer:
    radius_km = float(passes.radius_km[row])
    try:
        first = uncertain_orbit(passes.r1_km[row], passes.v1_km_s[row], passes.covariance_1[row])
        second = uncertain_orbit(passes.r2_km[row], passes.v2_km_s[row], passes.covariance_2[row])
    except (ValueError, np.linalg.LinAlgError):
        return _Answer(float("nan"), HALL, findings=(UNRESOLVED,))
    period_s = 2 * np.pi / max(first.elements[0], second.elements[0])
    with np.errstate(all="ignore"):  # what is not found is told by a flag
        expected, persistent = _one_encounter(first, second, radius_km, period_s)
    if expected.converged and not persistent and expected.total < _COUNTABLE:
        return _Answer(expected.total, HALL)
    # Those inside when a pair that never separates comes into view have not collided until then.
    total = expected.entries if persistent else expected.total
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
    findings = (PERSISTENT,) if persistent else ()
    if expected.converged and _confirmed(total, counted):
        return _Answer(total, HALL, findings=findings)
    if counted.hits < _FEWEST_HITS:
        return _Answer(float("nan"), HALL, findings=(*findings, UNRESOLVED))
    return _Answer(counted.probability, MONTE_CARLO, counted.standard_error, findings)


def _one_encounter(
    first: UncertainOrbit, second: UncertainOrbit, radius_km: float, period_s: float
) -> tuple[ExpectedCollisions, bool]:
    """Expected collisions within a quarter of a revolution of TCA, or half of one for pairs that take that long; and
    whether even then the pair has not been apart."""
    quarter = expected_collisions(first, second, radius_km, period_s / 4)
    if quarter.is_separate(_SEPARATED):
        return quarter, False
    half = expected_collisions(first, second, radius_km, period_s / 2)
    if half.is_separate(_SEPARATED):
        return half, False
    return quarter, True


def _confirmed(expected: float, counted: Counted) -> bool:
    return abs(expected - counted.probability) <= 3 * counted.standard_error
