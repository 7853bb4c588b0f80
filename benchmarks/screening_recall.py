"""How many approaches of a day are found from sets of earlier days: a sphere, or volumes shaped by the covariance.

    python benchmarks/screening_recall.py history.3le.gz [--days 4] [--primaries 60]

Approaches within 5 km by the sets in force at the beginning of a day are what later sets confirm. Screened are the same
objects by the sets in force 1, 3 and 6 days before, where both objects of an approach had one. Recall is the share of
confirmed approaches that are kept; the price is the number of approaches that are kept altogether. The sphere of each
radius is the peer.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from element_jumps import read

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.element_history import running_scales
from sda_platform.orbits.elements import ElementSets, perigee_altitude_km
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.screening.search import Events, screen
from sda_platform.orbits.screening.uncertain_approaches import miss_in_sigmas

DAY_NS = 86_400 * 10**9
CONFIRMED_KM, REACH_KM = 5.0, 150.0
LAGS_DAYS = (1, 3, 6)
RADII_KM, SIGMAS = (5.0, 10.0, 20.0, 40.0, 60.0, 150.0), (1.0, 2.0, 3.0, 4.0)
# Half the time between two encounters of a pair.
SAME_NS = 20 * 60 * 10**9
# Before, the history has few sets.
_OLDEST_DAYS, _FIRST_DAY = 10, 36.0


@dataclass(frozen=True)
class Screened:
    """Approaches of one day by the sets in force at some time: pairs of numbers, and how they count."""

    events: Events
    pairs: list[tuple[int, int]]
    sigmas: FloatArray


def main() -> None:
    """Print recall and price of spheres and volumes, by the age of the sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("history", type=Path, help="element sets, two or three lines each, .gz or not")
    parser.add_argument("--days", type=int, default=4)
    parser.add_argument("--primaries", type=int, default=60)
    parser.add_argument("--perigee-km", type=float, nargs=2, default=(400.0, 600.0))
    options = parser.parse_args()
    elements, _ = read(options.history)
    scales, _ = running_scales(Propagator(elements))
    first_ns = int(elements.epoch_time_ns.min())
    rng = np.random.default_rng(1)
    rules = [*(f"{r:g} km" for r in RADII_KM), *(f"{k:g} sigma" for k in SIGMAS)]
    confirmed = dict.fromkeys(LAGS_DAYS, 0)
    kept = {(lag, rule): [0, 0] for lag in LAGS_DAYS for rule in rules}
    for number in range(options.days):
        start_ns = first_ns + int((_FIRST_DAY + number) * DAY_NS)
        now = in_force(elements, start_ns)
        low, high = options.perigee_km
        height_km = perigee_altitude_km(elements.take(now))
        primaries = rng.choice(elements.norad_id[now[(height_km > low) & (height_km < high)]], options.primaries, False)
        truth = screened(elements, scales, now, primaries, start_ns, CONFIRMED_KM)
        for lag in LAGS_DAYS:
            earlier = in_force(elements, start_ns - lag * DAY_NS)
            found = screened(elements, scales, earlier, primaries, start_ns, REACH_KM)
            same = matches(truth, found)
            known = set(elements.norad_id[earlier].tolist())
            confirmed[lag] += sum(known.issuperset(pair) for pair in truth.pairs)
            for name in rules:
                is_kept = keeps(name, found)
                kept[lag, name][0] += int(np.sum(is_kept[same[same >= 0]]))
                kept[lag, name][1] += int(is_kept.sum())
    print(f"{options.days} days, {options.primaries} primaries: found within {CONFIRMED_KM:g} km, of those kept")
    print(f"          {confirmed} approaches by age of the sets, days")
    for name in rules:
        cells = [f"{lag} d {kept[lag, name][0] / confirmed[lag]:4.0%} of {kept[lag, name][1]:6,}" for lag in LAGS_DAYS]
        print(f"{name:>8}: " + " | ".join(cells))


def keeps(rule: str, found: Screened) -> npt.NDArray[np.bool_]:
    """Which approaches a sphere, or a volume of so many sigmas with the smallest sphere, keeps."""
    size, unit = rule.split()
    near = found.events.miss_distance_km <= (float(size) if unit == "km" else CONFIRMED_KM)
    return near if unit == "km" else near | (found.sigmas <= float(size))


def in_force(elements: ElementSets, time_ns: int) -> IntArray:
    """The newest set of each object with an epoch in the days up to ``time_ns``."""
    recent = (elements.epoch_time_ns <= time_ns) & (elements.epoch_time_ns > time_ns - _OLDEST_DAYS * DAY_NS)
    rows = np.flatnonzero(recent)
    rows = rows[np.lexsort((elements.epoch_time_ns[rows], elements.norad_id[rows]))]
    return np.asarray(rows[np.append(np.diff(elements.norad_id[rows]) != 0, True)])


def screened(
    elements: ElementSets, scales: FloatArray, rows: IntArray, primaries: IntArray, start_ns: int, reach_km: float
) -> Screened:
    """Approaches of the primaries in the day from ``start_ns``, by these sets."""
    propagator = Propagator(elements.take(rows), scales[rows])
    ids = propagator.elements.norad_id
    mine = np.flatnonzero(np.isin(ids, primaries))
    events = screen(propagator, mine, np.arange(len(rows)), start_ns, start_ns + DAY_NS, reach_km).events
    pairs = list(zip(ids[events.lo].tolist(), ids[events.hi].tolist(), strict=True))
    return Screened(events, pairs, miss_in_sigmas(propagator, events.lo, events.hi, events.tca_time_ns))


def matches(truth: Screened, found: Screened) -> IntArray:
    """The approach of ``found`` that each of ``truth`` is, -1: none."""
    of_pair: dict[tuple[int, int], list[int]] = {}
    for row, pair in enumerate(found.pairs):
        of_pair.setdefault(pair, []).append(row)
    best = np.full(len(truth.pairs), -1)
    for number, (pair, tca_ns) in enumerate(zip(truth.pairs, truth.events.tca_time_ns.tolist(), strict=True)):
        off_ns = {row: abs(int(found.events.tca_time_ns[row]) - tca_ns) for row in of_pair.get(pair, [])}
        near = min(off_ns, key=lambda row: off_ns[row], default=-1)
        if near >= 0 and off_ns[near] < SAME_NS:
            best[number] = near
    return best


if __name__ == "__main__":
    main()
