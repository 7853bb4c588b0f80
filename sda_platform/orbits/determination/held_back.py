"""Whether refined elements predict better: the later windows of a track judge elements from the earlier ones.

Covariances count what models leave out by experience. Observations that the elements have not seen count it in fact.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sda_platform.orbits.determination.track_elements import following_elements
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS, Dynamics
from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.propagation import Propagator
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
    """Of elements from the windows before."""
    published_rms: float
    """Of the published set."""

    @property
    def is_better(self) -> bool:
        """Whether the refined elements predicted clearly better; one pass alone may prefer the worse set by chance."""
        return self.refined_rms < _CLEARLY * self.published_rms


def predict_held_back(fits: WindowFits, published: Propagator, dynamics: Dynamics = CONSTANT_DYNAMICS) -> HeldBack:
    """Determine elements from the earlier two thirds of an object's windows, and predict the others.

    Args:
        fits: windows of one object, ascending in time, three at least.
        published: one row, the set to be refined with its object's error scale.
        dynamics: the numerical model.

    Raises:
        NoFit: as `track_elements.elements_of_track`.
    """
    count = len(fits.epoch_ns)
    split = count - max(1, round(_SHARE * count))
    earlier = filter_tracks(fits.take(np.arange(split)), published, [0], dynamics)
    later = fits.take(np.arange(split, count))
    elements, _ = following_elements(earlier, published, dynamics)
    return HeldBack(
        windows=count - split,
        refined_rms=prediction_rms(later, Propagator(elements)),
        published_rms=prediction_rms(later, published),
    )


def prediction_rms(fits: WindowFits, elements: Propagator) -> float:
    """Root mean square of what windows' observations deviate from a set's prediction, in units of their noise.

    Infinite where SGP4 refuses the set.
    """
    error, r, v = elements.at(np.zeros(len(fits.epoch_ns), np.int64), fits.epoch_ns)
    if error.any():
        return float("inf")
    information, vector = observation_information(fits, np.hstack([r, v]))
    squares, directions = _squares(information, vector, fits.prior_covariance)
    return float(np.sqrt(squares / max(directions, 1)))


def _squares(information: FloatArray, vector: FloatArray, unit: FloatArray) -> tuple[float, int]:
    """Sum of squares along the directions that the windows observe, and the number of these."""
    factor = np.linalg.cholesky(unit)
    sizes, axes = np.linalg.eigh(factor.swapaxes(1, 2) @ information @ factor)
    along = np.einsum("wji,wj->wi", axes, np.einsum("wji,wj->wi", factor, vector))
    is_observed = sizes > _LEAST_INFORMATION
    return float(np.sum(along[is_observed] ** 2 / sizes[is_observed])), int(is_observed.sum())
