"""The carried state: better with every window, honest about it, and broken by nothing but a manoeuvre."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.tracking.estimation import fit_windows
from sda_platform.orbits.tracking.track_filter import FilteredStates, WindowFits, filter_tracks
from sda_platform_tests.support.scenes import (
    SECOND_NS,
    START_NS,
    VisiblePairs,
    catalogue,
    displaced,
    observe,
    prior_draw,
    visible,
)

WINDOW_NS = 30 * SECOND_NS
OBJECTS, WINDOWS, READINGS = 60, 8, 10
NONE = np.zeros(3)


@dataclasses.dataclass(frozen=True)
class Pass:
    """Window fits of one pass of each object, and where the objects truly were at each of them."""

    fits: WindowFits
    index: IntArray
    truth: FloatArray

    def first(self, windows: int) -> FilteredStates:
        """The states after so many windows of each."""
        chosen = np.concatenate([np.arange(windows) + g * WINDOWS for g in range(OBJECTS)])
        taken = {f.name: getattr(self.fits, f.name)[chosen] for f in dataclasses.fields(WindowFits)}
        return filter_tracks(WindowFits(**taken), catalogue(), self.index)

    def miss_km(self, state: FloatArray, window: int) -> FloatArray:
        return np.asarray(np.linalg.norm((state - self.truth[window::WINDOWS])[:, :3], axis=1))


def seen_throughout(span_ns: int) -> VisiblePairs:
    """Pairs of an object and a radar that sees it at the beginning and at the end, one of each object."""
    begin, end = visible("radar", START_NS), visible("radar", START_NS + span_ns)
    both = set(zip(end.index.tolist(), end.source_id.tolist(), strict=True))
    kept: dict[int, int] = {}
    for row, pair in enumerate(zip(begin.index.tolist(), begin.source_id.tolist(), strict=True)):
        if pair in both:
            kept.setdefault(pair[0], row)
    return begin.take(list(kept.values()))


@cache
def passes(kick_m_s: float = 0.0, kicked_window: int = 4, seed: int = 5) -> Pass:
    """Objects off their prediction as the prior states, each with a change of speed along its track where kicked."""
    rng = np.random.default_rng(seed)
    every = seen_throughout(WINDOWS * WINDOW_NS)
    seen = every.take(rng.choice(len(every.index), OBJECTS, replace=False))
    start = np.full(OBJECTS, START_NS)
    kick_ns = START_NS + kicked_window * WINDOW_NS
    before = prior_draw(seen.index, start, rng)
    r, v = displaced(seen.index, np.full(OBJECTS, kick_ns), before, start)
    _, r_ref, v_ref = catalogue().at(seen.index, np.full(OBJECTS, kick_ns))
    along = v / np.linalg.norm(v, axis=1, keepdims=True)
    after = np.hstack([r - r_ref, v - v_ref + along * kick_m_s / 1e3])

    def truth(row: IntArray, time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        kicked = (time_ns >= kick_ns) & (kick_m_s > 0)
        plain = displaced(seen.index[row], time_ns, before[row], start[row])
        moved = displaced(seen.index[row], time_ns, after[row], np.full(len(row), kick_ns))
        return tuple(np.where(kicked[:, None], m, p) for m, p in zip(moved, plain, strict=True))  # type: ignore[return-value]

    window = np.tile(np.arange(WINDOWS), OBJECTS)
    row = np.repeat(np.arange(OBJECTS), WINDOWS)
    middle = START_NS + window * WINDOW_NS + WINDOW_NS // 2
    group = np.repeat(np.arange(OBJECTS * WINDOWS), READINGS)
    time_ns = (START_NS + window * WINDOW_NS)[group] + rng.integers(0, WINDOW_NS, len(group))
    r, v = truth(row[group], time_ns)
    observations = observe(seen.source_id[row[group]], time_ns, r, v, rng)
    fits = fit_windows(observations, group, catalogue(), seen.index[row], middle)
    return Pass(
        WindowFits(
            group=row,
            epoch_ns=middle,
            state=np.hstack([fits.r_teme_km, fits.v_teme_km_s]),
            covariance=fits.covariance_teme,
            predicted=np.hstack([fits.predicted_r_teme_km, fits.predicted_v_teme_km_s]),
            prior_covariance=fits.prior_covariance_teme,
        ),
        seen.index,
        np.hstack(truth(row, middle)),
    )


def rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def test_one_window_is_filtered_to_its_own_fit() -> None:
    scene, alone = passes(), passes().first(1)
    assert np.allclose(alone.state, scene.fits.state[::WINDOWS], atol=1e-7)
    assert np.allclose(alone.covariance, scene.fits.covariance[::WINDOWS], rtol=1e-4, atol=1e-10)
    assert np.isnan(alone.innovation).all()


def test_the_position_error_falls_with_every_doubling_of_the_windows() -> None:
    scene = passes()
    misses = [rms(scene.miss_km(scene.first(n).state, n - 1)) for n in (1, 2, 4, 8)]
    assert misses == sorted(misses, reverse=True), misses
    assert misses[-1] < misses[0] / 2
    alone = rms(scene.miss_km(scene.fits.state[WINDOWS - 1 :: WINDOWS], WINDOWS - 1))
    assert misses[-1] < 0.6 * alone, "the same window, fitted alone"


def test_the_filtered_covariance_is_as_large_as_the_errors() -> None:
    """The mean squared normalised error is near one per component, and rather below."""
    scene = passes()
    last = scene.first(WINDOWS)
    off = last.state - scene.truth[WINDOWS - 1 :: WINDOWS]
    total = float(np.einsum("gi,gi->", off, np.linalg.solve(last.covariance, off[:, :, None])[:, :, 0]))
    assert 0.7 < total / (6 * OBJECTS) < chi2.ppf(0.975, 6 * OBJECTS) / (6 * OBJECTS)


def test_innovations_are_as_large_as_their_covariance() -> None:
    scene = passes()
    found = [scene.first(n) for n in range(2, WINDOWS + 1)]
    squares = float(np.sum([f.innovation.sum() for f in found]))
    freedom = int(np.sum([f.innovation_size.sum() for f in found]))
    assert freedom > 6 * OBJECTS
    assert chi2.ppf(0.001, freedom) < squares < chi2.ppf(0.999, freedom), squares / freedom


def test_no_manoeuvre_is_detected_without_one() -> None:
    last = passes().first(WINDOWS)
    assert not last.manoeuvre_ns.any()
    assert np.isnan(last.manoeuvre_km_s).all()


@pytest.mark.parametrize("kick_m_s", [20.0, 60.0])
def test_a_manoeuvre_is_found_with_its_time_and_size(kick_m_s: float) -> None:
    scene = passes(kick_m_s)
    last = scene.first(WINDOWS)
    found = last.manoeuvre_ns > 0
    assert found.mean() > 0.9
    kick_ns = START_NS + 4 * WINDOW_NS
    late_s = (last.manoeuvre_ns[found] - kick_ns) / SECOND_NS
    assert (late_s >= 0).all(), "nothing before it happened"
    assert np.median(late_s) == 15, "the middle of the first window after it"
    off = (last.manoeuvre_km_s[found] - kick_m_s / 1e3) / last.manoeuvre_sigma_km_s[found]
    assert np.median(np.abs(off)) < 1.5
    assert np.median(last.manoeuvre_km_s[found]) == pytest.approx(kick_m_s / 1e3, rel=0.2)


def test_after_a_manoeuvre_the_track_follows_again() -> None:
    scene = passes(60.0)
    last = scene.first(WINDOWS)
    found = last.manoeuvre_ns > 0
    alone = scene.miss_km(scene.fits.state[WINDOWS - 1 :: WINDOWS], WINDOWS - 1)
    assert rms(scene.miss_km(last.state, WINDOWS - 1)[found]) < 1.5 * rms(alone[found])


def test_one_stray_window_is_set_aside_and_is_no_manoeuvre() -> None:
    scene = passes()
    shifted = scene.fits.state.copy()
    shifted[4::WINDOWS, :3] += 3.0
    stray = dataclasses.replace(scene, fits=dataclasses.replace(scene.fits, state=shifted)).first(WINDOWS)
    assert not stray.manoeuvre_ns.any()
    assert (stray.unexplained == 1).mean() > 0.9
    assert rms(scene.miss_km(stray.state, WINDOWS - 1)) < 2 * rms(
        scene.miss_km(scene.first(WINDOWS).state, WINDOWS - 1)
    )


def test_a_new_catalogue_changes_the_reference_and_not_the_information() -> None:
    """A carried state after the catalogue was replaced is the same, but for what its first prior was worth."""
    scene = passes()
    elements = catalogue().elements
    newer = type(catalogue())(
        dataclasses.replace(elements, mean_anomaly_deg=elements.mean_anomaly_deg + 0.002)  # 250 m along the track
    )
    then, now = scene.first(WINDOWS), filter_tracks(scene.fits, newer, scene.index)
    sigma = np.sqrt(np.einsum("gii->g", then.covariance[:, :3, :3]))
    assert np.median(np.linalg.norm((then.state - now.state)[:, :3], axis=1) / sigma) < 0.5
