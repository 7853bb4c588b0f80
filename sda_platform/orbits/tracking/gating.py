"""Coarse gating: which catalogued objects could possibly be the one an observation saw.

Predictions are SGP4 at knots and cubic Hermite between; a k-d tree answers for observations that have a
position, a distance from the ray for those that only have a direction. The radius adds up everything that can
separate a true pair, so the coarse gate loses nothing; it decides nothing either (see
``association``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

import numpy as np
from scipy.spatial import cKDTree

from sda_platform.orbits.covariance import prior_covariance_rtn
from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.linearisation import OPTICAL, RADAR
from sda_platform.orbits.sensing.measurements import Measurements

_DAY_NS = 86_400_000_000_000
# Cubic Hermite errs by step^4 / 384 times the fourth derivative: metres in a low circular orbit, tens of
# metres at an eccentric perigee.
_KNOT_NS = 120_000_000_000
_INTERPOLATION_KM = 0.2
_BIN_NS = 6_000_000_000
_FASTEST_KM_S = 11.3
# An element set that could be further off than this finds nothing trustworthy, only coincidences.
_LARGEST_PRIOR_RADIUS_KM = 500.0
_HORIZON_SINE = -0.05


@dataclasses.dataclass(frozen=True, eq=False)
class _Predictions:
    """Objects that propagate across one knot interval: position in the catalogue and state at both knots."""

    index: IntArray
    start_ns: int
    r_teme_km: FloatArray
    v_teme_km_s: FloatArray
    prior_radius_km: FloatArray

    def at(self, time_ns: int) -> FloatArray:
        """Positions (n, 3) at a time within the interval."""
        span_s = _KNOT_NS / 1e9
        s = (time_ns - self.start_ns) / _KNOT_NS
        r, v = self.r_teme_km, self.v_teme_km_s
        return np.asarray(
            (1 + 2 * s) * (1 - s) ** 2 * r[:, 0]
            + s * (1 - s) ** 2 * span_s * v[:, 0]
            + s * s * (3 - 2 * s) * r[:, 1]
            + s * s * (s - 1) * span_s * v[:, 1]
        )


def coarse_candidates(
    measurements: Measurements, propagator: Propagator, gate_sigmas: float
) -> tuple[IntArray, IntArray]:
    """Pairs (p,), (p,) of measurement row and catalogue position a gate of ``gate_sigmas`` might accept."""
    rows: list[IntArray] = [np.zeros(0, dtype=np.int64)]
    candidates: list[IntArray] = [np.zeros(0, dtype=np.int64)]
    knot = measurements.time_ns // _KNOT_NS
    for interval in np.unique(knot).tolist():
        members = np.flatnonzero(knot == interval)
        predictions = _predict(propagator, interval * _KNOT_NS, gate_sigmas)
        bins = measurements.time_ns[members] // _BIN_NS
        for number in np.unique(bins).tolist():
            chosen = members[bins == number]
            middle_ns = number * _BIN_NS + _BIN_NS // 2
            for row, candidate in _near(measurements.take(chosen), predictions, middle_ns, gate_sigmas):
                rows.append(chosen[row])
                candidates.append(predictions.index[candidate])
    return np.concatenate(rows), np.concatenate(candidates)


# Whoever asks reading by reading, or slice by slice, asks about the same two minutes again.
@lru_cache(maxsize=2)
def _predict(propagator: Propagator, start_ns: int, gate_sigmas: float) -> _Predictions:
    error, r_teme_km, v_teme_km_s = propagator.grid([start_ns, start_ns + _KNOT_NS])
    index = np.flatnonzero((error == 0).all(axis=1))
    r_teme_km, v_teme_km_s = r_teme_km[index], v_teme_km_s[index]
    age_days = (start_ns - propagator.elements.epoch_time_ns[index]) / _DAY_NS
    prior = prior_covariance_rtn(r_teme_km[:, 0], v_teme_km_s[:, 0], age_days)
    # The prior follows the eccentric orbits' changing speed; a quarter more covers two minutes of it.
    radius_km = 1.25 * gate_sigmas * np.sqrt(np.einsum("nii->n", prior[:, :3, :3]))
    return _Predictions(
        index=index,
        start_ns=start_ns,
        r_teme_km=r_teme_km,
        v_teme_km_s=v_teme_km_s,
        prior_radius_km=np.minimum(np.nan_to_num(radius_km), _LARGEST_PRIOR_RADIUS_KM),
    )


@lru_cache(maxsize=8)
def _placed(predictions: _Predictions, time_ns: int) -> tuple[FloatArray, cKDTree]:
    """Where all objects are, (n, 3) km, and the tree of these places."""
    r_teme_km = predictions.at(time_ns)
    return r_teme_km, cKDTree(r_teme_km, compact_nodes=False, balanced_tree=False)


def _near(
    measurements: Measurements, predictions: _Predictions, middle_ns: int, gate_sigmas: float
) -> Iterator[tuple[IntArray, IntArray]]:
    r_teme_km, tree = _placed(predictions, middle_ns)
    elapsed_s = np.abs(measurements.time_ns - middle_ns) / 1e9
    moved_km = _FASTEST_KM_S * (elapsed_s + gate_sigmas * measurements.time_sigma_s) + _INTERPOLATION_KM
    sighting = measurements.kind == OPTICAL
    placed = np.flatnonzero(~sighting)
    if len(placed) and len(r_teme_km):
        yield _near_positions(measurements.take(placed), placed, tree, predictions, moved_km[placed], gate_sigmas)
    # All sightings of one site and bin share the objects above its horizon.
    _, site = np.unique(measurements.site_km[:, 0].round(0), return_inverse=True)
    for number in np.unique(site[sighting]).tolist():
        chosen = np.flatnonzero(sighting & (site == number))
        yield _near_rays(measurements.take(chosen), chosen, r_teme_km, predictions, moved_km[chosen], gate_sigmas)


def _near_positions(
    measurements: Measurements,
    rows: IntArray,
    tree: cKDTree,
    predictions: _Predictions,
    moved_km: FloatArray,
    gate_sigmas: float,
) -> tuple[IntArray, IntArray]:
    position_km = measurements.position_km()
    along = np.where(measurements.kind == RADAR, measurements.value[:, 0] ** 2, 0.0)
    first_three = measurements.variance[:, :3]
    spread = np.where(
        measurements.kind == RADAR,
        first_three[:, 0] + along * (first_three[:, 1] + first_three[:, 2]),
        first_three.sum(axis=1),
    )
    reach_km = moved_km + gate_sigmas * np.sqrt(spread)
    found = tree.query_ball_point(position_km, reach_km + predictions.prior_radius_km.max())
    counts = np.fromiter(map(len, found), np.int64, len(rows))
    row = np.repeat(np.arange(len(rows)), counts)
    candidate = np.fromiter(chain.from_iterable(found), np.int64, len(row))
    gap_km = np.linalg.norm(tree.data[candidate] - position_km[row], axis=1)
    close = gap_km <= reach_km[row] + predictions.prior_radius_km[candidate]
    return rows[row[close]], candidate[close]


def _near_rays(
    measurements: Measurements,
    rows: IntArray,
    r_teme_km: FloatArray,
    predictions: _Predictions,
    moved_km: FloatArray,
    gate_sigmas: float,
) -> tuple[IntArray, IntArray]:
    site_km = measurements.site_km[len(rows) // 2]
    # The site itself moves less than two kilometres within a bin.
    moved_km = moved_km + np.linalg.norm(measurements.site_km - site_km, axis=1)
    line_km = r_teme_km - site_km
    distance_km = np.linalg.norm(line_km, axis=1)
    sine = line_km @ (site_km / np.linalg.norm(site_km)) / distance_km
    # Within arm's length of the prediction error an object may rise before its prediction does.
    visible = np.flatnonzero((sine > _HORIZON_SINE) | (distance_km < 1000.0 + predictions.prior_radius_km))
    line_km, distance_km = line_km[visible], distance_km[visible]
    ahead_km = line_km @ measurements.direction.T
    off_km = np.sqrt(np.maximum(distance_km[:, None] ** 2 - ahead_km**2, 0.0))
    angle = gate_sigmas * np.sqrt(measurements.variance[:, :2].sum(axis=1))
    reach_km = moved_km + predictions.prior_radius_km[visible, None] + angle * distance_km[:, None]
    candidate, row = np.nonzero((off_km <= reach_km) & (ahead_km > -reach_km))
    return rows[row], visible[candidate]
