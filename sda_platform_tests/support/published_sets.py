"""Element sets as others publish them: SGP4 elements fitted through SGP4 to window fits, with a set as prior.

The unknowns are six equinoctial mean elements and B*. Each window contributes the information of its observations
alone. The prior keeps drag and period as published where the arc is too short to determine them.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sda_platform.arrays import FloatArray
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.mean_elements import from_equinoctial, mean_elements, states_and_partials, to_equinoctial
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.window_information import WindowFits, observation_information

_ROUNDS = 12
# In sigmas: a smaller step changes nothing that matters.
_CONVERGED = 1e-3
# Steps of the numerical partials: metres of motion, well above SGP4's rounding; the last is B*, 1/earth radius.
_DIFFERENCE = np.array([1e-10, 1e-7, 1e-7, 1e-7, 1e-7, 1e-7, 1e-5])
# One sigma of a published B*: half of it, plus a little for sets with none.
_DRAG_SHARE, _DRAG_LEAST = 0.5, 1e-5


class NoFit(ValueError):
    """The windows determine no element set; the message gives the reason."""


def fit_elements(fits: WindowFits, published: Propagator) -> ElementSets:
    """Fit an element set to one object's windows, by Gauss-Newton with the published set as prior.

    Args:
        fits: windows of one object, ascending in time.
        published: one row, the set to be refined with its object's error scale; its number and drag term carry over.

    Raises:
        NoFit: SGP4 rejects the published set, or an iterate, at a window.

    Source: Vallado (4th ed.), section 10.4; Levit & Marshall 2011, Improved orbit predictions using two-line
    elements.
    """
    epoch_ns = int(fits.epoch_ns[-1]) // 1000 * 1000  # an OMM's epoch has microseconds
    error, r, v = published.at([0], [epoch_ns])
    if error[0]:
        raise NoFit(f"SGP4 refuses the published set at the newest window: error {error[0]}")
    drag = float(published.elements.bstar_per_earth_radius[0])
    osculating = mean_elements(r, v, epoch_ns, drag)
    errors = element_covariance_rtn(published, np.zeros(1, np.int64), np.array([epoch_ns]), r, v)
    prior_state = rtn_to_teme(errors, r, v)[0]
    arc = _Arc(fits, epoch_ns, int(published.elements.norad_id[0]))
    start = np.append(to_equinoctial(osculating)[0], drag)
    _, by_elements = arc.states(start, np.array([epoch_ns]))
    prior = by_elements[0].T @ np.linalg.inv(prior_state) @ by_elements[0]
    # The state at the epoch is independent of drag, whatever rounding of its partials suggests.
    prior[6, :] = prior[:, 6] = 0.0
    prior[6, 6] = 1 / (_DRAG_SHARE * abs(drag) + _DRAG_LEAST) ** 2
    unknowns, converged = arc.converge(start, prior)
    if not converged:
        raise NoFit("the fit does not converge")
    return arc.element_sets(unknowns[None])


@dataclasses.dataclass(frozen=True, eq=False)
class _Arc:
    """The windows of one object, with residuals and partials by its elements."""

    fits: WindowFits
    epoch_ns: int
    norad_id: int

    def converge(self, start: FloatArray, prior: FloatArray) -> tuple[FloatArray, bool]:
        """Unknowns (7,), and whether the steps converged."""
        unknowns = start
        for _ in range(_ROUNDS):
            states, partials = self.states(unknowns, self.fits.epoch_ns)
            information, vector = observation_information(self.fits, states)
            normal = np.einsum("wia,wij,wjb->ab", partials, information, partials) + prior
            gradient = np.einsum("wia,wi->a", partials, vector) - prior @ (unknowns - start)
            scale = 1 / np.sqrt(np.diag(normal))
            step = scale * np.linalg.solve(normal * np.outer(scale, scale), gradient * scale)
            unknowns = unknowns + step
            if np.sqrt(step @ normal @ step) < _CONVERGED:
                return unknowns, True
        return unknowns, False

    def states(self, unknowns: FloatArray, time_ns: np.ndarray) -> tuple[FloatArray, FloatArray]:
        """States (w, 6) and their derivatives (w, 6, 7) by the unknowns."""
        states, partials = states_and_partials(unknowns, _DIFFERENCE, self.element_sets, time_ns)
        if not np.isfinite(states).all() or not np.isfinite(partials).all():
            raise NoFit("SGP4 refuses the elements at a window")
        return states, partials

    def element_sets(self, unknowns: FloatArray) -> ElementSets:
        """SGP4 elements (n,) of unknowns (n, 7)."""
        made = from_equinoctial(unknowns[:, :6], self.epoch_ns, unknowns[:, 6])
        return dataclasses.replace(made, norad_id=np.repeat(self.norad_id, len(unknowns)))
