"""Track filter: one orbit per object, updated by each window fit with that window's observations alone.

State, drag area and reflective area are estimated together, propagated numerically between windows.

A window fit starts from the catalogue's prediction, so that two fits of one object share that prior. The prior is
removed (information of the fit less information of the prior) before the update; otherwise it would count once per
window. A fit inconsistent with the filtered covariance is set aside. When the next one is inconsistent too, a
manoeuvre is detected: the velocity covariance is widened and filtering continues.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from sda_platform.orbits.covariance import rtn_to_teme, symmetric
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS, Dynamics, rotated
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits, first_coefficients
from sda_platform.orbits.element_errors import tracking_prior_rtn
from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator

# A direction in which a fit reduces the variance by less than a thousandth has no testable innovation.
_LEAST_INFORMATION = 1e-3
_IMPLAUSIBLE = 1e-6
# One sigma of an unforeseen change of speed. The position follows from the time of the manoeuvre, which is known
# to about a window.
_MANOEUVRE_KM_S = 0.05
_MANOEUVRE_TIME_S = 30.0


@dataclasses.dataclass(frozen=True, eq=False)
class WindowFits:
    """``w`` window fits in order of object and time; TEME, km and km/s."""

    group: IntArray
    """(w,) which of the ``g`` objects, ascending from 0."""
    epoch_ns: IntArray
    state: FloatArray
    """(w, 6)"""
    covariance: FloatArray
    """(w, 6, 6)"""
    predicted: FloatArray
    """(w, 6) the catalogue's prediction at the time of the fit: the mean of the fit's prior."""
    prior_covariance: FloatArray
    """(w, 6, 6) covariance of that prior."""

    def take(self, rows: IntArray) -> WindowFits:
        """Only these windows, by position."""
        return WindowFits(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))


@dataclasses.dataclass(frozen=True, eq=False)
class FilteredStates:
    """Filtered states of ``g`` objects at their newest windows."""

    epoch_ns: IntArray
    state: FloatArray
    """(g, 6) TEME, km and km/s."""
    coefficients: FloatArray
    """(g, 2) drag area and reflective area over mass, m2/kg."""
    joint_covariance: FloatArray
    """(g, 8, 8) of state and coefficients."""
    innovation: FloatArray
    """(g,) squared normalised innovation of the newest fit, NaN for a first one."""
    innovation_size: IntArray
    """(g,) its degrees of freedom."""
    manoeuvre_ns: IntArray
    """(g,) epoch of the first inconsistent fit of a detected manoeuvre, 0: none."""
    manoeuvre_km_s: FloatArray
    """(g,) magnitude of the velocity change; NaN: no manoeuvre."""
    manoeuvre_sigma_km_s: FloatArray
    """(g,) one sigma of that magnitude."""
    unexplained: IntArray
    """(g,) number of window fits set aside."""

    @property
    def covariance(self) -> FloatArray:
        """(g, 6, 6) of the state."""
        return self.joint_covariance[:, :6, :6]


def filter_tracks(
    fits: WindowFits, propagator: Propagator, index: npt.ArrayLike, dynamics: Dynamics = CONSTANT_DYNAMICS
) -> FilteredStates:
    """Filter every object's window fits.

    Args:
        fits: at least one of each object.
        propagator: the current catalogue: the prior of each object's first window.
        index: (g,) position of each object in it.
        dynamics: the numerical model between windows.

    Objects that SGP4 rejects at their first window, or that meet the ground, have NaN states.

    Source: Bar-Shalom, Li & Kirubarajan, Estimation with Applications to Tracking and Navigation (2001), sections 5.2
    (normalised innovation), 11.3 (manoeuvre detection by it), 7.2 (information form).
    """
    evidence = _Evidence.of(fits, dynamics)
    first = np.flatnonzero(np.diff(fits.group, prepend=-1))
    filter_ = _Filter.at_first(fits, propagator, np.asarray(index, dtype=np.int64), first, dynamics)
    count = np.diff(first, append=len(fits.group))
    for step in range(int(count.max(initial=0))):
        live = np.flatnonzero(count > step)
        filter_.update(live, first[live] + step, evidence)
    return filter_.report(evidence)


def observation_information(fits: WindowFits, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Information matrix (w, 6, 6) and vector (w, 6), about the reference, of each window's observations alone."""
    prior = np.linalg.inv(fits.prior_covariance)
    posterior = np.linalg.inv(fits.covariance)
    vector = np.einsum("wij,wj->wi", posterior, fits.state - reference)
    vector -= np.einsum("wij,wj->wi", prior, fits.predicted - reference)
    return posterior - prior, vector


@dataclasses.dataclass(frozen=True, eq=False)
class _Evidence:
    """The observations of all windows, in GCRF."""

    epoch_ns: IntArray
    reference: FloatArray
    """(w, 6) the states about which the vectors are."""
    information: FloatArray
    """(w, 8, 8), nothing about the coefficients."""
    vector: FloatArray
    """(w, 8)"""

    @classmethod
    def of(cls, fits: WindowFits, dynamics: Dynamics) -> _Evidence:
        information, vector = observation_information(fits, fits.predicted)
        turn = dynamics.turn(fits.epoch_ns)
        wide, long = np.zeros((len(turn), 8, 8)), np.zeros((len(turn), 8))
        wide[:, :6, :6] = rotated(turn, information)
        for part in (slice(0, 3), slice(3, 6)):
            long[:, part] = np.einsum("wij,wj->wi", turn, vector[:, part])
        return cls(fits.epoch_ns, dynamics.to_gcrf(fits.predicted, fits.epoch_ns), wide, long)

    def about(self, rows: IntArray, orbits: UncertainOrbits) -> tuple[FloatArray, FloatArray]:
        """Information (n, 8, 8) and vector (n, 8) of windows ``rows`` about the states of ``orbits``."""
        information = self.information[rows]
        moved = np.einsum("nij,nj->ni", information[:, :, :6], orbits.state - self.reference[rows])
        return information, self.vector[rows] - moved


@dataclasses.dataclass(eq=False)
class _Filter:
    """Filter state of all objects between two windows, in GCRF."""

    dynamics: Dynamics
    orbits: UncertainOrbits
    innovation: FloatArray
    innovation_size: IntArray
    inconsistent_count: IntArray
    first_inconsistent_row: IntArray
    manoeuvre_row: IntArray
    unexplained: IntArray
    ballistic: UncertainOrbits
    """The orbits without the detected manoeuvre, at the window at which it was detected."""

    @classmethod
    def at_first(
        cls, fits: WindowFits, propagator: Propagator, index: IntArray, first: IntArray, dynamics: Dynamics
    ) -> _Filter:
        count, epoch_ns = len(first), fits.epoch_ns[first]
        error, r, v = propagator.at(index, epoch_ns)
        in_rtn = tracking_prior_rtn(propagator, index, epoch_ns, r, v)
        coefficients, of_coefficients = first_coefficients(propagator.elements.bstar_per_earth_radius[index])
        covariance = np.zeros((count, 8, 8))
        covariance[:, :6, :6] = rotated(dynamics.turn(epoch_ns), rtn_to_teme(in_rtn, r, v))
        covariance[:, 6:, 6:] = of_coefficients
        state = dynamics.to_gcrf(np.where((error == 0)[:, None], np.hstack([r, v]), np.nan), epoch_ns)
        orbits = UncertainOrbits(epoch_ns, state, coefficients, covariance)
        return cls(
            dynamics=dynamics,
            orbits=orbits,
            innovation=np.full(count, np.nan),
            innovation_size=np.zeros(count, dtype=np.int64),
            inconsistent_count=np.zeros(count, dtype=np.int64),
            first_inconsistent_row=np.full(count, -1),
            manoeuvre_row=np.full(count, -1),
            unexplained=np.zeros(count, dtype=np.int64),
            ballistic=orbits.copied(),
        )

    def update(self, live: IntArray, rows: IntArray, evidence: _Evidence) -> None:
        """Update with the windows ``rows``, one of each object in ``live``."""
        is_first = self.orbits.epoch_ns[live] == evidence.epoch_ns[rows]
        predicted = self.orbits.take(live).at(self.dynamics, evidence.epoch_ns[rows])
        information, vector = evidence.about(rows, predicted)
        innovation, size = _innovation(predicted.covariance, information, vector)
        limit = chi2.isf(_IMPLAUSIBLE, np.maximum(size, 1))
        is_inconsistent = (innovation > limit) & ~is_first
        self.inconsistent_count[live] = np.where(is_inconsistent, self.inconsistent_count[live] + 1, 0)
        self.first_inconsistent_row[live] = np.where(
            is_inconsistent & (self.inconsistent_count[live] == 1), rows, self.first_inconsistent_row[live]
        )
        is_manoeuvre = is_inconsistent & (self.inconsistent_count[live] >= 2)
        covariance = predicted.covariance
        if is_manoeuvre.any():
            self.manoeuvre_row[live[is_manoeuvre]] = self.first_inconsistent_row[live[is_manoeuvre]]
            self.ballistic.put(live[is_manoeuvre], predicted.take(is_manoeuvre))
            lead_s = (evidence.epoch_ns[rows] - evidence.epoch_ns[self.first_inconsistent_row[live]]) / 1e9
            covariance = np.where(is_manoeuvre[:, None, None], covariance + _manoeuvre_noise(lead_s), covariance)
        accepted = ~is_inconsistent | is_manoeuvre
        self.unexplained[live] += ~accepted
        change, smaller = _update(covariance, information, vector)
        change = np.where(accepted[:, None], change, 0.0)
        updated = UncertainOrbits(
            predicted.epoch_ns,
            predicted.state + change[:, :6],
            predicted.coefficients + change[:, 6:],
            np.where(accepted[:, None, None], smaller, covariance),
        )
        self.orbits.put(live, updated)
        self.inconsistent_count[live] = np.where(is_manoeuvre, 0, self.inconsistent_count[live])
        self.innovation[live] = np.where(is_first, np.nan, innovation)
        self.innovation_size[live] = size

    def report(self, evidence: _Evidence) -> FilteredStates:
        manoeuvred = self.manoeuvre_row >= 0
        when = np.where(manoeuvred, evidence.epoch_ns[np.maximum(self.manoeuvre_row, 0)], 0)
        speed, sigma = np.full(len(when), np.nan), np.full(len(when), np.nan)
        rows = np.flatnonzero(manoeuvred)
        if len(rows):
            # Both paths are propagated back to the manoeuvre: their velocity difference there is the change of speed.
            after, before = (each.take(rows).at(self.dynamics, when[rows]) for each in (self.orbits, self.ballistic))
            speed[rows] = np.linalg.norm(after.state[:, 3:] - before.state[:, 3:], axis=1)
            spread = after.covariance[:, 3:6, 3:6] + before.covariance[:, 3:6, 3:6]
            sigma[rows] = np.sqrt(np.einsum("gii->g", spread))
        state, joint_covariance = self.orbits.in_teme(self.dynamics)
        return FilteredStates(
            epoch_ns=self.orbits.epoch_ns,
            state=state,
            coefficients=self.orbits.coefficients,
            joint_covariance=joint_covariance,
            innovation=self.innovation,
            innovation_size=self.innovation_size,
            manoeuvre_ns=when,
            manoeuvre_km_s=speed,
            manoeuvre_sigma_km_s=sigma,
            unexplained=self.unexplained,
        )


def _manoeuvre_noise(lead_s: FloatArray) -> FloatArray:
    """Process noise (n, 8, 8) of an unknown change of velocity about ``lead_s`` ago."""
    noise = np.zeros((len(lead_s), 8, 8))
    dt, unit = lead_s[:, None, None], np.eye(3)
    noise[:, :3, :3], noise[:, 3:6, 3:6] = (dt**2 + _MANOEUVRE_TIME_S**2) * unit, unit
    noise[:, :3, 3:6] = noise[:, 3:6, :3] = dt * unit
    return np.asarray(_MANOEUVRE_KM_S**2 * noise)


def _whitened(covariance: FloatArray, information: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Factor of the covariance, and the information's axes and eigenvalues (n, 8) in its units, negative ones set to
    zero.
    """
    known = np.isfinite(covariance).all(axis=(1, 2), keepdims=True)
    factor = np.linalg.cholesky(np.where(known, covariance, np.eye(8)))
    inner = factor.swapaxes(-1, -2) @ np.nan_to_num(information) @ factor
    sizes, axes = np.linalg.eigh(0.5 * (inner + inner.swapaxes(-1, -2)))
    return factor, axes, np.maximum(sizes, 0.0)


def _innovation(covariance: FloatArray, information: FloatArray, residual: FloatArray) -> tuple[FloatArray, IntArray]:
    """Squared normalised innovation (n,) of the information against the state, and its degrees of freedom (n,)."""
    factor, axes, sizes = _whitened(covariance, information)
    along = np.einsum("nji,nj->ni", axes, np.einsum("nkj,nk->nj", factor, residual))
    is_observable = sizes > _LEAST_INFORMATION
    squares = np.where(is_observable, along**2 / (sizes**2 + np.where(is_observable, sizes, 1.0)), 0.0)
    return squares.sum(axis=1), is_observable.sum(axis=1)


def _update(covariance: FloatArray, information: FloatArray, residual: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Change (n, 8) of state and coefficients, and their covariance (n, 8, 8) after it."""
    factor, axes, sizes = _whitened(covariance, information)
    root = factor @ axes
    smaller = (root / (1 + sizes[:, None, :])) @ root.swapaxes(-1, -2)
    return np.einsum("nij,nj->ni", smaller, residual), symmetric(smaller)
