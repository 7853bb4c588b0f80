"""Association and estimation: how fast, how flat over the catalogue's size, how accurate, and how honest?

    python benchmarks/fusion.py [--readings 50000] [--tracks 1000] [--peer-tracks 500] [--processes 2] [--rounds 3]

The catalogue is CelesTrak's of 2024-11-01 (26,834 objects). Accuracy is `fusion_accuracy.py`'s. Speed is that of steady
state: every process has its catalogue initialised and its kernels compiled, and gets whole windows of objects that are
off their elements by draws from the prior. The peer of speed is Stone Soup's extended Kalman filter (`stone_soup.py`),
which is told which object each reading is of.
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
import stone_soup
from contest import Entry, Gate, contest, ratio
from fusion_accuracy import (
    MID_NS,
    RADAR_LOOKS,
    carried_tracks,
    console,
    fits_of,
    readings_of,
    regimes,
    single_windows,
    watch,
)

from sda_platform.orbits.covariance import prior_covariance_rtn, rtn_to_teme, transport
from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.light import LIGHT_KM_S
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.sensors import sensor_registry
from sda_platform.orbits.tracking.association import associate
from sda_platform.orbits.tracking.estimation import fit_windows
from sda_platform_tests.unit.orbits.scenes import (
    DAY_NS,
    START_NS,
    Watched,
    catalogue,
    visible,
)

SIZES = (1_000, 5_000, 26_834)
RATE = 50_000
SCENES = 3


def main() -> int:
    """Run, print, and fail where a gate is missed."""
    options = _options()
    gates = [
        *single_windows(options.tracks),
        *carried_tracks(options.tracks // 5),
        *_speed(options.readings, options.processes),
    ]
    gates += _flatness(options.readings, options.rounds)
    gates += _against_stone_soup(options.peer_tracks, options.rounds)
    for gate in gates:
        console.print(f"  {gate}")
    return 0 if all(gate.holds for gate in gates) else 1


@dataclass(frozen=True)
class Fused:
    """Readings of a window through association and estimation; when that ended, by the machine's monotonic clock."""

    readings: int
    processor_s: float
    ended_s: float
    right_share: float


def _speed(readings: int, processes: int) -> list[Gate]:
    """A window of 30 s at the rate that is asked for, in parts of so many readings, each part by one process.

    All of the window is fused at once here, as it would be if nothing were fitted before the watermark passes: its last
    fits come as late as all of it takes.
    """
    objects = len(catalogue())
    pools = [ProcessPoolExecutor(1, get_context("spawn")) for _ in range(processes)]
    try:
        for seed in (*range(SCENES), 0):
            warm = [pool.submit(_fused, readings, seed, objects) for pool in pools]
            sizes = [each.result().readings for each in warm]
        parts = round(30 * RATE / sizes[0])
        began_s = time.monotonic()
        asked = [pools[part % processes].submit(_fused, readings, part % SCENES, objects) for part in range(parts)]
        done = [each.result() for each in asked]
    finally:
        for pool in pools:
            pool.shutdown()
    total = sum(each.readings for each in done)
    rate = total / (max(each.ended_s for each in done) - began_s)
    by_processor = processes * total / sum(each.processor_s for each in done)
    emitted_s = float(np.percentile([each.ended_s - began_s for each in done], 99))
    right = np.mean([each.right_share for each in done])
    console.print(
        f"{total:,} readings in {parts} parts, {right:.2%} given the right object: {rate:,.0f} readings/s by the clock "
        f"on {processes} processes, {by_processor:,.0f} by processor time; 99 % of the fits after {emitted_s:.1f} s; "
        f"within 1 s of the watermark up to {by_processor / 30:,.0f} readings/s, by processor time"
    )
    return [
        Gate("readings/s through association and estimation, by the clock", rate, RATE, at_least=True),
        Gate("s until 99 % of a full window's fits are out", emitted_s, 1.0, at_least=False),
    ]


def _flatness(readings: int, rounds: int) -> list[Gate]:
    """Microseconds of processor time per reading over the size of the catalogue, with the same readings."""
    cost = []
    for size in SIZES:
        taken = [_fused(readings, 7, size, smallest=SIZES[0]) for _ in range(rounds + 1)][1:]
        cost.append(float(np.median([each.processor_s / each.readings for each in taken])) * 1e6)
        console.print(f"{size:>6} objects: {cost[-1]:.1f} µs per reading")
    return [Gate("cost per reading, 27k objects over 1k", cost[-1] / cost[0], 1.5, at_least=False)]


def _against_stone_soup(tracks: int, rounds: int) -> list[Gate]:
    """Readings of low orbits per second of processor time, and the error at each track's last reading, of either."""
    scene = watch("radar", regimes()["low"], tracks, RADAR_LOOKS, seed=6)
    assert scene is not None
    measurements = prepare(scene.observations, sensor_registry())
    first, last = (np.arange(tracks) * RADAR_LOOKS + end for end in (0, RADAR_LOOKS - 1))
    delay_ns = (measurements.value[:, 0] / LIGHT_KM_S * 1e9).astype(np.int64)
    begin_ns, end_ns = (scene.observations.sensor_time_ns[rows] - delay_ns[rows] for rows in (first, last))
    _, r, v = catalogue().at(scene.index, begin_ns)
    age_days = (begin_ns - catalogue().elements.epoch_time_ns[scene.index]) / DAY_NS
    prior = rtn_to_teme(prior_covariance_rtn(r, v, age_days), r, v)
    each = range(tracks)
    given = [stone_soup.track(measurements, range(first[n], last[n] + 1), r[n], v[n], prior[n]) for n in each]
    truth = np.hstack(scene.states_at(np.arange(tracks), end_ns))

    def ours() -> FloatArray:
        fits = fits_of(scene)
        reference = np.hstack([fits.predicted_r_teme_km, fits.predicted_v_teme_km_s])
        deviation = np.hstack([fits.r_teme_km, fits.v_teme_km_s]) - reference
        elapsed_s = (end_ns - scene.seen.time_ns) / 1e9
        moved, _ = transport(deviation, fits.covariance_teme, reference[:, :3], reference[:, 3:], elapsed_s)
        return np.hstack(catalogue().at(scene.index, end_ns)[1:]) + moved

    entries = {"ours": ours, "Stone Soup": lambda: stone_soup.filtered(given)}
    error_m = {}

    def run(name: str, work: Callable[[], FloatArray]) -> float:
        began = time.process_time()
        found = work()
        took = time.process_time() - began
        error_m[name] = float(np.median(np.linalg.norm(found[:, :3] - truth[:, :3], axis=1))) * 1e3
        return took

    seconds = contest([Entry(name, lambda _, n=name, w=work: run(n, w)) for name, work in entries.items()], rounds)
    for name, taken in seconds.items():
        console.print(
            f"{name}: {len(scene.group) / float(np.median(taken)):,.0f} readings/s of processor time, "
            f"median position error at the last reading {error_m[name]:.1f} m"
        )
    return [
        Gate("times as many readings/s as Stone Soup's EKF", ratio(seconds, "ours", "Stone Soup"), 50, at_least=True),
        Gate("position error, of Stone Soup's", error_m["ours"] / error_m["Stone Soup"], 1.0, at_least=False),
    ]


def _fused(readings: int, seed: int, objects: int, smallest: int | None = None) -> Fused:
    """Fuse one window of so many radar readings; all are made before the clocks start."""
    scene = _dense(readings, seed, smallest or objects)
    tracks = scene.group.astype(np.str_)
    propagator, numbers = _catalogue(objects)
    began_s = time.process_time()
    found = associate(scene.observations, propagator, tracks=tracks)
    seen = np.flatnonzero(found.index >= 0)
    index, group = np.unique(found.index[seen], return_inverse=True)
    fit_windows(scene.observations.take(seen), group, propagator, index, np.full(len(index), MID_NS))
    processor_s, ended_s = time.process_time() - began_s, time.monotonic()
    right = float(np.mean(numbers[found.index] == scene.index[scene.group]))
    return Fused(len(scene.group), processor_s, ended_s, right)


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
    return readings_of(every, max(readings // len(every.index), 1), seed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=int, default=50_000, help="readings of a part of a window")
    parser.add_argument("--tracks", type=int, default=1_000, help="tracks per regime and kind of sensor")
    parser.add_argument(
        "--peer-tracks", type=int, default=500, help="tracks of 30 readings for the contest with Stone Soup"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
