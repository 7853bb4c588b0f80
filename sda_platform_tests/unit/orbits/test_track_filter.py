"""The carried state: better with every window, honest about it, and broken by nothing but a manoeuvre."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.dynamics.orbit_uncertainty import first_coefficients
from sda_platform.orbits.earth_orientation import gcrf_of_teme, teme_of_gcrf
from sda_platform.orbits.frames import rtn_basis
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.estimation import fit_windows
from sda_platform.orbits.tracking.filtered_states import FilteredStates
from sda_platform.orbits.tracking.manoeuvre_evidence import MANOEUVRE_COVARIANCE
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform.orbits.tracking.window_information import WindowFits, observation_information
from sda_platform_tests.support.scenes import (
    SECOND_NS,
    START_NS,
    VisiblePairs,
    catalogue,
    observe,
    prior_draw,
    visible,
    window_fits,
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
    kick_ns = np.full(OBJECTS, START_NS + kicked_window * WINDOW_NS)
    dynamics, areas = CONSTANT_DYNAMICS, first_coefficients(catalogue().elements.bstar_per_earth_radius[seen.index])[0]
    _, r, v = catalogue().at(seen.index, start)
    begin = gcrf_of_teme(np.hstack([r, v]) + prior_draw(seen.index, start, rng), start)
    after = dynamics.states(begin, areas, start, kick_ns[:, None])[:, 0]
    after[:, 3:] *= 1 + kick_m_s / 1e3 / np.linalg.norm(after[:, 3:], axis=1, keepdims=True)

    def truth(row: IntArray, time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """States of all objects, as many times of each, in order of object."""
        assert (np.diff(row) >= 0).all()
        times = time_ns.reshape(OBJECTS, -1)
        order = np.argsort(times, axis=1)
        ascending = np.take_along_axis(times, order, axis=1)
        plain = dynamics.states(begin, areas, start, ascending)
        moved = dynamics.states(after, areas, kick_ns, np.maximum(ascending, kick_ns[:, None]))
        states = np.where(((ascending >= kick_ns[:, None]) & (kick_m_s > 0))[..., None], moved, plain)
        states = np.take_along_axis(states, np.argsort(order, axis=1)[..., None], axis=1).reshape(-1, 6)
        in_teme = teme_of_gcrf(states, time_ns)
        return in_teme[:, :3], in_teme[:, 3:]

    window = np.tile(np.arange(WINDOWS), OBJECTS)
    row = np.repeat(np.arange(OBJECTS), WINDOWS)
    middle = START_NS + window * WINDOW_NS + WINDOW_NS // 2
    group = np.repeat(np.arange(OBJECTS * WINDOWS), READINGS)
    time_ns = (START_NS + window * WINDOW_NS)[group] + rng.integers(0, WINDOW_NS, len(group))
    r, v = truth(row[group], time_ns)
    observations = observe(seen.source_id[row[group]], time_ns, r, v, rng)
    fits = fit_windows(observations, group, catalogue(), seen.index[row], middle)
    return Pass(
        window_fits(fits, row, middle),
        seen.index,
        np.hstack(truth(row, middle)),
    )


def rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def test_one_window_is_filtered_to_its_own_fit() -> None:
    scene, alone = passes(), passes().first(1)
    sigma = np.sqrt(np.einsum("gii->gi", scene.fits.covariance[::WINDOWS]))
    # The velocity of the first prior is wider by what SGP4 leaves out.
    assert (np.abs(alone.state - scene.fits.state[::WINDOWS])[:, :3] < 1.5 * sigma[:, :3]).all()
    own = np.einsum("gii->gi", alone.covariance)
    assert (own > 0.999 * sigma**2).all() and np.median(own / sigma**2) < 2
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


def with_wrong_sets(scene: Pass, hidden: int, ahead_deg: float = 0.03) -> tuple[WindowFits, Propagator]:
    """The windows about sets whose low objects are 3.6 km ahead of where they are, and the catalogue of these sets.

    The first ``hidden`` windows of each object observe its place across its orbit only, which does not show it.
    """
    elements = catalogue().elements
    wrong = Propagator(dataclasses.replace(elements, mean_anomaly_deg=elements.mean_anomaly_deg + ahead_deg))
    fits = scene.fits
    _, r, v = wrong.at(scene.index[fits.group], fits.epoch_ns)
    predicted = np.hstack([r, v])
    information, vector = observation_information(fits, predicted)
    is_hidden = np.arange(len(fits.group)) % WINDOWS < hidden
    across = np.zeros((len(r), 6))
    across[:, :3] = rtn_basis(r, v)[:, 2]
    only = across[is_hidden, :, None] * across[is_hidden, None, :]
    seen = np.einsum("wi,wi->w", across[is_hidden], (scene.truth - predicted)[is_hidden])
    information[is_hidden] = only / 0.05**2
    vector[is_hidden] = across[is_hidden] * seen[:, None] / 0.05**2
    prior = fits.prior_covariance + MANOEUVRE_COVARIANCE
    covariance = np.linalg.inv(information + np.linalg.inv(prior))
    state = predicted + np.einsum("wij,wj->wi", covariance, vector)
    changed = {"state": state, "covariance": covariance, "predicted": predicted, "prior_covariance": prior}
    return dataclasses.replace(fits, **changed), wrong


@pytest.mark.parametrize("hidden", [0, 3])
def test_a_wrong_element_set_does_not_disturb_the_track_and_gives_no_change_of_speed(hidden: int) -> None:
    """Neither where the first window shows it, nor where windows show it that follow others."""
    scene = passes()
    track = filter_tracks(*with_wrong_sets(scene, hidden), scene.index)
    assert np.isnan(track.manoeuvre_km_s).all()
    off = track.state - scene.truth[WINDOWS - 1 :: WINDOWS]
    squares = np.einsum("gi,gi->g", off, np.linalg.solve(track.covariance, off[:, :, None])[:, :, 0])
    assert 0.7 < squares.mean() / 6 < chi2.ppf(0.975, 6 * OBJECTS) / (6 * OBJECTS)


@pytest.mark.parametrize(("hidden", "ahead_deg"), [(0, 0.06), (3, 0.03)])
def test_an_object_that_is_far_off_its_element_set_is_suspected_since_the_set(hidden: int, ahead_deg: float) -> None:
    scene = passes()
    fits, wrong = with_wrong_sets(scene, hidden, ahead_deg)
    track = filter_tracks(fits, wrong, scene.index)
    suspected = track.manoeuvre_ns > 0
    assert suspected.sum() >= 3
    assert (track.manoeuvre_ns == wrong.elements.epoch_time_ns[scene.index])[suspected].all()
    assert not track.kept.orbits.epoch_ns[suspected].any(), "the next run sees the first window again"


def test_a_stray_window_makes_no_other_manoeuvre_of_an_object_off_its_element_set() -> None:
    scene = passes()
    fits, wrong = with_wrong_sets(scene, 3)
    suspected = filter_tracks(fits, wrong, scene.index).manoeuvre_ns > 0
    shifted = fits.state.copy()
    shifted[WINDOWS - 1 :: WINDOWS, :3] += 3.0
    track = filter_tracks(dataclasses.replace(fits, state=shifted), wrong, scene.index)
    assert (track.manoeuvre_ns == wrong.elements.epoch_time_ns[scene.index])[suspected].all()
    assert (track.unexplained[suspected] > 0).all()


def test_an_object_of_which_little_was_seen_before_its_manoeuvre_is_suspected() -> None:
    """Where one path from a wide prior explains the windows as well, at an unknown time."""
    scene = passes(60.0)
    fits, sets = with_wrong_sets(scene, 4, ahead_deg=0.0)
    assert (filter_tracks(fits, sets, scene.index).manoeuvre_ns > 0).mean() > 0.8


def test_a_manoeuvre_is_found_with_a_wrong_element_set_as_well() -> None:
    scene = passes(20.0)
    fits, wrong = with_wrong_sets(scene, 0)
    assert (filter_tracks(fits, wrong, scene.index).manoeuvre_ns > 0).mean() > 0.9


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
