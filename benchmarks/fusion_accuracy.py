"""How accurate fused tracks are in each regime, and how honest their covariance: one window, and many carried on.

Objects are off their elements by draws from the prior, and seen by the simulation's sensors with their noise, light
time and all. The peer is the catalogue's own prediction; normalised squared errors of single windows are held against
their 95 % chi-square bounds. Carried ones should be below six: process noise represents what SGP4 leaves out, and here
the truth has none of it.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
from contest import Gate
from rich.console import Console
from scipy.stats import chi2

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.risk.degenerate import BoolArray
from sda_platform.orbits.sensing.measurements import prepare
from sda_platform.orbits.tracking.estimation import StateFits, fit_windows
from sda_platform.orbits.tracking.progress import forget, fuse_window
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform.orbits.tracking.window_information import WindowFits
from sda_platform_tests.support.scenes import (
    SECOND_NS,
    START_NS,
    VisiblePairs,
    Watched,
    catalogue,
    visible,
    watched,
    window_fits,
)

MID_NS = START_NS + 15 * SECOND_NS
RADAR_LOOKS = 30
LOOKS = {"radar": RADAR_LOOKS, "optical": 3}
WINDOW_S = 30
# Windows of a track, and seconds from one to the next: a pass of a low orbit; two hours, which is what `tracks`
# remembers, of one that is high enough to stay in view.
PASS, STAY = (12, 30), (60, 120)
_LOWEST_SINE = np.sin(np.radians(5.0))
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
        predicted, state, covariance, truth = fused(scene)
        _, nees = _told(f"{regime} by {kind}, one window", predicted, state, covariance, truth)
        gates.append(Gate(f"{regime} by {kind}: normalised squared error", nees, float(high), at_least=False))
        gates.append(Gate(f"{regime} by {kind}: normalised squared error", nees, float(low), at_least=True))
    return gates


def carried_tracks(tracks: int) -> list[Gate]:
    """How much nearer to the truth the carried state is at its newest window than the prediction."""
    gates = []
    for (regime, members), (kind, looks) in product(regimes().items(), LOOKS.items()):
        windows, spacing_s = PASS if regime == "low" else STAY
        seen = _sightings(kind, members, tracks, seed=7)
        if seen is None:
            continue
        fits, index, truth = _window_fits(seen, looks, windows, spacing_s)
        filtered = filter_tracks(fits, catalogue(), index)
        last = np.flatnonzero(np.diff(fits.group, append=-1))
        name = f"{regime} by {kind}, {np.bincount(fits.group).mean():.0f} windows, one every {spacing_s} s"
        better, _ = _told(name, fits.predicted[last, :3], filtered.state, filtered.covariance, truth[last])
        gates.append(Gate(f"{regime} by {kind}, carried: position error, times better", better, 5.0, at_least=True))
    return gates


def _told(
    name: str, predicted_km: FloatArray, state: FloatArray, covariance: FloatArray, truth: FloatArray
) -> tuple[float, float]:
    """How many times nearer than the prediction (n, 3) the states (n, 6) are, and their normalised squared error."""
    error = state - truth
    solved = np.linalg.solve(covariance, error[:, :, None])[:, :, 0]
    nees = float(np.einsum("gi,gi->g", error, solved).mean())
    before, after = (
        float(np.median(np.linalg.norm(off, axis=1))) * 1000 for off in (predicted_km - truth[:, :3], error[:, :3])
    )
    console.print(
        f"{name}: prediction {before:,.0f} m, fused {after:,.0f} m, {before / after:.1f} times better; "
        f"normalised squared error {nees:.3f}"
    )
    return before / after, nees


def _window_fits(
    seen: VisiblePairs, looks: int, windows: int, spacing_s: int
) -> tuple[WindowFits, IntArray, FloatArray]:
    """Fits of as many windows of each object as its sensor sees it in; the objects (g,), and the truth (w, 6)."""
    count, rng = len(seen.index), np.random.default_rng(8)
    start_s = (np.arange(windows) * spacing_s)[None, :, None]
    phase_s = rng.uniform(0, WINDOW_S / looks, (count, windows, 1)) + np.arange(looks) * WINDOW_S / looks
    time_ns = START_NS + ((start_s + phase_s).ravel() * 1e9).astype(np.int64)
    scene = watched(seen, time_ns, rng)
    measured = prepare(scene.observations)
    zenith = measured.site_km / np.linalg.norm(measured.site_km, axis=1, keepdims=True)
    up = np.einsum("ni,ni->n", measured.direction, zenith) > _LOWEST_SINE
    window = scene.group * windows + (time_ns - START_NS) // (spacing_s * SECOND_NS)
    seen_in, group = np.unique(window[up], return_inverse=True)
    owner = seen_in // windows
    middle_ns = MID_NS + seen_in % windows * spacing_s * SECOND_NS
    found = fit_windows(scene.observations.take(up), group, catalogue(), seen.index[owner], middle_ns)
    objects, of_object = np.unique(owner, return_inverse=True)
    fits = window_fits(found, of_object, middle_ns)
    return fits, seen.index[objects], np.hstack(scene.states_at(owner, middle_ns))


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


def fused(watched: Watched) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Predicted positions, states, covariances and true states of one window, fused as the platform does, by slices.

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
        right = index[owner] == window.objects
        fits = window.fits
        state = np.hstack([fits.r_teme_km, fits.v_teme_km_s])
        columns = (fits.predicted_r_teme_km, state, fits.covariance_teme, watched.truth[owner])
        found.append([column[right] for column in columns])
    forget()
    predicted, states, covariance, truth = (np.concatenate(column) for column in zip(*found, strict=True))
    return predicted, states, covariance, truth


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
