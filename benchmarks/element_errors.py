"""How often real element sets lie outside the 95 % ellipsoid of the model of their errors.

    python benchmarks/element_errors.py history.3le.gz

Each set is propagated to later sets of its object. The difference is compared with the covariance of both
(`orbits.element_errors`), with the object's error scale by the history up to the earlier set. Counted are objects and
days that were not used to choose the model's figures: numbers divisible by 2 but not by 4, sets after day 29. The
figures were chosen on numbers divisible by 4.
"""

import argparse
from pathlib import Path

import numpy as np
from element_jumps import read

from sda_platform.orbits.element_errors import REGIMES, regimes
from sda_platform.orbits.element_history import Differences, difference_covariance, own_differences, running_scales
from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.propagation import Propagator

AGES_DAYS = (1.0, 3.0, 7.0)
ENOUGH = 150
"""Differences from which a share is judged; with 150, chance alone gives 5 % ± 1.8 %."""
SHARE = (0.03, 0.08)
_CHI2_95, _CHI2_50 = 7.815, 2.366
_FIRST_DAY = 29.0


def main() -> None:
    """Print the share outside by regime and age, with and without history; fail outside of 3 to 8 %."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("history", type=Path, help="element sets, two or three lines each, .gz or not")
    elements, is_passive = read(parser.parse_args().history)
    day = (elements.epoch_time_ns - elements.epoch_time_ns.min()) / 86_400e9
    is_held_out = (elements.norad_id % 4 == 2) & (day >= _FIRST_DAY)
    plain = Propagator(elements)
    scales, number = running_scales(plain)
    scaled = Propagator(elements, scales)
    found = own_differences(plain, AGES_DAYS)
    print(f"{len(elements):,} sets; of held-out sets {np.mean(number[is_held_out] > 0):.0%} have a history")
    failures = 0
    for title, propagator, chosen in (
        ("with history", scaled, is_held_out),
        ("with history, objects that the figures were chosen on", scaled, elements.norad_id % 4 == 0),
        ("without history", plain, is_held_out),
        ("with history, debris and rocket bodies", scaled, is_held_out & is_passive),
        ("with history, payloads and others", scaled, is_held_out & ~is_passive),
    ):
        bad = table(title, propagator, found.take(chosen[found.early]))
        failures += bad if title == "with history" else 0
    if failures:
        raise SystemExit(f"{failures} shares are outside {SHARE[0]:.0%} to {SHARE[1]:.0%}")


def table(title: str, propagator: Propagator, found: Differences) -> int:
    """Print shares of differences (m,) outside, and how many of those with enough data are out of bounds."""
    covariance = difference_covariance(propagator, found)
    squares = squared_distances(found.rtn_km, covariance)
    regime = regimes(propagator.elements)[found.early]
    print(f"\n{title}: share outside 95 % (differences), in-track sigma and median in-track difference, km")
    bad = 0
    for place, figures in enumerate(REGIMES):
        cells = []
        for age in AGES_DAYS:
            rows = np.flatnonzero((regime == place) & (found.nominal_days == age))
            outside = float(np.mean(squares[rows] > _CHI2_95)) if len(rows) else np.nan
            is_bad = len(rows) >= ENOUGH and not SHARE[0] <= outside <= SHARE[1]
            bad += is_bad
            sigma_km = np.sqrt(np.median(covariance[rows, 1, 1])) if len(rows) else np.nan
            off_km = np.median(np.abs(found.rtn_km[rows, 1])) if len(rows) else np.nan
            cells.append(f"{outside:6.1%}{'!' if is_bad else ' '}({len(rows):5d}) {sigma_km:7.1f} {off_km:6.1f}")
        print(f"{figures.name:34s}" + " | ".join(cells))
    inside = float(np.mean(squares < _CHI2_50))
    print(f"inside the 50 % ellipsoid: {inside:.0%}")
    return bad


def squared_distances(difference: FloatArray, covariance: FloatArray) -> FloatArray:
    """Squared Mahalanobis distance (m,)."""
    return np.asarray(np.einsum("ni,ni->n", difference, np.linalg.solve(covariance, difference[..., None])[..., 0]))


if __name__ == "__main__":
    main()
