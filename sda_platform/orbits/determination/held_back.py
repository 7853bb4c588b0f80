"""Whether a refined orbit predicts better: the later windows of a track judge what was made of the earlier ones.

Covariances count what models leave out by experience. Observations that an orbit has not seen count it in fact.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sda_platform.arrays import FloatArray
from sda_platform.orbits.determination.track_elements import following_elements
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS, Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import orbits_of_teme
from sda_platform.orbits.earth_orientation import teme_of_gcrf
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.filtered_states import FilteredStates
from sda_platform.orbits.tracking.track_filter import filter_tracks
from sda_platform.orbits.tracking.window_information import WindowFits, observation_information

# A direction in which a window reduces the prior's variance by less than a thousandth is not observed.
_LEAST_INFORMATION = 1e-3
_SHARE = 1 / 3
_CLEARLY = 0.5


@dataclasses.dataclass(frozen=True)
class HeldBack:
    """Prediction errors at the held-back windows, in units of their noise (rms; 1 is expected of a perfect orbit)."""

    windows: int
    refined_rms: float
    """Of the product of the windows before."""
    published_rms: float
    """Of the published set."""

    @property
    def is_better(self) -> bool:
        """Whether the product predicted clearly better; one pass alone may prefer the worse orbit by chance."""
        return self.refined_rms < _CLEARLY * self.published_rms


def elements_held_back(fits: WindowFits, published: Propagator, dynamics: Dynamics = CONSTANT_DYNAMICS) -> HeldBack:
    """Determine elements from the first two thirds of an object's windows, and predict the last third.

    Args:
        fits: windows of one object, ascending in time, three at least.
        published: one row, the set to be refined with its object's error scale.
        dynamics: the numerical model.

    Raises:
        NoFit: as `track_elements.elements_of_track`.
    """
    earlier, later = _split(fits, published, dynamics)
    elements, _ = following_elements(earlier, published, dynamics)
    return _judged(later, set_states(Propagator(elements), later), published)


def prediction_held_back(fits: WindowFits, published: Propagator, dynamics: Dynamics = CONSTANT_DYNAMICS) -> HeldBack:
    """Filter the first two thirds of an object's windows, and predict the last third numerically."""
    earlier, later = _split(fits, published, dynamics)
    orbit = orbits_of_teme(earlier.epoch_ns, earlier.state, earlier.coefficients, earlier.joint_covariance)
    ahead = dynamics.states(orbit.state, orbit.coefficients, orbit.epoch_ns, later.epoch_ns[None])[0]
    return _judged(later, teme_of_gcrf(ahead, later.epoch_ns), published)


def _split(fits: WindowFits, published: Propagator, dynamics: Dynamics) -> tuple[FilteredStates, WindowFits]:
    """Return the track of the earlier windows, and the held-back ones."""
    count = len(fits.epoch_ns)
    split = count - max(1, round(_SHARE * count))
    earlier = filter_tracks(fits.take(np.arange(split)), published, [0], dynamics)
    return earlier, fits.take(np.arange(split, count))


def _judged(later: WindowFits, predicted: FloatArray, published: Propagator) -> HeldBack:
    return HeldBack(
        windows=len(later.epoch_ns),
        refined_rms=prediction_rms(later, predicted),
        published_rms=prediction_rms(later, set_states(published, later)),
    )


def set_states(elements: Propagator, fits: WindowFits) -> FloatArray:
    """States (w, 6) of one set at the windows, TEME, km and km/s; NaN where SGP4 refuses it."""
    error, r, v = elements.at(np.zeros(len(fits.epoch_ns), np.int64), fits.epoch_ns)
    return np.where(np.asarray(error)[:, None] == 0, np.hstack([r, v]), np.nan)


def prediction_rms(fits: WindowFits, predicted: FloatArray) -> float:
    """Root mean square of what windows' observations deviate from ``predicted`` states (w, 6), in units of their noise.

    Infinite where a state is missing.
    """
    if not np.isfinite(predicted).all():
        return float("inf")
    information, vector = observation_information(fits, predicted)
    squares, directions = _squares(information, vector, fits.prior_covariance)
    return float(np.sqrt(squares / max(directions, 1)))


def _squares(information: FloatArray, vector: FloatArray, unit: FloatArray) -> tuple[float, int]:
    """Sum of squares along the directions that the windows observe, and the number of these."""
    factor = np.linalg.cholesky(unit)
    sizes, axes = np.linalg.eigh(factor.swapaxes(1, 2) @ information @ factor)
    along = np.einsum("wji,wj->wi", axes, np.einsum("wji,wj->wi", factor, vector))
    is_observed = sizes > _LEAST_INFORMATION
    return float(np.sum(along[is_observed] ** 2 / sizes[is_observed])), int(is_observed.sum())
