"""Association and estimation: speed, its dependence on the size of the catalogue, accuracy, and consistency.

    python benchmarks/fusion.py [--rate 50000] [--tracks 1000] [--peer-tracks 500] [--processes 2] [--rounds 3]

The catalogue is CelesTrak's of 2024-11-01 (26,834 objects). Accuracy is `fusion_accuracy.py`'s. Speed is that of steady
state: every process has its catalogue initialised and its kernels compiled, and gets whole windows of objects that are
off their elements by draws from the prior, slice by slice as the platform's workers do; first as fast as it can, then
in real time, each slice when its half second has passed. The track filter with the numerical model comes after it, over
two windows of every object. The peer of speed is Stone Soup's extended Kalman filter
(`stone_soup.py`), which gets the object of each observation.
"""

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from multiprocessing import get_context

import numpy as np
import stone_soup
from contest import Entry, Gate, contest, ratio
from fusion_accuracy import (
    MID_NS,
    RADAR_LOOKS,
    WINDOW_S,
    console,
    fits_of,
    regimes,
    single_windows,
    watch,
)

from sda_platform.arrays import FloatArray, IntArray, TextArray
from sda_platform.orbits.covariance import rtn_to_teme, transport
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.light import LIGHT_KM_S
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.sensing.observations import ObservationArrays, stacked
from sda_platform.orbits.tracking.manoeuvred_objects import with_manoeuvred
from sda_platform.orbits.tracking.slices import SLICE_NS, accumulate_slices
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform.orbits.tracking.window import FitWindow
from sda_platform.orbits.tracking.window_information import WindowFits
from sda_platform_tests.support.scenes import (
    SECOND_NS,
    START_NS,
    catalogue,
    displaced,
    observe,
    prior_draw,
    visible,
    window_fits,
)

SIZES = (1_000, 5_000, 26_834)
RATE = 50_000


def main() -> int:
    """Run, print, and fail where a gate is missed."""
    options = _options()
    gates = [
        *single_windows(options.tracks),
        *_speed(WINDOW_S * options.rate, options.processes),
    ]
    gates += _flatness(WINDOW_S * options.rate)
    gates += _against_stone_soup(options.peer_tracks, options.rounds)
    for gate in gates:
        console.print(f"  {gate}")
    return 0 if all(gate.holds for gate in gates) else 1


@dataclass(frozen=True)
class Run:
    """A window through association and estimation; when its fits were out, by the machine's monotonic clock."""

    readings: int
    processor_s: float
    last_s: float
    """Processor time of what is left when the window ends: its last slice, and the fits."""
    ended_s: float
    right_share: float
    objects: int
    refitted: int
    filter_s: float
    """Processor time of the track filter, over this window and the same one half a minute later."""


def _speed(readings: int, processes: int) -> list[Gate]:
    """Windows of 30 s with so many observations: all at once as fast as it goes, then one after another in real time.

    In real time a window is one process's and the next another's, as in the platform: while one finishes its window
    the other has the next one's first slices to weigh.
    """
    objects = len(catalogue())
    pools = [ProcessPoolExecutor(1, get_context("spawn")) for _ in range(processes)]
    try:
        warm = [pool.submit(_fused, readings, seed, objects) for seed, pool in enumerate(pools)]
        assert all(each.result().readings == readings for each in warm)
        began_s = time.monotonic()
        asked = [pool.submit(_fused, readings, seed, objects) for seed, pool in enumerate(pools)]
        done = [each.result() for each in asked]
        rate = processes * readings / (max(each.ended_s for each in done) - began_s)
        opens_s = [time.monotonic() + 1.0 + WINDOW_S * turn for turn in range(2 * processes)]
        paced = [
            pools[turn % processes].submit(_fused, readings, turn % processes, objects, open_s=opens_s[turn])
            for turn in range(2 * processes)
        ]
        late_s = [each.result().ended_s - open_s - WINDOW_S for each, open_s in zip(paced, opens_s, strict=True)]
    finally:
        for pool in pools:
            pool.shutdown()
    one = done[0]
    filtered = readings / (one.processor_s + one.filter_s)
    console.print(
        f"{readings:,} readings of {one.objects:,} objects in a window, {one.right_share:.2%} given the right object, "
        f"{one.refitted} objects fitted from their readings at the end: {rate:,.0f} readings/s by the clock on "
        f"{processes} processes. By processor time of one: {readings / one.processor_s:,.0f} readings/s, and "
        f"{one.last_s:.2f} s from a window's end to its fits; "
        f"with the track filter of two windows ({one.filter_s:.2f} s) {filtered:,.0f} readings/s. "
        "In real time the fits are out "
        f"{', '.join(f'{each:.2f}' for each in late_s)} s after the windows' ends"
    )
    return [
        Gate("readings/s through association and estimation, by the clock", rate, RATE, at_least=True),
        Gate("s from a window's end to 99 % of its fits", max(late_s), 1.0, at_least=False),
    ]


def _flatness(readings: int) -> list[Gate]:
    """Microseconds of processor time per observation over the size of the catalogue, with the same observations.

    Where the objects are is worked out once a window, whatever is seen in it: a thirtieth of the observations shows
    that.
    """
    cost = []
    for size in SIZES:
        few, many = (_fused(count, 7, size, smallest=SIZES[0]) for count in (readings // 30, readings))
        cost.append(1e6 * many.processor_s / many.readings)
        seldom = 1e6 * few.processor_s / few.readings
        console.print(f"{size:>6} objects: {cost[-1]:.1f} µs per reading, of {few.readings:,} alone {seldom:.1f} µs")
    return [Gate("cost per reading, 27k objects over 1k", cost[-1] / cost[0], 1.5, at_least=False)]


def _against_stone_soup(tracks: int, rounds: int) -> list[Gate]:
    """Low-orbit observations per second of processor time, and the error at each track's end, of both."""
    scene = watch("radar", regimes()["low"], tracks, RADAR_LOOKS, seed=6)
    assert scene is not None
    measurements = prepare(scene.observations)
    first, last = (np.arange(tracks) * RADAR_LOOKS + end for end in (0, RADAR_LOOKS - 1))
    delay_ns = (measurements.value[:, 0] / LIGHT_KM_S * 1e9).astype(np.int64)
    begin_ns, end_ns = (scene.observations.sensor_time_ns[rows] - delay_ns[rows] for rows in (first, last))
    _, r, v = catalogue().at(scene.index, begin_ns)
    prior = rtn_to_teme(element_covariance_rtn(catalogue(), scene.index, begin_ns, r, v), r, v)
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

    def run(name: str, work: Callable[[], FloatArray], _round: int) -> float:
        began = time.process_time()
        found = work()
        took = time.process_time() - began
        error_m[name] = float(np.median(np.linalg.norm(found[:, :3] - truth[:, :3], axis=1))) * 1e3
        return took

    seconds = contest([Entry(name, partial(run, name, work)) for name, work in entries.items()], rounds)
    for name, taken in seconds.items():
        console.print(
            f"{name}: {len(scene.group) / float(np.median(taken)):,.0f} readings/s of processor time, "
            f"median position error at the last reading {error_m[name]:.1f} m"
        )
    return [
        Gate("times as many readings/s as Stone Soup's EKF", ratio(seconds, "ours", "Stone Soup"), 50, at_least=True),
        Gate("position error, of Stone Soup's", error_m["ours"] / error_m["Stone Soup"], 1.0, at_least=False),
    ]


def _fused(readings: int, seed: int, objects: int, smallest: int | None = None, open_s: float | None = None) -> Run:
    """Fuse one window of so many radar observations; in real time, if it opens at a time of the monotonic clock.

    All observations are made before the clocks start.
    """
    parts = _readings(readings, seed, smallest or objects)
    whole = stacked([observations for observations, _, _ in parts])
    propagator, numbers = _catalogue(objects)
    window = FitWindow(propagator, MID_NS)
    began_s = time.process_time()
    for part, (observations, tracks, _) in enumerate(parts):
        if open_s is not None:
            time.sleep(max(open_s + (part + 1) * SLICE_NS / 1e9 - time.monotonic(), 0.0))
        last_s = time.process_time()
        [weighed] = accumulate_slices(observations, tracks, np.full(len(tracks), part), window.reference)
        window.add(weighed)
    found = with_manoeuvred(whole, window.fit(), propagator, MID_NS)
    ended_s, now_s = time.monotonic(), time.process_time()
    given = np.where(found.group >= 0, numbers[found.objects[found.group]], -1)
    right = float(np.mean(given == np.concatenate([truth for _, _, truth in parts])))
    return Run(
        len(given),
        now_s - began_s,
        now_s - last_s,
        ended_s,
        right,
        len(found.objects),
        int(found.refitted.sum()),
        _filter_s(
            window_fits(found.fits, np.arange(len(found.objects)), np.full(len(found.objects), MID_NS)),
            found.objects,
            propagator,
        ),
    )


def _filter_s(fits: WindowFits, objects: IntArray, propagator: Propagator) -> float:
    """Processor time of the track filter, over these fits and ones that deviate as much half a minute later."""
    epoch_ns = fits.epoch_ns + WINDOW_S * SECOND_NS
    _, r, v = propagator.at(objects, epoch_ns)
    later = replace(
        fits, epoch_ns=epoch_ns, state=np.hstack([r, v]) + fits.state - fits.predicted, predicted=np.hstack([r, v])
    )
    both = WindowFits(
        **{f.name: np.concatenate([getattr(fits, f.name), getattr(later, f.name)]) for f in fields(WindowFits)}
    )
    in_turn = both.take(np.lexsort((both.epoch_ns, both.group)))
    began_s = time.process_time()
    filter_tracks(in_turn, propagator, objects, Dynamics(threads=1))
    return time.process_time() - began_s


@cache
def _catalogue(objects: int) -> tuple[Propagator, IntArray]:
    """A part of the catalogue, nested in the next larger, and where its rows are in the whole; -1 for none."""
    chosen = np.sort(np.random.default_rng(0).permutation(len(catalogue()))[:objects])
    propagator = catalogue().take(chosen)
    propagator.grid([START_NS])
    return propagator, np.append(chosen, -1)


@cache
def _readings(readings: int, seed: int, objects: int) -> list[tuple[ObservationArrays, TextArray, IntArray]]:
    """A window full of radar observations, by slices: of every radar and what it sees, with the objects they are of."""
    members = _catalogue(objects)[1][:-1]
    every = visible("radar", MID_NS)
    every = every.take(np.isin(every.index, members))
    rng = np.random.default_rng(seed)
    distinct, which = np.unique(every.index, return_inverse=True)
    deviation = prior_draw(distinct, np.full(len(distinct), MID_NS), rng)[which]
    parts = []
    slices = WINDOW_S * SECOND_NS // SLICE_NS
    for part in range(slices):
        pair = rng.integers(0, len(which), readings // slices)
        time_ns = START_NS + part * SLICE_NS + np.sort(rng.integers(0, SLICE_NS, len(pair)))
        r, v = displaced(every.index[pair], time_ns, deviation[pair], every.time_ns[pair])
        observations = observe(every.source_id[pair], time_ns, r, v, rng)
        parts.append((observations, pair.astype(np.str_), every.index[pair]))
    return parts


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=RATE, help="readings per second of the windows")
    parser.add_argument("--tracks", type=int, default=1_000, help="tracks per regime and kind of sensor")
    parser.add_argument(
        "--peer-tracks", type=int, default=500, help="tracks of 30 readings for the contest with Stone Soup"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
