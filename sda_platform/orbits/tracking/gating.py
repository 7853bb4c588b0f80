"""Coarse gating: the catalogued objects that an observation could possibly be of.

Predictions are SGP4 at knots and cubic Hermite polynomials between them. K-d trees serve observations with a
position; those with only a direction are gated by their distance from the ray. The gate radius is the sum of all
errors of a true pair, so that the coarse gate loses none; ``association`` makes the decision.

Observations in a crowd, for instance of a recent break-up, would be paired with all of it. For these the trees are
built at the exact time, and pairs outside the cross-track bounds are dropped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import chain, pairwise

import numpy as np
from scipy.spatial import cKDTree

from sda_platform.arrays import BoolArray, FloatArray, IntArray
from sda_platform.orbits.element_errors import tracking_prior_rtn
from sda_platform.orbits.frames import rtn_basis
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.light import LIGHT_KM_S
from sda_platform.orbits.sensing.measurement_model import OPTICAL, RADAR
from sda_platform.orbits.sensing.measurements import Measurements
from sda_platform.orbits.tracking.rays import rays_near

# Cubic Hermite errs by step^4 / 384 times the fourth derivative: metres in a low circular orbit, tens of
# metres at an eccentric perigee.
_KNOT_NS = 120_000_000_000
_INTERPOLATION_KM = 0.2
_BIN_NS = 6_000_000_000
_MOMENT_NS = 250_000_000
# More objects than this near an observation are a crowd; a sample of this many observations of a bin decides on
# it.
_CROWD = 30
_LOOKED_AT_FIRST = 50
_FASTEST_KM_S = 11.3
# An element set with a larger uncertainty yields only coincidences.
_LARGEST_PRIOR_RADIUS_KM = 500.0
# Uncertainty classes for the trees of a crowd: most objects are known to a few kilometres, a few to a hundred.
_CLASSES_KM = (8.0, 30.0)
_HORIZON_SINE = -0.05
# How far a path bends from a straight one in half a bin.
_BENDING_KM = 0.05
# The fastest object in units of the speed of light.
_LIGHT = _FASTEST_KM_S / LIGHT_KM_S


@dataclasses.dataclass(frozen=True, eq=False)
class _Predictions:
    """Objects (n,) that propagate across one knot interval, in ascending order of uncertainty."""

    index: IntArray
    """(n,) position in the catalogue."""
    start_ns: int
    r_teme_km: FloatArray
    v_teme_km_s: FloatArray
    """(n, 2, 3) each, at both knots."""
    prior_km: FloatArray
    """(n, 3) gate half-widths of the element-set error: radial, in-track, cross-track."""
    prior_radius_km: FloatArray
    """(n,) gate radius of the element-set error."""

    def at(self, time_ns: int) -> tuple[FloatArray, FloatArray]:
        """Return positions (n, 3) and velocities (n, 3) at a time within the interval."""
        span_s = _KNOT_NS / 1e9
        s = (time_ns - self.start_ns) / _KNOT_NS
        r, v = self.r_teme_km, self.v_teme_km_s
        place = (
            (1 + 2 * s) * (1 - s) ** 2 * r[:, 0]
            + s * (1 - s) ** 2 * span_s * v[:, 0]
            + s * s * (3 - 2 * s) * r[:, 1]
            + s * s * (s - 1) * span_s * v[:, 1]
        )
        moved = 6 * s * (1 - s) / span_s * (r[:, 1] - r[:, 0])
        return np.asarray(place), np.asarray(moved + (1 - s) * (1 - 3 * s) * v[:, 0] + s * (3 * s - 2) * v[:, 1])


@dataclasses.dataclass(frozen=True, eq=False)
class _Places:
    """Predicted positions of a set of objects at one instant."""

    of: _Predictions
    time_ns: int
    r_teme_km: FloatArray
    v_teme_km_s: FloatArray
    trees: list[tuple[int, float, cKDTree]]
    """Per uncertainty class: the first object, the largest radius, and the tree of positions."""

    @cached_property
    def rtn(self) -> FloatArray:
        """RTN axes (n, 3, 3) of each object; computed for crowds only."""
        return rtn_basis(self.r_teme_km, self.v_teme_km_s)


def coarse_candidates(
    measurements: Measurements, propagator: Propagator, gate_sigmas: float, further_km: float = 0.0
) -> tuple[IntArray, IntArray]:
    """Pairs (p,), (p,) of measurement row and catalogue position that a gate of ``gate_sigmas`` might accept.

    ``further_km``: one sigma, along each axis, of what adds to the error of element sets.
    """
    rows: list[IntArray] = [np.zeros(0, dtype=np.int64)]
    candidates: list[IntArray] = [np.zeros(0, dtype=np.int64)]
    knot = measurements.time_ns // _KNOT_NS
    for interval in np.unique(knot).tolist():
        members = np.flatnonzero(knot == interval)
        predictions = _predict(propagator, interval * _KNOT_NS, gate_sigmas, further_km)
        if not len(predictions.index):
            continue
        for row, candidate in _near(measurements.take(members), predictions, gate_sigmas):
            rows.append(members[row])
            candidates.append(predictions.index[candidate])
    return np.concatenate(rows), np.concatenate(candidates)


# Calls per observation or per slice repeat the same two-minute interval.
@lru_cache(maxsize=4)
def _predict(propagator: Propagator, start_ns: int, gate_sigmas: float, further_km: float) -> _Predictions:
    error, r_teme_km, v_teme_km_s = propagator.grid([start_ns, start_ns + _KNOT_NS])
    index = np.flatnonzero((error == 0).all(axis=1))
    r_teme_km, v_teme_km_s = r_teme_km[index], v_teme_km_s[index]
    first = r_teme_km[:, 0], v_teme_km_s[:, 0]
    prior = tracking_prior_rtn(propagator, index, np.int64(start_ns), *first)
    # The prior follows the eccentric orbits' changing speed; a quarter more covers two minutes of it.
    prior_km = np.nan_to_num(1.25 * gate_sigmas * np.sqrt(np.einsum("nii->ni", prior[:, :3, :3]) + further_km**2))
    radius_km = np.minimum(np.linalg.norm(prior_km, axis=1), _LARGEST_PRIOR_RADIUS_KM)
    order = np.argsort(radius_km, kind="stable")
    return _Predictions(
        index=index[order],
        start_ns=start_ns,
        r_teme_km=r_teme_km[order],
        v_teme_km_s=v_teme_km_s[order],
        prior_km=prior_km[order],
        prior_radius_km=radius_km[order],
    )


@lru_cache(maxsize=8)
def _places(predictions: _Predictions, time_ns: int, classes_km: tuple[float, ...]) -> _Places:
    r_teme_km, v_teme_km_s = predictions.at(time_ns)
    radius_km = predictions.prior_radius_km
    cuts = [0, *np.searchsorted(radius_km, classes_km).tolist(), len(radius_km)]
    trees = [
        (first, float(radius_km[end - 1]), cKDTree(r_teme_km[first:end], compact_nodes=False, balanced_tree=False))
        for first, end in pairwise(cuts)
        if first < end
    ]
    return _Places(predictions, time_ns, r_teme_km, v_teme_km_s, trees)


def _near(
    measurements: Measurements, predictions: _Predictions, gate_sigmas: float
) -> Iterator[tuple[IntArray, IntArray]]:
    sighting = (measurements.kind == OPTICAL) & ~measurements.from_orbit
    crowded = [np.zeros(0, dtype=np.int64)]
    placed = measurements.kind != OPTICAL
    for rows, places in _moments(measurements, np.flatnonzero(placed), predictions, _BIN_NS):
        in_crowd = _in_crowd(measurements.take(rows), places, gate_sigmas)
        crowded.append(rows[in_crowd])
        alone = rows[~in_crowd]
        row, candidate, _ = _near_positions(measurements.take(alone), places, gate_sigmas)
        yield alone[row], candidate
    for rows, places in _moments(measurements, np.concatenate(crowded), predictions, _MOMENT_NS, _CLASSES_KM):
        chosen = measurements.take(rows)
        row, candidate, gap_km = _near_positions(chosen, places, gate_sigmas)
        close = _in_reach_sideways(chosen, places, gate_sigmas, row, candidate, gap_km)
        yield rows[row[close]], candidate[close]
    for rows, places in _moments(measurements, np.flatnonzero(sighting), predictions, _BIN_NS):
        # All optical observations of one site and bin share the objects above its horizon.
        _, site = np.unique(measurements.site_km[rows, 0].round(0), return_inverse=True)
        for number in np.unique(site).tolist():
            chosen_rows = rows[site == number]
            row, candidate = _near_rays(measurements.take(chosen_rows), places, gate_sigmas)
            yield chosen_rows[row], candidate
    for rows, places in _moments(measurements, np.flatnonzero(measurements.from_orbit), predictions, _BIN_NS):
        row, candidate = _near_rays_from_orbit(measurements.take(rows), places, gate_sigmas)
        yield rows[row], candidate


def _moments(
    measurements: Measurements,
    rows: IntArray,
    predictions: _Predictions,
    bin_ns: int,
    classes_km: tuple[float, ...] = (),
) -> Iterator[tuple[IntArray, _Places]]:
    """Yield the rows of each time bin, with the predicted positions at its middle."""
    bins = measurements.time_ns[rows] // bin_ns
    for number in np.unique(bins).tolist():
        yield rows[bins == number], _places(predictions, number * bin_ns + bin_ns // 2, classes_km)


def _in_crowd(measurements: Measurements, places: _Places, gate_sigmas: float) -> BoolArray:
    """Return which observations (m,) are in a crowd. If none of a sample is, the rest is not tested."""
    position_km = measurements.position_km()
    reach_km = _reach_km(measurements, places, gate_sigmas) + _CLASSES_KM[0]
    ((_, _, tree),) = places.trees

    def crowded(rows: slice) -> BoolArray:
        near = tree.query_ball_point(position_km[rows], reach_km[rows], return_length=True)
        return np.asarray(near > _CROWD)

    few = slice(None, None, max(1, len(position_km) // _LOOKED_AT_FIRST))
    return crowded(slice(None)) if crowded(few).any() else np.zeros(len(position_km), dtype=bool)


def _moved_km(measurements: Measurements, places: _Places, gate_sigmas: float) -> FloatArray:
    """Upper bound of an object's motion between each observation and the time of ``places``, km."""
    elapsed_s = np.abs(measurements.time_ns - places.time_ns) / 1e9
    return np.asarray(_FASTEST_KM_S * (elapsed_s + gate_sigmas * measurements.time_sigma_s) + _INTERPOLATION_KM)


def _spread_km(measurements: Measurements) -> FloatArray:
    """One-sigma position noise of observations, km, along its largest axis or an upper bound of it."""
    along = np.where(measurements.kind == RADAR, measurements.value[:, 0] ** 2, 0.0)
    first_three = measurements.variance[:, :3]
    radar = first_three[:, 0] + along * (first_three[:, 1] + first_three[:, 2])
    return np.sqrt(np.where(measurements.kind == RADAR, radar, first_three.sum(axis=1)))


def _reach_km(measurements: Measurements, places: _Places, gate_sigmas: float) -> FloatArray:
    """Gate radius of observations at the time of ``places`` for objects with exact elements, km."""
    return _moved_km(measurements, places, gate_sigmas) + gate_sigmas * _spread_km(measurements)


def _near_positions(
    measurements: Measurements, places: _Places, gate_sigmas: float
) -> tuple[IntArray, IntArray, FloatArray]:
    """Pairs of observation and object within reach, and the vector (p, 3) from one to the other, km."""
    position_km = measurements.position_km()
    reach_km = _reach_km(measurements, places, gate_sigmas)
    rows: list[IntArray] = [np.zeros(0, dtype=np.int64)]
    candidates: list[IntArray] = [np.zeros(0, dtype=np.int64)]
    for first, radius_km, tree in places.trees:
        found = tree.query_ball_point(position_km, reach_km + radius_km)
        counts = np.fromiter(map(len, found), np.int64, len(found))
        rows.append(np.repeat(np.arange(len(found)), counts))
        candidates.append(first + np.fromiter(chain.from_iterable(found), np.int64, int(counts.sum())))
    row, candidate = np.concatenate(rows), np.concatenate(candidates)
    gap_km = places.r_teme_km[candidate] - position_km[row]
    close = np.linalg.norm(gap_km, axis=1) <= reach_km[row] + places.of.prior_radius_km[candidate]
    return row[close], candidate[close], gap_km[close]


def _in_reach_sideways(
    measurements: Measurements,
    places: _Places,
    gate_sigmas: float,
    row: IntArray,
    candidate: IntArray,
    gap_km: FloatArray,
) -> BoolArray:
    """Return which pairs (p,) are within reach along each RTN axis, with the object moved to the observation's time."""
    elapsed_s = (measurements.time_ns[row] - places.time_ns) / 1e9
    gap_km = gap_km + places.v_teme_km_s[candidate] * elapsed_s[:, None]
    off_km = np.abs(np.einsum("pij,pj->pi", places.rtn[candidate], gap_km))
    slack_km = _INTERPOLATION_KM + gate_sigmas * _FASTEST_KM_S * measurements.time_sigma_s[row]
    noise_km = gate_sigmas * _spread_km(measurements)[row]
    reach_km = slack_km[:, None] + np.hypot(places.of.prior_km[candidate], noise_km[:, None])
    return np.asarray((off_km <= reach_km).all(axis=1))


def _near_rays(measurements: Measurements, places: _Places, gate_sigmas: float) -> tuple[IntArray, IntArray]:
    site_km = measurements.site_km[len(measurements) // 2]
    # The site itself moves less than two kilometres within a bin.
    moved_km = _moved_km(measurements, places, gate_sigmas) + np.linalg.norm(measurements.site_km - site_km, axis=1)
    prior_radius_km = places.of.prior_radius_km
    line_km = places.r_teme_km - site_km
    distance_km = np.linalg.norm(line_km, axis=1)
    sine = line_km @ (site_km / np.linalg.norm(site_km)) / distance_km
    # Within its prediction error of the site, an object may rise before its prediction does.
    visible = np.flatnonzero((sine > _HORIZON_SINE) | (distance_km < 1000.0 + prior_radius_km))
    line_km, distance_km = line_km[visible], distance_km[visible]
    ahead_km = line_km @ measurements.direction.T
    off_km = np.sqrt(np.maximum(distance_km[:, None] ** 2 - ahead_km**2, 0.0))
    angle = gate_sigmas * np.sqrt(measurements.variance[:, :2].sum(axis=1))
    reach_km = moved_km + prior_radius_km[visible, None] + angle * distance_km[:, None]
    candidate, row = np.nonzero((off_km <= reach_km) & (ahead_km > -reach_km))
    return row, visible[candidate]


def _near_rays_from_orbit(measurements: Measurements, places: _Places, gate_sigmas: float) -> tuple[IntArray, IntArray]:
    """As `_near_rays` for observers in orbit, of which each is somewhere else at each time."""
    angle = gate_sigmas * np.sqrt(measurements.variance[:, :2].sum(axis=1)) + _LIGHT
    slack_km = _INTERPOLATION_KM + _BENDING_KM + gate_sigmas * _FASTEST_KM_S * measurements.time_sigma_s
    pairs = rays_near(
        measurements.site_km,
        measurements.direction,
        (measurements.time_ns - places.time_ns) / 1e9,
        slack_km + gate_sigmas * measurements.site_sigma_km,
        angle,
        places.r_teme_km,
        places.v_teme_km_s,
        places.of.prior_radius_km,
    )
    return pairs[:, 0], pairs[:, 1]
