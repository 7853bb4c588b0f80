"""Whether refined elements predict better: the later windows of a track judge a fit to the earlier ones.

The covariance of a fit through SGP4 counts the noise of observations, not what SGP4 leaves out. Observations that the
fit has not seen count both.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sda_platform.orbits.determination.element_fit import fit_elements
from sda_platform.orbits.elements import FloatArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.track_filter import WindowFits, observation_information

# A direction in which a window reduces the prior's variance by less than a thousandth is not observed.
_LEAST_INFORMATION = 1e-3
_SHARE = 1 / 3
_CLEARLY = 0.5


@dataclasses.dataclass(frozen=True)
class HeldBack:
    """Prediction errors at the held-back windows, in units of their noise (rms; 1 is expected of a perfect orbit)."""

    windows: int
    refined_rms: float
    """Of elements fitted to the windows before."""
    published_rms: float
    """Of the published set."""

    @property
    def is_better(self) -> bool:
        """Whether the refined elements predicted clearly better; one pass alone may prefer the worse set by chance."""
        return self.refined_rms < _CLEARLY * self.published_rms

    def sigma_factor(self, windows: int) -> float:
        """Ratio of the errors of a fit to as many windows to the errors that its covariance states.

        What exceeds the noise is common to all windows, so their number does not reduce it.
        """
        return float(np.sqrt(1 + windows * max(0.0, self.refined_rms**2 - 1)))


def predict_held_back(fits: WindowFits, published: Propagator) -> HeldBack:
    """Fit the earlier two thirds of an object's windows, and predict the others.

    Args:
        fits: windows of one object, ascending in time, three at least.
        published: one row, the set to be refined with its object's error scale.

    Raises:
        NoFit: as `fit_elements`.
    """
    count = len(fits.epoch_ns)
    split = count - max(1, round(_SHARE * count))
    earlier = fit_elements(fits.take(np.arange(split)), published)
    later = fits.take(np.arange(split, count))
    return HeldBack(
        windows=count - split,
        refined_rms=prediction_rms(later, Propagator(earlier.elements)),
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
