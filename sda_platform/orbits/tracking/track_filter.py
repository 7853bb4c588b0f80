"""One state per object, carried from window fit to window fit: each adds what its own observations say, and no more.

A window fit starts from the catalogue's prediction, so two fits of one object share that prior. It is taken out again
(information of the fit less information of the prior) before a fit is added to the carried state; else the catalogue
would be believed anew with every window. A fit that the carried covariance cannot explain is set aside; when the next
one cannot be explained either, the object has manoeuvred: the state is opened for a new velocity and follows again.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from sda_platform.orbits.covariance import prior_covariance_rtn, process_noise, rtn_to_teme, transport
from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.two_body import two_body_stm

_DAY_NS = 86_400_000_000_000
# Directions in which a fit halves less than a thousandth of the variance say nothing that could be tested.
_LEAST_INFORMATION = 1e-3
_IMPLAUSIBLE = 1e-6
# What a manoeuvre may change unforeseen: the speed, one sigma. The place follows from the time since, which is known
# no better than to a window.
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
    """(w, 6) what the catalogue said when the window was fitted: the mean of the fit's prior."""
    elements_epoch_ns: IntArray
    """(w,) epoch of the element set that said it, from which the prior's covariance follows."""


@dataclasses.dataclass(frozen=True, eq=False)
class PropagatedStates:
    """Where each of ``g`` objects is at its newest window, from all of them."""

    epoch_ns: IntArray
    state: FloatArray
    covariance: FloatArray
    innovation: FloatArray
    """(g,) squared normalised innovation of the newest fit, NaN for a first one."""
    innovation_size: IntArray
    """(g,) its degrees of freedom."""
    manoeuvre_ns: IntArray
    """(g,) epoch of the first fit that broke the covariance, 0: none did."""
    manoeuvre_km_s: FloatArray
    """(g,) how much faster or slower, as a vector's length, the object left than it came; NaN: no manoeuvre."""
    manoeuvre_sigma_km_s: FloatArray
    """(g,) one sigma of that."""
    unexplained: IntArray
    """(g,) window fits that were set aside."""


def carry(fits: WindowFits, propagator: Propagator, index: npt.ArrayLike) -> PropagatedStates:
    """Follow every object through its window fits.

    Args:
        fits: at least one of each object.
        propagator: the catalogue of now; deviations from it are what is carried.
        index: (g,) position of each object in it.

    Objects that SGP4 refuses at any of their windows have NaN states.

    Source: Bar-Shalom, Li & Kirubarajan, Estimation with Applications to Tracking and Navigation (2001), sections 5.2
    (normalised innovation), 11.3 (manoeuvre detection by it), 7.2 (information form).
    """
    rows: IntArray = np.asarray(index, dtype=np.int64)[fits.group]
    error, r, v = propagator.at(rows, fits.epoch_ns)
    reference = np.where((error == 0)[:, None], np.concatenate([r, v], axis=1), np.nan)
    information, vector = own_evidence(fits, reference)
    first = np.flatnonzero(np.diff(fits.group, prepend=-1))
    filter_ = _Filter.at_first(fits, reference, propagator.elements.epoch_time_ns[rows], first)
    count = np.diff(first, append=len(fits.group))
    for step in range(int(count.max(initial=0))):
        live = np.flatnonzero(count > step)
        filter_.take(live, first[live] + step, fits, reference, information, vector)
    return filter_.report(fits, reference, first + count - 1)


def own_evidence(fits: WindowFits, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Information matrix (w, 6, 6) and vector (w, 6), about the reference, of each window's observations alone."""
    age_days = (fits.epoch_ns - fits.elements_epoch_ns) / _DAY_NS
    r, v = fits.predicted[:, :3], fits.predicted[:, 3:]
    prior = np.linalg.inv(rtn_to_teme(prior_covariance_rtn(r, v, age_days), r, v))
    posterior = np.linalg.inv(fits.covariance)
    pull = np.einsum("wij,wj->wi", posterior, fits.state - reference)
    pull -= np.einsum("wij,wj->wi", prior, fits.predicted - reference)
    return posterior - prior, pull


@dataclasses.dataclass(eq=False)
class _Filter:
    """The state of all objects between two of their windows, as deviations from the reference."""

    deviation: FloatArray
    covariance: FloatArray
    row: IntArray
    """(g,) the window at which the deviation stands."""
    innovation: FloatArray
    innovation_size: IntArray
    strikes: IntArray
    struck_row: IntArray
    broken_row: IntArray
    unexplained: IntArray
    unbroken: FloatArray
    """(g, 6) where the object would be had it not manoeuvred."""
    unbroken_covariance: FloatArray

    @classmethod
    def at_first(cls, fits: WindowFits, reference: FloatArray, elements_epoch_ns: IntArray, first: IntArray) -> _Filter:
        r, v = reference[first, :3], reference[first, 3:]
        age_days = (fits.epoch_ns[first] - elements_epoch_ns[first]) / _DAY_NS
        count = len(first)
        covariance = rtn_to_teme(prior_covariance_rtn(r, v, age_days), r, v)
        return cls(
            deviation=np.zeros((count, 6)),
            covariance=covariance,
            row=first.copy(),
            innovation=np.full(count, np.nan),
            innovation_size=np.zeros(count, dtype=np.int64),
            strikes=np.zeros(count, dtype=np.int64),
            struck_row=np.full(count, -1),
            broken_row=np.full(count, -1),
            unexplained=np.zeros(count, dtype=np.int64),
            unbroken=np.zeros((count, 6)),
            unbroken_covariance=covariance.copy(),
        )

    def take(
        self,
        live: IntArray,
        rows: IntArray,
        fits: WindowFits,
        reference: FloatArray,
        information: FloatArray,
        vector: FloatArray,
    ) -> None:
        """Add the windows ``rows``, one of each object in ``live``."""
        elapsed_s = (fits.epoch_ns[rows] - fits.epoch_ns[self.row[live]]) / 1e9
        start = reference[self.row[live]]
        deviation, covariance = transport(
            self.deviation[live], self.covariance[live], start[:, :3], start[:, 3:], elapsed_s
        )
        noise = process_noise(elapsed_s)
        covariance = covariance + noise
        self.unbroken[live], self.unbroken_covariance[live] = transport(
            self.unbroken[live], self.unbroken_covariance[live], start[:, :3], start[:, 3:], elapsed_s
        )
        self.unbroken_covariance[live] += noise
        surprise, size = _innovation(deviation, covariance, information[rows], vector[rows])
        limit = chi2.isf(_IMPLAUSIBLE, np.maximum(size, 1))
        is_first = self.row[live] == rows
        breaks = (surprise > limit) & ~is_first
        self.strikes[live] = np.where(breaks, self.strikes[live] + 1, 0)
        self.struck_row[live] = np.where(breaks & (self.strikes[live] == 1), rows, self.struck_row[live])
        opened = breaks & (self.strikes[live] >= 2)
        if opened.any():
            self._open(live[opened], deviation[opened], covariance[opened])
            lead_s = (fits.epoch_ns[rows] - fits.epoch_ns[self.struck_row[live]]) / 1e9
            covariance = np.where(opened[:, None, None], covariance + _thrust(lead_s), covariance)
        accepted = ~breaks | opened
        self.unexplained[live] += ~accepted
        updated, smaller = _update(deviation, covariance, information[rows], vector[rows])
        self.deviation[live] = np.where(accepted[:, None], updated, deviation)
        self.covariance[live] = np.where(accepted[:, None, None], smaller, covariance)
        self.strikes[live] = np.where(opened, 0, self.strikes[live])
        self.innovation[live] = np.where(is_first, np.nan, surprise)
        self.innovation_size[live] = size
        self.row[live] = rows

    def _open(self, broken: IntArray, deviation: FloatArray, covariance: FloatArray) -> None:
        self.broken_row[broken] = self.struck_row[broken]
        self.unbroken[broken], self.unbroken_covariance[broken] = deviation, covariance

    def report(self, fits: WindowFits, reference: FloatArray, last: IntArray) -> PropagatedStates:
        epoch_ns = fits.epoch_ns[last]
        broken = self.broken_row >= 0
        when = fits.epoch_ns[np.maximum(self.broken_row, 0)]
        # Both paths back to when they parted: what differs there is the change of speed.
        back = two_body_stm(reference[last, :3], reference[last, 3:], (when - epoch_ns) / 1e9)
        parted = np.einsum("gij,gj->gi", back, self.deviation - self.unbroken)
        spread = back @ (self.covariance + self.unbroken_covariance) @ back.swapaxes(-1, -2)
        return PropagatedStates(
            epoch_ns=epoch_ns,
            state=reference[last] + self.deviation,
            covariance=self.covariance,
            innovation=self.innovation,
            innovation_size=self.innovation_size,
            manoeuvre_ns=np.where(broken, when, 0),
            manoeuvre_km_s=np.where(broken, np.linalg.norm(parted[:, 3:], axis=1), np.nan),
            manoeuvre_sigma_km_s=np.where(broken, np.sqrt(np.einsum("gii->g", spread[:, 3:, 3:])), np.nan),
            unexplained=self.unexplained,
        )


def _thrust(lead_s: FloatArray) -> FloatArray:
    """(n, 6, 6) of an unknown change of speed about ``lead_s`` ago."""
    noise = np.zeros((len(lead_s), 6, 6))
    dt, unit = lead_s[:, None, None], np.eye(3)
    noise[:, :3, :3], noise[:, 3:, 3:] = (dt**2 + _MANOEUVRE_TIME_S**2) * unit, unit
    noise[:, :3, 3:] = noise[:, 3:, :3] = dt * unit
    return np.asarray(_MANOEUVRE_KM_S**2 * noise)


def _whitened(covariance: FloatArray, information: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Factor of the covariance, and the information's axes and sizes (n, 6) in its units; noise below zero is none."""
    factor = np.linalg.cholesky(np.where(np.isfinite(covariance), covariance, np.eye(6)))
    inner = factor.swapaxes(-1, -2) @ np.nan_to_num(information) @ factor
    sizes, axes = np.linalg.eigh(0.5 * (inner + inner.swapaxes(-1, -2)))
    return factor, axes, np.maximum(sizes, 0.0)


def _innovation(
    deviation: FloatArray, covariance: FloatArray, information: FloatArray, vector: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Squared normalised innovation (n,) of the evidence against the state, and its degrees of freedom (n,)."""
    factor, axes, sizes = _whitened(covariance, information)
    misfit = vector - np.einsum("nij,nj->ni", information, deviation)
    along = np.einsum("nji,nj->ni", axes, np.einsum("nkj,nk->nj", factor, misfit))
    tells = sizes > _LEAST_INFORMATION
    squares = np.where(tells, along**2 / (sizes**2 + np.where(tells, sizes, 1.0)), 0.0)
    return squares.sum(axis=1), tells.sum(axis=1)


def _update(
    deviation: FloatArray, covariance: FloatArray, information: FloatArray, vector: FloatArray
) -> tuple[FloatArray, FloatArray]:
    factor, axes, sizes = _whitened(covariance, information)
    root = factor @ axes
    smaller = (root / (1 + sizes[:, None, :])) @ root.swapaxes(-1, -2)
    misfit = vector - np.einsum("nij,nj->ni", information, deviation)
    return deviation + np.einsum("nij,nj->ni", smaller, misfit), 0.5 * (smaller + smaller.swapaxes(-1, -2))
