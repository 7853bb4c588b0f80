"""Links tracklets of unknown objects over passes: which orbit of one pass continues in another.

Orbits are compared in equinoctial elements. There an uncertainty stays an ellipsoid for many revolutions, whereas in
position it bends into an arc. Assignment is global: every tracklet gets at most one successor and one predecessor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from sda_platform.arrays import BoolArray, FloatArray, IntArray
from sda_platform.orbits.chi_square import square_holding
from sda_platform.orbits.determination.differential_correction import UncertainElements
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.equinoctial import equinoctial, equinoctial_covariance
from sda_platform.orbits.propagation import Propagator
from sda_platform.units import DAY_S

GATE = float(square_holding(0.999, 6))
"""Gate of the squared distance between two orbits of one object: chance exceeds it once in 1,000."""
# A longitude as uncertain as this links with everything.
_VAGUEST_LONGITUDE_RAD = 0.5
# Unestimated drag and what two-body covariance leaves out, per day: relative drift of the mean motion and of the
# other elements.
_MOTION_DRIFT_PER_DAY = 3e-5
_ELEMENT_DRIFT_PER_DAY = 1e-4
# Earlier orbits that are propagated together: with 2,000 later ones they take 50 MB.
_AT_ONCE = 512


def link(tracklets: Sequence[UncertainElements], are_distinct: BoolArray | None = None) -> list[list[int]]:
    """Chains of positions in ``tracklets``, each chain one object's in order of time; singles are chains of one.

    ``are_distinct``: (n, n) pairs known to be two objects. Before accepting a link, fit the union of the observations
    (``numerical_fit.fit_orbit``) and test whether that fit is plausible.
    """
    successor: dict[int, int] = {}
    if len(tracklets) > 1:
        cost = _costs(tracklets, np.zeros((len(tracklets),) * 2, dtype=bool) if are_distinct is None else are_distinct)
        worst = np.where(np.isfinite(cost), cost, 1e6)
        for row, column in zip(*linear_sum_assignment(worst), strict=True):
            if np.isfinite(cost[row, column]):
                successor[int(row)] = int(column)
    heads = sorted(set(range(len(tracklets))) - set(successor.values()))
    chains = []
    for head in heads:
        chain = [head]
        while chain[-1] in successor:
            chain.append(successor[chain[-1]])
        chains.append(chain)
    return chains


def recognise(
    known: Sequence[UncertainOrbits], found: Sequence[UncertainOrbits], are_settled: BoolArray, dynamics: Dynamics
) -> dict[int, int]:
    """Return the ``known`` orbit that each orbit ``found`` later continues, where both have exactly one candidate.

    All are of one row. Returns positions in ``known`` by positions in ``found``. Ambiguous cases are left out: in a
    debris cloud an object may well be nearest to a neighbour's prediction. ``are_settled``: (k, n) pairs of which it is
    known already whether one continues the other; they are no candidates.
    """
    if not known or not found:
        return {}
    later = UncertainOrbits.stack(found)
    distances = np.full(are_settled.shape, np.inf)
    for first in range(0, len(known), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        unsettled = np.flatnonzero(~are_settled[part].all(axis=0))
        if len(unsettled):
            earlier = UncertainOrbits.stack(known[part])
            distances[part, unsettled] = _distances_from(earlier, later.take(unsettled), dynamics)
    possible = np.isfinite(distances) & ~are_settled
    sole = possible & (possible.sum(axis=0) == 1) & (possible.sum(axis=1, keepdims=True) == 1)
    return {int(later): int(earlier) for earlier, later in np.argwhere(sole)}


def _distances_from(known: UncertainOrbits, found: UncertainOrbits, dynamics: Dynamics) -> FloatArray:
    """Return squared Mahalanobis distance (k, n) of each orbit ``found`` from each known one, infinite outside GATE."""
    order = np.argsort(found.epoch_ns, kind="stable")
    time_ns = np.maximum(found.epoch_ns[order], known.epoch_ns[:, None])
    states = np.empty((len(known.epoch_ns), len(order), 6))
    states[:, order] = dynamics.states(known.state, known.coefficients, known.epoch_ns, time_ns)
    there, of_found = equinoctial_covariance(found.state, found.covariance[:, :6, :6])
    here, of_known = equinoctial_covariance(known.state, known.covariance[:, :6, :6])
    distances = np.full(states.shape[:2], np.inf)
    for later, epoch_ns in enumerate(found.epoch_ns.tolist()):
        earlier = np.flatnonzero((known.epoch_ns < epoch_ns) & np.isfinite(states[:, later]).all(axis=1))
        elapsed_s = (epoch_ns - known.epoch_ns[earlier]) / 1e9
        spread = _propagated_covariances(of_known[earlier], elapsed_s, here[earlier, 0]) + of_found[later]
        gap = there[later] - equinoctial(states[earlier, later, :3], states[earlier, later, 3:])
        distances[earlier, later] = _distances(gap, spread)
    return distances


def _costs(tracklets: Sequence[UncertainElements], are_distinct: BoolArray) -> FloatArray:
    """Return squared Mahalanobis distance (n, n) of each tracklet to each later one it may lead to, infinite
    elsewhere.
    """
    count = len(tracklets)
    epochs = np.array([int(t.elements.epoch_time_ns[0]) for t in tracklets])
    propagator = Propagator(ElementSets.stack([t.elements for t in tracklets]))
    there = equinoctial(*propagator.at(np.arange(count), epochs)[1:])
    covariance = np.array([t.covariance for t in tracklets])
    costs = np.full((count, count), np.inf)
    for later in range(count):
        alike = _like_motion(propagator.elements, covariance, epochs, later)
        earlier = np.flatnonzero((epochs < epochs[later]) & alike & ~are_distinct[later])
        if not len(earlier):
            continue
        error, r, v = propagator.at(earlier, epochs[later])
        elapsed_s = (epochs[later] - epochs[earlier]) / 1e9
        spread = _propagated_covariances(covariance[earlier], elapsed_s, there[earlier, 0]) + covariance[later]
        costs[earlier, later] = np.where(error == 0, _distances(there[later] - equinoctial(r, v), spread), np.inf)
    return costs


def _distances(gap: FloatArray, spread: FloatArray) -> FloatArray:
    """Return squared Mahalanobis distances (n,) of differences (n, 6) with covariances (n, 6, 6), infinite outside
    GATE.
    """
    gap[:, 5] = (gap[:, 5] + np.pi) % (2 * np.pi) - np.pi
    possible = np.isfinite(gap).all(axis=1) & (spread[:, 5, 5] < _VAGUEST_LONGITUDE_RAD**2)
    # A distance in six components is no less than that in one of them.
    chosen = np.flatnonzero(possible & (gap[:, 0] ** 2 <= GATE * spread[:, 0, 0]))
    scale = np.sqrt(np.einsum("nii->ni", spread[chosen]))
    shape = spread[chosen] / (scale[:, :, None] * scale[:, None, :])
    normalised_gap = gap[chosen] / scale
    distance = np.einsum("ni,ni->n", normalised_gap, np.linalg.solve(shape, normalised_gap[:, :, None])[:, :, 0])
    found = np.full(len(gap), np.inf)
    near = (distance <= GATE) & (distance >= 0)
    found[chosen[near]] = distance[near]
    return found


def _like_motion(elements: ElementSets, covariance: FloatArray, epochs: IntArray, later: int) -> BoolArray:
    """Return which tracklets (n,) may have the mean motion of ``later``: a cheap test before propagation.

    A distance in six components is no less than that in one of them. The bound is twice the gate, because it applies
    to mean elements.
    """
    motion = elements.mean_motion_rev_per_day
    to_rev_per_day = DAY_S / (2 * np.pi)
    drift = _MOTION_DRIFT_PER_DAY * motion * (epochs[later] - epochs) / 1e9 / DAY_S
    spread = (covariance[:, 0, 0] + covariance[later, 0, 0]) * to_rev_per_day**2 + drift**2
    return np.asarray((motion - motion[later]) ** 2 <= 2 * GATE * spread)


def _propagated_covariances(covariance: FloatArray, elapsed_s: FloatArray, motion_rad_s: FloatArray) -> FloatArray:
    """Return covariances (n, 6, 6) after ``elapsed_s`` (n,): longitude drifts by the error of the mean motion."""
    days = elapsed_s / DAY_S
    drift = np.zeros_like(covariance)
    drift[:, np.arange(6), np.arange(6)] = (_ELEMENT_DRIFT_PER_DAY * days[:, None]) ** 2
    motion_sigma = _MOTION_DRIFT_PER_DAY * days * motion_rad_s
    drift[:, 0, 0] = motion_sigma**2
    drift[:, 5, 5] += (motion_sigma * elapsed_s / 2) ** 2
    transition = np.tile(np.eye(6), (len(covariance), 1, 1))
    transition[:, 5, 0] = elapsed_s
    return transition @ covariance @ transition.swapaxes(-1, -2) + drift
