"""A window of directions from several observers shows a manoeuvre alone, if both halves of them contradict the track.

An error of one observer is in one half only, so it shows none.
"""

import dataclasses

import numpy as np
import pytest

from sda_platform.arrays import FloatArray
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS
from sda_platform.orbits.dynamics.orbit_uncertainty import first_coefficients
from sda_platform.orbits.earth_orientation import gcrf_of_teme, teme_of_gcrf
from sda_platform.orbits.element_errors import tracking_prior_rtn
from sda_platform.orbits.tracking.filtered_states import FilteredStates
from sda_platform.orbits.tracking.observer_halves import leading_observers
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform.orbits.tracking.window_information import WindowFits, WindowHalves
from sda_platform_tests.support.scenes import SECOND_NS, START_NS, catalogue, prior_draw

OBJECTS, WINDOWS = 200, 6
SIGMA_KM = 0.025
WHOLE = np.diag(np.repeat([0.02, 2e-5], 3) ** -2.0)
BOTH, FIRST, SECOND = (True, True), (True, False), (False, True)


@dataclasses.dataclass(frozen=True)
class Scene:
    """Tracks of well observed windows, and a last window in which two observers measure a direction each."""

    fits: WindowFits
    halves: WindowHalves
    index: np.ndarray
    seen_off_km: FloatArray
    """(g, 2) how far each observer sees the object from its track."""

    def filtered(self, *, halved: bool = True) -> FilteredStates:
        return filter_tracks(self.fits, catalogue(), self.index, halves=self.halves if halved else None)


def scene(*, off_km: float = 0.0, who: tuple[bool, bool] = BOTH, together: bool = True, ranges: bool = False) -> Scene:
    """In the last window the observers ``who`` see objects displaced in a random direction; ``together``: the same.

    ``ranges``: both measure the whole state instead.
    """
    rng = np.random.default_rng(4)
    low = np.flatnonzero(catalogue().elements.mean_motion_rev_per_day > 12.0)
    index = rng.choice(low, OBJECTS, replace=False)
    start, middle = (np.full(OBJECTS, START_NS), START_NS + np.arange(1, WINDOWS + 1) * 30 * SECOND_NS)
    _, r, v = catalogue().at(index, start)
    begin = gcrf_of_teme(np.hstack([r, v]) + prior_draw(index, start, rng), start)
    areas = first_coefficients(catalogue().elements.bstar_per_earth_radius[index])[0]
    epoch_ns, row = np.tile(middle, OBJECTS), np.repeat(np.arange(OBJECTS), WINDOWS)
    states = CONSTANT_DYNAMICS.states(begin, areas, start, np.tile(middle, (OBJECTS, 1))).reshape(-1, 6)
    truth = teme_of_gcrf(states, epoch_ns)
    _, r, v = catalogue().at(index[row], epoch_ns)
    prior = rtn_to_teme(tracking_prior_rtn(catalogue(), index[row], epoch_ns, r, v), r, v)
    whole = WindowFits(row, epoch_ns, truth, prior, np.hstack([r, v]), prior)
    last = np.arange(WINDOWS - 1, OBJECTS * WINDOWS, WINDOWS)

    seen, information = np.empty((2, OBJECTS, 6)), np.zeros((2, OBJECTS, 6, 6))
    across, where = [], directions(rng)
    for half in range(2):
        line = directions(rng)
        across.append(np.eye(3) - line[:, :, None] * line[:, None, :])
        information[half, :, :3, :3] = across[half] / SIGMA_KM**2
        where = where if together else directions(rng)
        information[half] = WHOLE if ranges else information[half]
        seen[half] = truth[last] + np.hstack([SIGMA_KM * rng.normal(size=(OBJECTS, 3)), np.zeros((OBJECTS, 3))])
        seen[half, :, :3] += off_km * who[half] * where
    off = np.stack([np.linalg.norm(np.einsum("gij,gj->gi", a, off_km * where), axis=1) for a in across], axis=1)

    every = np.repeat(WHOLE[None], len(row), axis=0)
    every[last] = information.sum(axis=0)
    noisy = truth + rng.normal(size=truth.shape) * np.repeat([0.02, 2e-5], 3)
    right = np.einsum("wij,wj->wi", every, noisy)
    right[last] = np.einsum("hgij,hgj->gi", information, seen)
    fits = fitted(whole, every, right)
    halves = [
        fitted(whole.take(last), one, np.einsum("gij,gj->gi", one, at))
        for one, at in zip(information, seen, strict=True)
    ]
    return Scene(
        fits,
        WindowHalves(
            last, np.stack([h.state for h in halves], axis=1), np.stack([h.covariance for h in halves], axis=1)
        ),
        index,
        off * np.array(who),
    )


def directions(rng: np.random.Generator) -> FloatArray:
    drawn = rng.normal(size=(OBJECTS, 3))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def fitted(fits: WindowFits, information: FloatArray, right: FloatArray) -> WindowFits:
    """The windows' priors with observations of this information (w, 6, 6) and vector (w, 6)."""
    weight = np.linalg.inv(fits.prior_covariance)
    covariance = np.linalg.inv(weight + information)
    both = np.einsum("wij,wj->wi", weight, fits.predicted) + right
    state = np.einsum("wij,wj->wi", covariance, both)
    return dataclasses.replace(fits, state=state, covariance=np.asarray(covariance, np.float64))


def test_a_window_that_two_observers_made_shows_a_manoeuvre_alone() -> None:
    seen = scene(off_km=1.0)
    clear = (seen.seen_off_km > 0.4).all(axis=1)
    assert clear.sum() > 100
    found = seen.filtered()
    assert (found.manoeuvre_ns[clear] == seen.fits.epoch_ns[-1]).all(), "at the middle of that window"
    assert not found.unexplained[clear].any()
    without = seen.filtered(halved=False)
    assert not without.manoeuvre_ns.any() and (without.unexplained[clear] == 1).all(), (
        "else a second window must confirm"
    )


@pytest.mark.parametrize("who", [FIRST, SECOND])
@pytest.mark.parametrize("off_km", [0.3, 1.0, 3.0])
def test_an_observer_that_errs_alone_shows_no_manoeuvre(who: tuple[bool, bool], off_km: float) -> None:
    seen = scene(off_km=off_km, who=who)
    found = seen.filtered()
    assert not found.manoeuvre_ns.any()
    assert (found.unexplained == 1).sum() > 100


def test_two_observers_that_err_differently_show_no_manoeuvre() -> None:
    found = scene(off_km=1.0, together=False).filtered()
    assert (found.manoeuvre_ns > 0).mean() < 0.15, "only where their lines pass near each other"
    assert (found.unexplained == 1).mean() > 0.8


def test_windows_without_an_error_show_no_manoeuvre() -> None:
    found = scene().filtered()
    assert not found.manoeuvre_ns.any() and not found.unexplained.any()


def test_a_window_of_the_whole_state_needs_a_second_one() -> None:
    found = scene(off_km=1.0, ranges=True).filtered()
    assert not found.manoeuvre_ns.any() and (found.unexplained == 1).all()


def test_the_leading_observer_has_the_most_observations_or_the_first_name() -> None:
    group = np.array([1, 1, 1, 0, 0, 3])
    source_id = np.array(["a", "b", "b", "d", "c", "e"])
    is_leading, observers = leading_observers(group, source_id)
    assert is_leading.tolist() == [False, True, True, False, True, True]
    assert observers.tolist() == [2, 2, 2, 2, 2, 1]
