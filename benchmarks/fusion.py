"""Association and estimation: how fast, how flat over the catalogue's size, how accurate, and how honest?

    python benchmarks/fusion.py [--readings 50000] [--tracks 1000] [--processes 2] [--rounds 3]

The catalogue is CelesTrak's of 2024-11-01 (26,834 objects). Objects are off their elements by draws from the prior, and
seen by the simulation's sensors with their noise, light time and all. Speed is that of steady state: every process has
its catalogue initialised and its kernels compiled, and gets whole windows. The peer of accuracy is the catalogue's own
prediction; normalised squared errors are held against their 95 % chi-square bounds.
"""

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt
from contest import Gate
from rich.console import Console
from scipy.stats import chi2

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.tracking.association import associate
from sda_platform.orbits.tracking.estimation import StateFits, fit_windows
from sda_platform_tests.unit.orbits.scenes import (
    SECOND_NS,
    START_NS,
    Sightings,
    catalogue,
    displaced,
    observe,
    prior_draw,
    visible,
)

MID_NS = START_NS + 15 * SECOND_NS
SIZES = (1_000, 5_000, 26_834)
RADAR_LOOKS, TELESCOPE_LOOKS = 30, 3
console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Watched:
    """Readings of one window, each radar's track by number, and what they are of."""

    observations: ObservationArrays
    tracks: npt.NDArray[np.str_]
    group: IntArray
    index: IntArray
    truth: FloatArray

    def fits(self) -> StateFits:
        return fit_windows(self.observations, self.group, catalogue(), self.index, np.full(len(self.index), MID_NS))


def main() -> int:
    """Run, print, and fail where a gate is missed."""
    options = _options()
    gates = [*_accuracy(options.tracks), *_speed(options.readings, options.processes, options.rounds)]
    gates += _flatness(options.readings, options.rounds)
    for gate in gates:
        console.print(f"  {gate}")
    return 0 if all(gate.holds for gate in gates) else 1


def _accuracy(tracks: int) -> list[Gate]:
    """Error against prediction, and normalised squared error, of as many tracks in each regime and kind of sensor."""
    low, high = chi2.ppf([0.025, 0.975], 6 * tracks) / tracks
    gates = []
    for kind, looks in (("radar", RADAR_LOOKS), ("optical", TELESCOPE_LOOKS)):
        for regime, members in _regimes().items():
            watched = _watch(kind, members, tracks, looks, seed=5)
            if watched is None:
                console.print(f"{regime} by {kind}: not seen at this hour")
                continue
            fits = watched.fits()
            error = np.hstack([fits.r_teme_km, fits.v_teme_km_s]) - watched.truth
            solved = np.linalg.solve(fits.covariance_teme, error[:, :, None])[:, :, 0]
            nees = float(np.einsum("gi,gi->g", error, solved).mean())
            before = np.linalg.norm(fits.predicted_r_teme_km - watched.truth[:, :3], axis=1)
            after = np.linalg.norm(error[:, :3], axis=1)
            better = float(np.median(before) / np.median(after))
            console.print(
                f"{regime} by {kind}: prediction {np.median(before) * 1000:,.0f} m, fit "
                f"{np.median(after) * 1000:,.0f} m; normalised squared error {nees:.3f} ({low:.3f} to {high:.3f})"
            )
            gates.append(Gate(f"{regime} by {kind}: position error, times better", better, 5.0, at_least=True))
            gates.append(Gate(f"{regime} by {kind}: normalised squared error", nees, float(high), at_least=False))
            gates.append(Gate(f"{regime} by {kind}: normalised squared error", nees, float(low), at_least=True))
    return gates


def _speed(readings: int, processes: int, rounds: int) -> list[Gate]:
    """Readings per second through association and estimation, windows spread over the processes."""
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        list(pool.map(_fused, [readings] * processes, range(processes), [len(catalogue())] * processes))
        rates = []
        for number in range(rounds):
            began = time.perf_counter()
            done = list(pool.map(_fused, [readings] * processes, [number] * processes, [len(catalogue())] * processes))
            rates.append(sum(seen for seen, _, _ in done) / max(took for _, took, _ in done))
            console.print(
                f"round {number}: {rates[-1]:,.0f} readings/s on {processes} processes "
                f"({time.perf_counter() - began:.1f} s with making them); rightly associated {done[0][2]:.2%}"
            )
    return [Gate("readings/s through association and estimation", float(np.median(rates)), 50_000, at_least=True)]


def _flatness(readings: int, rounds: int) -> list[Gate]:
    """Microseconds per reading over the size of the catalogue, with the same readings."""
    cost = []
    for size in SIZES:
        taken = [_fused(readings, 7, size, smallest=SIZES[0])[1] / readings * 1e6 for _ in range(rounds + 1)][1:]
        cost.append(float(np.median(taken)))
        console.print(f"{size:>6} objects: {cost[-1]:.1f} µs per reading")
    return [Gate("cost per reading, 27k objects over 1k", cost[-1] / cost[0], 1.5, at_least=False)]


def _fused(readings: int, seed: int, objects: int, smallest: int | None = None) -> tuple[int, float, float]:
    """Fuse one window of so many radar readings: how many there were, the seconds it took, the share rightly seen."""
    watched = _dense(readings, seed, smallest or objects)
    propagator, numbers = _catalogue(objects)
    began = time.perf_counter()
    found = associate(watched.observations, propagator, tracks=watched.tracks)
    seen = np.flatnonzero(found.index >= 0)
    index, group = np.unique(found.index[seen], return_inverse=True)
    fit_windows(watched.observations.take(seen), group, propagator, index, np.full(len(index), MID_NS))
    took = time.perf_counter() - began
    return len(watched.group), took, float(np.mean(numbers[found.index] == watched.index[watched.group]))


@cache
def _catalogue(objects: int) -> tuple[Propagator, IntArray]:
    """A part of the catalogue, nested in the next larger, and where its rows are in the whole; -1 for none."""
    chosen = np.sort(np.random.default_rng(0).permutation(len(catalogue()))[:objects])
    propagator = catalogue().take(chosen)
    propagator.grid([START_NS])
    return propagator, np.append(chosen, -1)


@cache
def _dense(readings: int, seed: int, objects: int) -> Watched:
    """A window full of radar readings: every radar and what it sees, as many looks as make up the number."""
    members = _catalogue(objects)[1][:-1]
    every = visible("radar", MID_NS)
    every = every.take(np.isin(every.index, members))
    return _readings(every, max(readings // len(every.index), 1), seed)


def _watch(kind: str, members: IntArray, tracks: int, looks: int, seed: int) -> Watched | None:
    every = visible(kind, MID_NS)
    every = every.take(np.isin(every.index, members))
    if not len(every.index):
        return None
    rows = np.random.default_rng(seed).choice(len(every.index), tracks, replace=len(every.index) < tracks)
    return _readings(every.take(rows), looks, seed)


def _readings(seen: Sightings, looks: int, seed: int) -> Watched:
    """Equally spaced looks over the window of objects off their elements by a draw of their own."""
    rng = np.random.default_rng(seed)
    count = len(seen.index)
    deviation = prior_draw(seen.index, seen.time_ns, rng)
    group = np.repeat(np.arange(count), looks)
    phase = rng.uniform(0, 30 / looks, count)[group] + np.tile(np.arange(looks), count) * (30 / looks)
    time_ns = START_NS + (phase * 1e9).astype(np.int64)
    r, v = displaced(seen.index[group], time_ns, deviation[group], seen.time_ns[group])
    _, r_mid, v_mid = catalogue().at(seen.index, seen.time_ns)
    observations = observe(seen.source_id[group], time_ns, r, v, rng)
    truth = np.hstack([r_mid, v_mid]) + deviation
    return Watched(observations, group.astype(np.str_), group, seen.index, truth)


def _regimes() -> dict[str, IntArray]:
    elements = catalogue().elements
    motion, round_enough = elements.mean_motion_rev_per_day, elements.eccentricity < 0.1
    select: dict[str, Callable[[], FloatArray]] = {
        "low": lambda: (motion > 11.25) & round_enough,
        "medium": lambda: (motion > 1.5) & (motion < 6) & round_enough,
        "geostationary": lambda: (np.abs(motion - 1.0027) < 0.05) & round_enough,
        "eccentric": lambda: ~round_enough,
    }
    return {name: np.flatnonzero(of()) for name, of in select.items()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=int, default=50_000, help="readings per window")
    parser.add_argument("--tracks", type=int, default=1_000, help="tracks per regime and kind of sensor")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
