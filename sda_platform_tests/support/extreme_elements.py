"""Judge of propagation: real and extreme element sets at times up to ten years from their epochs.

`python -m sda_platform_tests.support.extreme_elements --sets 100000` judges them all, some ten minutes on one core.
"""

import argparse
import sys
from dataclasses import dataclass, field

import numpy as np
from sgp4.api import WGS72, Satrec

from sda_platform.orbits.elements import ElementSets, semi_major_axis_km
from sda_platform.orbits.propagation import Propagator
from sda_platform_tests.support.reference_elements import reference_elements

DAY_NS = 86_400 * 10**9
_MU_KM3_S2, _RADIUS_KM = 398600.8, 6378.135
_ESCAPE_KM_S = 11.3
_MOST_DAYS = 3652.5


@dataclass
class Judgement:
    """How many states were accepted, and the rows of sets whose states are impossible or come after a refusal."""

    accepted: int = 0
    beyond: list[int] = field(default_factory=list)
    accepted_again: list[int] = field(default_factory=list)


def extreme_sets(seed: int, count: int) -> ElementSets:
    """Half real sets, half of any shape that the limits of a record allow."""
    chance = np.random.default_rng(seed)
    real = reference_elements(every=1)
    half = count // 2
    one = chance.uniform
    low = one(size=half) < 0.5
    columns = {
        "norad_id": np.arange(1, half + 1),
        "epoch_time_ns": np.full(half, real.epoch_time_ns[0]),
        "mean_motion_rev_per_day": np.where(low, one(10, 17, half), 10 ** one(-2, 1.23, half)),
        "eccentricity": np.choose(
            chance.integers(0, 3, half),
            [one(0, 1, half) ** 3, 10 ** one(-7, -1e-4, half), 1 - 10 ** one(-16, -2, half)],
        ),
        "inclination_deg": one(0, 180, half),
        "raan_deg": one(0, 360, half),
        "arg_of_pericenter_deg": one(0, 360, half),
        "mean_anomaly_deg": one(0, 360, half),
        "bstar_per_earth_radius": chance.choice([-1, 0, 1, 1], half) * 10 ** one(-7, 2, half),
    }
    return ElementSets.stack(
        [real.take(chance.integers(0, len(real), count - half)), ElementSets.from_columns(columns)]
    )


def judged_states(elements: ElementSets, seed: int, rounds: int = 6) -> Judgement:
    """Ask for each set at times up to ten years before and after its epoch.

    The bounds are independent of the product: python-sgp4 alone refuses, and an orbit keeps its energy but for drag,
    stays above the ground and below the escape speed. A set that python-sgp4 refuses at one of the times is refused at
    all that are farther from the epoch.
    """
    chance, count = np.random.default_rng(seed), len(elements)
    propagator, found = Propagator(elements), Judgement()
    axis_km = semi_major_axis_km(elements)
    days = np.sort(10 ** chance.uniform(-2, np.log10(_MOST_DAYS), (2 * rounds, count)), axis=0)
    for sign, part in ((-1, days[::2]), (1, days[1::2])):
        refused = np.zeros(count, np.bool_)
        for each in part:
            time_ns = elements.epoch_time_ns + (sign * each * DAY_NS).astype(np.int64)
            error, r_km, v_km_s = propagator.at(np.arange(count), time_ns)
            good = np.flatnonzero(error == 0)
            radius, speed = np.linalg.norm(r_km[good], axis=1), np.linalg.norm(v_km_s[good], axis=1)
            energy_axis_km = 1 / np.maximum(2 / radius - speed**2 / _MU_KM3_S2, 1e-12)
            wrong = (radius < _RADIUS_KM * 0.999) | (speed > _ESCAPE_KM_S) | (radius > 2.25 * axis_km[good])
            wrong |= energy_axis_km > 1.11 * axis_km[good]
            found.beyond += good[wrong].tolist()
            found.accepted += len(good)
            found.accepted_again += np.flatnonzero(refused & (error == 0)).tolist()
            refused |= _refused_by_library(elements, time_ns)
    return found


def _refused_by_library(elements: ElementSets, time_ns: np.ndarray) -> np.ndarray:
    """(n,) Whether python-sgp4 alone refuses each set at its time."""
    refused = np.zeros(len(elements), np.bool_)
    for row in range(len(elements)):
        satellite = Satrec()
        satellite.sgp4init(
            WGS72, "i", 0, elements.epoch_time_ns[row] / DAY_NS + 2440587.5 - 2433281.5,
            elements.bstar_per_earth_radius[row], 0.0, 0.0, elements.eccentricity[row],
            *np.radians([elements.arg_of_pericenter_deg[row], elements.inclination_deg[row],
                         elements.mean_anomaly_deg[row]]),
            elements.mean_motion_rev_per_day[row] * np.pi / 720, np.radians(elements.raan_deg[row]),
        )  # fmt: skip
        refused[row] = satellite.sgp4_tsince((time_ns[row] - elements.epoch_time_ns[row]) / 60e9)[0] != 0
    return refused


def main() -> None:
    """Judge many sets in parts, and end with exit code 1 where one fails."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--sets", type=int, default=100_000)
    total, failed = Judgement(), 0
    for seed in range(arguments.parse_args().sets // 2000):
        found = judged_states(extreme_sets(seed, 2000), seed)
        total.accepted += found.accepted
        failed += len(found.beyond) + len(found.accepted_again)
        sys.stdout.write(f"{2000 * (seed + 1):,} sets, {total.accepted:,} states accepted, {failed} wrong\n")
        for name in ("beyond", "accepted_again"):
            if getattr(found, name):
                sys.stdout.write(f"  seed {seed}, {name}: rows {getattr(found, name)[:20]}\n")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
