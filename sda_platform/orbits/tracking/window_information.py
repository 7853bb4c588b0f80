"""Windows of observations as information: what each says of an orbit, and how it changes one.

A window fit starts from the catalogue's prediction, so that two fits of one object share that prior. It is removed:
otherwise it would count once per window.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.covariance import symmetric
from sda_platform.orbits.dynamics.numerical import rotated
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits
from sda_platform.orbits.earth_orientation import gcrf_of_teme, to_gcrf

# A direction in which a fit reduces the variance by less than a thousandth has no testable innovation.
_LEAST_INFORMATION = 1e-3


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
        """Select windows by position."""
        return WindowFits(*(getattr(self, field.name)[rows] for field in dataclasses.fields(self)))


@dataclasses.dataclass(frozen=True, eq=False)
class WindowHalves:
    """Fits of ``h`` windows by each of two halves of their observers (`observer_halves`)."""

    window: IntArray
    """(h,) which of the ``w`` window fits, ascending."""
    state: FloatArray
    """(h, 2, 6)"""
    covariance: FloatArray
    """(h, 2, 6, 6)"""

    def take(self, rows: IntArray) -> WindowHalves:
        """Select windows by position."""
        return WindowHalves(self.window[rows], self.state[rows], self.covariance[rows])

    def fits(self, windows: WindowFits) -> WindowFits:
        """Return the halves (2 h) as fits of their own: both of the first window, then of the next; ``windows``: all
        (w).
        """
        rows = np.repeat(self.window, 2)
        state, covariance = self.state.reshape(-1, 6), self.covariance.reshape(-1, 6, 6)
        return dataclasses.replace(windows.take(rows), state=state, covariance=covariance)


def observation_information(fits: WindowFits, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Information matrix (w, 6, 6) and vector (w, 6), about the reference, of each window's observations alone."""
    prior = np.linalg.inv(fits.prior_covariance)
    posterior = np.linalg.inv(fits.covariance)
    vector = np.einsum("wij,wj->wi", posterior, fits.state - reference)
    vector -= np.einsum("wij,wj->wi", prior, fits.predicted - reference)
    return posterior - prior, vector


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """The observations of windows, in GCRF; of those that are not used, nothing."""

    epoch_ns: IntArray
    reference: FloatArray
    """(w, 6) the states about which the vectors are."""
    information: FloatArray
    """(w, 8, 8), nothing about the coefficients."""
    vector: FloatArray
    """(w, 8)"""
    halves: Evidence | None = None
    """That of halves of windows (2 h), both of the first window, then of the next."""
    half_of: IntArray = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(h,) which windows these are, ascending."""

    @classmethod
    def of(cls, fits: WindowFits, used: IntArray) -> Evidence:
        """Compute the evidence of the windows ``used``."""
        chosen, count = fits.take(used), len(fits.epoch_ns)
        information, vector = observation_information(chosen, chosen.predicted)
        turn = to_gcrf("TEME", chosen.epoch_ns)
        reference, wide, long = np.zeros((count, 6)), np.zeros((count, 8, 8)), np.zeros((count, 8))
        reference[used] = gcrf_of_teme(chosen.predicted, chosen.epoch_ns)
        wide[used, :6, :6] = rotated(turn, information)
        for part in (slice(0, 3), slice(3, 6)):
            long[used, part] = np.einsum("wij,wj->wi", turn, vector[:, part])
        return cls(fits.epoch_ns, reference, wide, long)

    def with_halves(self, halves: WindowHalves, fits: WindowFits, used: IntArray) -> Evidence:
        """Add the evidence of the halves of the windows ``used`` of ``fits``."""
        chosen = halves.take(np.flatnonzero(np.isin(halves.window, used)))
        of_halves = Evidence.of(chosen.fits(fits), np.arange(2 * len(chosen.window)))
        return dataclasses.replace(self, halves=of_halves, half_of=chosen.window)

    def of_rows(self, rows: IntArray) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Epochs, information and vectors of windows ``rows``, and the states that the vectors are about."""
        return self.epoch_ns[rows], self.information[rows], self.vector[rows], self.reference[rows]

    def about(self, rows: IntArray, orbits: UncertainOrbits) -> tuple[FloatArray, FloatArray]:
        """Information (n, 8, 8) and vector (n, 8) of windows ``rows`` about the states of ``orbits``."""
        information = self.information[rows]
        moved = np.einsum("nij,nj->ni", information[:, :, :6], orbits.state - self.reference[rows])
        return information, self.vector[rows] - moved


def _whitened(covariance: FloatArray, information: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Factor of the covariance, and the information's axes and eigenvalues (n, 8) in its units, negative ones set to
    zero.
    """
    known = np.isfinite(covariance).all(axis=(1, 2), keepdims=True)
    factor = np.linalg.cholesky(np.where(known, covariance, np.eye(8)))
    inner = factor.swapaxes(-1, -2) @ np.nan_to_num(information) @ factor
    sizes, axes = np.linalg.eigh(0.5 * (inner + inner.swapaxes(-1, -2)))
    return factor, axes, np.maximum(sizes, 0.0)


def innovation_of(covariance: FloatArray, information: FloatArray, residual: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return squared normalised innovation (n,) of the information against the state, and its degrees of
    freedom (n,).
    """
    factor, axes, sizes = _whitened(covariance, information)
    along = np.einsum("nji,nj->ni", axes, np.einsum("nkj,nk->nj", factor, residual))
    is_observable = sizes > _LEAST_INFORMATION
    squares = np.where(is_observable, along**2 / (sizes**2 + np.where(is_observable, sizes, 1.0)), 0.0)
    return squares.sum(axis=1), is_observable.sum(axis=1)


def updated_by(covariance: FloatArray, information: FloatArray, residual: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Change (n, 8) of state and coefficients, and their covariance (n, 8, 8) after it."""
    factor, axes, sizes = _whitened(covariance, information)
    root = factor @ axes
    smaller = (root / (1 + sizes[:, None, :])) @ root.swapaxes(-1, -2)
    return np.einsum("nij,nj->ni", smaller, residual), symmetric(smaller)
