"""What the long tails of element-set errors change: approaches of a real week, predicted, and as later sets show them.

    python benchmarks/replayed_week.py history.3le.gz [--days 7] [--primaries 150]

Approaches of each day are predicted by the sets in force 1 and 3 days before its begin. Of each, the probability that
the objects pass within 2 km is found twice: over all sizes of the errors, and as if they were Gaussian with the same
95 % ellipsoid. The sets in force at the end of the day show how many did. A probability is right if, of the approaches
that have it, that part passes so near. Both sets have what SGP4 lacks, so it is left out here.

The second table has the risk levels by the 2D probability of collision, with what SGP4 lacks.
"""

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
from element_jumps import read
from screening_recall import DAY_NS, Screened, in_force, matches, screened

from sda_platform.arrays import FloatArray
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.element_errors import (
    degrees_of_freedom,
    element_covariance_rtn,
    element_tails,
    set_covariance_rtn,
)
from sda_platform.orbits.element_history import running_scales
from sda_platform.orbits.long_tails import Tails
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.risk.gaussian_parts import probability_2d, stated_risk
from sda_platform.orbits.risk.levels import risk_level
from sda_platform.orbits.risk.validity import Encounters

NEAR_KM, RADIUS_KM, REACH_KM = 2.0, 0.01, 60.0
LAGS_DAYS = (1, 3)
PARTS = (0.0, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0)
_FIRST_DAY = 33.0
_LEVELS = ("green", "yellow", "red")


def main() -> None:
    """Print predicted and confirmed approaches by probability, and the levels, by both distributions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("history", type=Path, help="element sets, two or three lines each, .gz or not")
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--primaries", type=int, default=150)
    options = parser.parse_args()
    elements, _ = read(options.history)
    scales, number = running_scales(Propagator(elements))
    first_ns, rng = int(elements.epoch_time_ns.min()), np.random.default_rng(1)
    for lag in LAGS_DAYS:
        within, sizes, levels, is_near = [], [], [], []
        for day in range(options.days):
            start_ns = first_ns + int((_FIRST_DAY + day) * DAY_NS)
            later, earlier = in_force(elements, start_ns + DAY_NS), in_force(elements, start_ns - lag * DAY_NS)
            known = np.intersect1d(elements.norad_id[later], elements.norad_id[earlier])
            primaries = rng.choice(known, options.primaries, False)
            shown = screened(elements, scales, later, primaries, start_ns, REACH_KM + 2 * NEAR_KM)
            found = screened(elements, scales, earlier, primaries, start_ns, REACH_KM)
            propagator = Propagator(elements.take(earlier), scales[earlier], number[earlier])
            of_sets, whole = (
                passes(propagator, found, radius, has_theory)
                for radius, has_theory in ((NEAR_KM, False), (RADIUS_KM, True))
            )
            within.append(stated_risk(of_sets).probability)
            sizes.append(probability_2d(of_sets))
            levels.append(np.stack([risk_level(stated_risk(whole).probability), risk_level(probability_2d(whole))]))
            is_near.append(confirmed(shown, found))
        print(f"\nsets of {lag} to {lag + 1} days before; {sum(map(len, sizes)):,} approaches within {REACH_KM:g} km")
        table("Gaussian", np.concatenate(within), np.concatenate(is_near))
        table("all sizes", np.concatenate(sizes), np.concatenate(is_near))
        cross(np.concatenate(levels, axis=1))


def passes(propagator: Propagator, found: Screened, radius_km: float, has_theory: bool) -> Encounters:
    """Return the approaches (n,) with the errors of their sets, with or without what SGP4 lacks."""
    events, sides = found.events, []
    for rows in (events.lo, events.hi):
        _, r, v = propagator.at(rows, events.tca_time_ns)
        model, degrees = (
            element_covariance_rtn if has_theory else set_covariance_rtn,
            degrees_of_freedom(propagator, rows),
        )
        covariance = rtn_to_teme(model(propagator, rows, events.tca_time_ns, r, v), r, v)
        tails = element_tails(degrees, r, v) if has_theory else Tails(degrees, np.zeros((len(rows), 6, 6)))
        sides.append(((r, v, covariance), tails))
    (first, tails_1), (second, tails_2) = sides
    return Encounters(*first, *second, np.full(len(events.lo), radius_km), tails=(tails_1, tails_2))


def confirmed(shown: Screened, found: Screened) -> FloatArray:
    """Whether each approach of ``found`` is one within NEAR_KM in ``shown``."""
    of_later = matches(found, shown)
    return np.where(of_later >= 0, shown.events.miss_distance_km[of_later] <= NEAR_KM, False)


def table(title: str, predicted: FloatArray, is_near: FloatArray) -> None:
    """Print by parts of the predicted probability how many passes within 2 km are expected, and how many there are."""
    part = np.clip(np.searchsorted(PARTS, predicted, side="right") - 1, 0, len(PARTS) - 2)
    cells = []
    for number in range(len(PARTS) - 1):
        chosen = part == number
        cells.append(f"to {PARTS[number + 1]:g}: {predicted[chosen].sum():6.1f} {int(is_near[chosen].sum()):5d}")
    print(f"{title:>10}: expected and seen, by probability " + " | ".join(cells), end="")
    print(f" | all {predicted.sum():7.1f} {int(is_near.sum()):5d}; log score {log_score(predicted, is_near):.4f}")


def log_score(predicted: FloatArray, is_near: FloatArray) -> float:
    """Return the mean surprise in bits; the smaller, the better the probabilities."""
    sure = np.clip(predicted, 1e-9, 1 - 1e-9)
    return float(-np.mean(np.where(is_near > 0, np.log2(sure), np.log2(1 - sure))))


def cross(levels: npt.NDArray[np.str_]) -> None:
    """Print how many approaches have each level by the Gaussian and by all sizes."""
    for row in _LEVELS:
        counts = [int(np.sum((levels[0] == row) & (levels[1] == column))) for column in _LEVELS]
        cells = ", ".join(f"{column} {count:,}" for column, count in zip(_LEVELS, counts, strict=True))
        print(f"    {row:>6} by the Gaussian: {cells}")


if __name__ == "__main__":
    main()
