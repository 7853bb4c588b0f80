"""How accurate the fits of single windows are in each regime, and whether their covariance is as large as their errors.

Objects are off their elements by draws from the prior, and seen by the simulation's sensors with their noise and light
time. The peer is the catalogue's own prediction. Normalised squared errors are compared with their 95 % chi-square
bounds, but for windows with observations of another object, whose share is printed: satellites that share a place in
the geostationary ring are nearer to each other than their element sets are certain. Tracks, over many windows, are
compared with an independent truth by `track_consistency.py`.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
from contest import Gate
from rich.console import Console
from scipy.stats import chi2

from sda_platform.arrays import BoolArray, FloatArray, IntArray
from sda_platform.orbits.tracking.estimation import StateFits, fit_windows
from sda_platform.orbits.tracking.progress import forget, fuse_window
from sda_platform_tests.support.scenes import (
    SECOND_NS,
    START_NS,
    VisiblePairs,
    Watched,
    catalogue,
    visible,
    watched,
)

MID_NS = START_NS + 15 * SECOND_NS
RADAR_LOOKS = 30
LOOKS = {"radar": RADAR_LOOKS, "optical": 3}
WINDOW_S = 30
console = Console(highlight=False, soft_wrap=True)


def single_windows(tracks: int) -> list[Gate]:
    """Normalised squared error of one window's fit of as many tracks in each regime and kind of sensor."""
    low, high = chi2.ppf([0.025, 0.975], 6 * tracks) / tracks
    gates = []
    for (regime, members), (kind, looks) in product(regimes().items(), LOOKS.items()):
        scene = watch(kind, members, tracks, looks, seed=5)
        if scene is None:
            console.print(f"{regime} by {kind}: not seen at this hour")
            continue
        is_right, predicted, state, covariance, truth = fused(scene)
        own = (column[is_right] for column in (predicted, state, covariance, truth))
        nees = _told(f"{regime} by {kind}", float(np.mean(~is_right)), *own)
        gates.append(Gate(f"{regime} by {kind}: normalised squared error", nees, float(high), at_least=False))
        gates.append(Gate(f"{regime} by {kind}: normalised squared error", nees, float(low), at_least=True))
    return gates


def _told(
    name: str, wrong: float, predicted_km: FloatArray, state: FloatArray, covariance: FloatArray, truth: FloatArray
) -> float:
    """The normalised squared error of states (n, 6); printed with their errors and those of predictions (n, 3)."""
    error = state - truth
    solved = np.linalg.solve(covariance, error[:, :, None])[:, :, 0]
    nees = float(np.einsum("gi,gi->g", error, solved).mean())
    before, after = (
        float(np.median(np.linalg.norm(off, axis=1))) * 1000 for off in (predicted_km - truth[:, :3], error[:, :3])
    )
    console.print(
        f"{name}: prediction {before:,.0f} m, fused {after:,.0f} m, {before / after:.1f} times better; "
        f"normalised squared error {nees:.3f}; {wrong:.1%} with observations of another object"
    )
    return nees


def watch(kind: str, members: IntArray, tracks: int, looks: int, seed: int) -> Watched | None:
    """One window of so many of the objects, each by one sensor of a kind that sees it; None where none does."""
    seen = _sightings(kind, members, tracks, seed)
    return None if seen is None else readings_of(seen, looks, seed)


def _sightings(kind: str, members: IntArray, tracks: int, seed: int) -> VisiblePairs | None:
    every = visible(kind, MID_NS)
    every = every.take(np.isin(every.index, members))
    if not len(every.index):
        return None
    return every.take(np.random.default_rng(seed).choice(len(every.index), tracks, replace=len(every.index) < tracks))


def readings_of(seen: VisiblePairs, looks: int, seed: int) -> Watched:
    """Equally spaced looks over the window of objects off their elements by a draw of their own."""
    rng = np.random.default_rng(seed)
    step_s = 30 / looks
    phase_s = rng.uniform(0, step_s, (len(seen.index), 1)) + np.arange(looks) * step_s
    return watched(seen, START_NS + (phase_s.ravel() * 1e9).astype(np.int64), rng)


def fits_of(watched: Watched) -> StateFits:
    """The fits of one window at its middle."""
    index, middle_ns = watched.seen.index, watched.seen.time_ns
    return fit_windows(watched.observations, watched.group, catalogue(), index, middle_ns)


def fused(watched: Watched) -> tuple[BoolArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Predicted positions, states, covariances and true states of one window, fused as the platform does, by slices.

    The first array tells which have observations of their object alone.

    Who was watched twice, with two truths, is so in two windows.
    """
    index, found = watched.seen.index, []
    order = np.argsort(index, kind="stable")
    turn = np.empty(len(index), dtype=np.int64)
    turn[order] = np.arange(len(index)) - np.searchsorted(index[order], index[order])
    for again in range(turn.max() + 1):
        rows = np.flatnonzero(turn[watched.group] == again)
        rows = rows[np.argsort(watched.observations.sensor_time_ns[rows], kind="stable")]
        taken, tracks = watched.observations.take(rows), watched.group[rows].astype(np.str_)
        window = fuse_window(taken, tracks, rows, taken.sensor_time_ns, catalogue(), MID_NS)
        members = np.flatnonzero(turn == again)
        place = np.minimum(np.searchsorted(np.sort(index[members]), window.objects), len(members) - 1)
        owner = members[np.argsort(index[members])][place]
        is_watched = index[owner] == window.objects
        seen = np.flatnonzero(window.group >= 0)
        mixed = seen[watched.group[rows[seen]] != owner[window.group[seen]]]
        is_right = np.bincount(window.group[mixed], minlength=len(owner)) == 0
        fits = window.fits
        state = np.hstack([fits.r_teme_km, fits.v_teme_km_s])
        columns = (is_right, fits.predicted_r_teme_km, state, fits.covariance_teme, watched.truth[owner])
        found.append([column[is_watched] for column in columns])
    forget()
    is_own, predicted, states, covariance, truth = (np.concatenate(column) for column in zip(*found, strict=True))
    return is_own, predicted, states, covariance, truth


def regimes() -> dict[str, IntArray]:
    """Positions in the catalogue by kind of orbit."""
    elements = catalogue().elements
    motion, round_enough = elements.mean_motion_rev_per_day, elements.eccentricity < 0.1
    select: dict[str, Callable[[], BoolArray]] = {
        "low": lambda: (motion > 11.25) & round_enough,
        "medium": lambda: (motion > 1.5) & (motion < 6) & round_enough,
        "geostationary": lambda: (np.abs(motion - 1.0027) < 0.05) & round_enough,
        "eccentric": lambda: ~round_enough,
    }
    return {name: np.flatnonzero(of()) for name, of in select.items()}
