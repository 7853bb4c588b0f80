"""Tracks whose published sets are held back."""

from functools import cache

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.determination.track_elements import SPAN_S, elements_of_states
from sda_platform.orbits.dynamics.forces import Forces
from sda_platform.orbits.dynamics.numerical import integrate
from sda_platform.orbits.earth_orientation import gcrf_of_teme, teme_of_gcrf
from sda_platform.orbits.element_errors import tracking_prior_rtn
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.filtered_states import FilteredStates
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform.orbits.tracking.window_information import WindowFits
from sda_platform_tests.support.scenes import SECOND_NS, START_NS, catalogue

NOISE = np.array([0.05] * 3 + [5e-4] * 3)
# Three passes after the 36 hours to which the published set is fitted, then the day that elements are for.
BEFORE_NS = START_NS + np.arange(0, 36 * 3600 + 1, 900, dtype=np.int64) * SECOND_NS
MINUTES = np.concatenate([(n + 1) * 97 + np.arange(6) / 2 for n in range(3)])
TIME_NS = BEFORE_NS[-1] + (MINUTES * 60 * SECOND_NS).astype(np.int64)
LATER_NS = TIME_NS[-1] + np.arange(0, SPAN_S + 1, 600, dtype=np.int64) * SECOND_NS


def of_catalogue() -> Propagator:
    """NOAA 20, as published."""
    return catalogue().take(np.flatnonzero(catalogue().elements.norad_id == 43013))


def states(elements: Propagator, time_ns: IntArray) -> FloatArray:
    return np.hstack(elements.at(np.zeros(len(time_ns), np.int64), time_ns)[1:])


@cache
def truth(drag_area_m2_kg: float = 0.01) -> tuple[FloatArray, FloatArray, FloatArray]:
    """True states of an orbit like NOAA 20's before, in the windows and later."""
    start = states(of_catalogue(), np.array([START_NS]))[0]
    forces = Forces(drag_area_m2_kg=drag_area_m2_kg, reflective_area_m2_kg=0.02)
    time_ns = np.concatenate([BEFORE_NS, TIME_NS, LATER_NS])
    (gcrf,) = gcrf_of_teme(start[None], np.array([START_NS]))
    found = teme_of_gcrf(integrate(gcrf, START_NS, time_ns, forces), time_ns)
    before, seen, later = np.split(found, [len(BEFORE_NS), len(BEFORE_NS) + len(TIME_NS)])
    return before, seen, later


@cache
def published() -> Propagator:
    """A set fitted to the 36 hours before, its epoch at their end."""
    elements, _ = elements_of_states(truth()[0][::-1], BEFORE_NS[::-1], of_catalogue().elements)
    return Propagator(elements)


def windows(prior: Propagator) -> WindowFits:
    """Fits of three passes by observations of the truth with NOISE."""
    row, predicted = np.zeros(len(TIME_NS), np.int64), states(prior, TIME_NS)
    r, v = predicted[:, :3], predicted[:, 3:]
    unit = rtn_to_teme(tracking_prior_rtn(prior, row, TIME_NS, r, v), r, v)
    seen = truth()[1] + np.random.default_rng(4).normal(size=truth()[1].shape) * NOISE
    covariance = np.linalg.inv(np.linalg.inv(unit) + np.diag(NOISE**-2))
    weighted = np.einsum("wij,wj->wi", np.linalg.inv(unit), predicted) + seen @ np.diag(NOISE**-2)
    return WindowFits(row, TIME_NS, np.einsum("wij,wj->wi", covariance, weighted), covariance, predicted, unit)


def track(prior: Propagator) -> FilteredStates:
    return filter_tracks(windows(prior), prior, [0])
