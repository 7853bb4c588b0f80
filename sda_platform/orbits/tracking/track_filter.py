"""Track filter: one state per object, updated by each window fit with that window's observations alone.

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

from sda_platform.orbits.covariance import process_noise, rtn_to_teme, sgp4_noise_km2_s3, transport
from sda_platform.orbits.element_errors import TRACKED_IN_TRACK_KM, element_covariance_rtn
from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.two_body import two_body_stm

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
    covariance: FloatArray
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


def filter_tracks(fits: WindowFits, propagator: Propagator, index: npt.ArrayLike) -> FilteredStates:
    """Filter every object's window fits.

    Args:
        fits: at least one of each object.
        propagator: the current catalogue; the filter state is the deviation from it.
        index: (g,) position of each object in it.

    Objects that SGP4 rejects at any of their windows have NaN states.

    Source: Bar-Shalom, Li & Kirubarajan, Estimation with Applications to Tracking and Navigation (2001), sections 5.2
    (normalised innovation), 11.3 (manoeuvre detection by it), 7.2 (information form).
    """
    rows: IntArray = np.asarray(index, dtype=np.int64)[fits.group]
    error, r, v = propagator.at(rows, fits.epoch_ns)
    reference = np.where((error == 0)[:, None], np.concatenate([r, v], axis=1), np.nan)
    information, vector = observation_information(fits, reference)
    first = np.flatnonzero(np.diff(fits.group, prepend=-1))
    filter_ = _Filter.at_first(fits, reference, propagator, rows[first], first)
    count = np.diff(first, append=len(fits.group))
    for step in range(int(count.max(initial=0))):
        live = np.flatnonzero(count > step)
        filter_.update(live, first[live] + step, fits, reference, information, vector)
    return filter_.report(fits, reference, first + count - 1)


def observation_information(fits: WindowFits, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Information matrix (w, 6, 6) and vector (w, 6), about the reference, of each window's observations alone."""
    prior = np.linalg.inv(fits.prior_covariance)
    posterior = np.linalg.inv(fits.covariance)
    vector = np.einsum("wij,wj->wi", posterior, fits.state - reference)
    vector -= np.einsum("wij,wj->wi", prior, fits.predicted - reference)
    return posterior - prior, vector


@dataclasses.dataclass(eq=False)
class _Filter:
    """Filter state of all objects between two windows, as deviations from the reference."""

    deviation: FloatArray
    covariance: FloatArray
    row: IntArray
    """(g,) the window at which the deviation is valid."""
    innovation: FloatArray
    innovation_size: IntArray
    inconsistent_count: IntArray
    first_inconsistent_row: IntArray
    manoeuvre_row: IntArray
    unexplained: IntArray
    ballistic: FloatArray
    """(g, 6) deviation without the detected manoeuvre."""
    ballistic_covariance: FloatArray

    @classmethod
    def at_first(
        cls, fits: WindowFits, reference: FloatArray, propagator: Propagator, index: IntArray, first: IntArray
    ) -> _Filter:
        r, v = reference[first, :3], reference[first, 3:]
        count = len(first)
        in_rtn = element_covariance_rtn(propagator, index, fits.epoch_ns[first], r, v, most_km=TRACKED_IN_TRACK_KM)
        covariance = rtn_to_teme(in_rtn, r, v)
        return cls(
            deviation=np.zeros((count, 6)),
            covariance=covariance,
            row=first.copy(),
            innovation=np.full(count, np.nan),
            innovation_size=np.zeros(count, dtype=np.int64),
            inconsistent_count=np.zeros(count, dtype=np.int64),
            first_inconsistent_row=np.full(count, -1),
            manoeuvre_row=np.full(count, -1),
            unexplained=np.zeros(count, dtype=np.int64),
            ballistic=np.zeros((count, 6)),
            ballistic_covariance=covariance.copy(),
        )

    def update(
        self,
        live: IntArray,
        rows: IntArray,
        fits: WindowFits,
        reference: FloatArray,
        information: FloatArray,
        vector: FloatArray,
    ) -> None:
        """Update with the windows ``rows``, one of each object in ``live``."""
        elapsed_s = (fits.epoch_ns[rows] - fits.epoch_ns[self.row[live]]) / 1e9
        start = reference[self.row[live]]
        deviation, covariance = transport(
            self.deviation[live], self.covariance[live], start[:, :3], start[:, 3:], elapsed_s
        )
        noise = process_noise(elapsed_s, sgp4_noise_km2_s3(start[:, :3], start[:, 3:]))
        covariance = covariance + noise
        self.ballistic[live], self.ballistic_covariance[live] = transport(
            self.ballistic[live], self.ballistic_covariance[live], start[:, :3], start[:, 3:], elapsed_s
        )
        self.ballistic_covariance[live] += noise
        innovation, size = _innovation(deviation, covariance, information[rows], vector[rows])
        limit = chi2.isf(_IMPLAUSIBLE, np.maximum(size, 1))
        is_first = self.row[live] == rows
        is_inconsistent = (innovation > limit) & ~is_first
        self.inconsistent_count[live] = np.where(is_inconsistent, self.inconsistent_count[live] + 1, 0)
        self.first_inconsistent_row[live] = np.where(
            is_inconsistent & (self.inconsistent_count[live] == 1), rows, self.first_inconsistent_row[live]
        )
        is_manoeuvre = is_inconsistent & (self.inconsistent_count[live] >= 2)
        if is_manoeuvre.any():
            self._start_manoeuvre(live[is_manoeuvre], deviation[is_manoeuvre], covariance[is_manoeuvre])
            lead_s = (fits.epoch_ns[rows] - fits.epoch_ns[self.first_inconsistent_row[live]]) / 1e9
            covariance = np.where(is_manoeuvre[:, None, None], covariance + _manoeuvre_noise(lead_s), covariance)
        accepted = ~is_inconsistent | is_manoeuvre
        self.unexplained[live] += ~accepted
        updated, smaller = _update(deviation, covariance, information[rows], vector[rows])
        self.deviation[live] = np.where(accepted[:, None], updated, deviation)
        self.covariance[live] = np.where(accepted[:, None, None], smaller, covariance)
        self.inconsistent_count[live] = np.where(is_manoeuvre, 0, self.inconsistent_count[live])
        self.innovation[live] = np.where(is_first, np.nan, innovation)
        self.innovation_size[live] = size
        self.row[live] = rows

    def _start_manoeuvre(self, manoeuvred: IntArray, deviation: FloatArray, covariance: FloatArray) -> None:
        self.manoeuvre_row[manoeuvred] = self.first_inconsistent_row[manoeuvred]
        self.ballistic[manoeuvred], self.ballistic_covariance[manoeuvred] = deviation, covariance

    def report(self, fits: WindowFits, reference: FloatArray, last: IntArray) -> FilteredStates:
        epoch_ns = fits.epoch_ns[last]
        manoeuvred = self.manoeuvre_row >= 0
        when = fits.epoch_ns[np.maximum(self.manoeuvre_row, 0)]
        # Both paths are propagated back to the manoeuvre: their velocity difference there is the change of speed.
        back = two_body_stm(reference[last, :3], reference[last, 3:], (when - epoch_ns) / 1e9)
        difference = np.einsum("gij,gj->gi", back, self.deviation - self.ballistic)
        spread = back @ (self.covariance + self.ballistic_covariance) @ back.swapaxes(-1, -2)
        return FilteredStates(
            epoch_ns=epoch_ns,
            state=reference[last] + self.deviation,
            covariance=self.covariance,
            innovation=self.innovation,
            innovation_size=self.innovation_size,
            manoeuvre_ns=np.where(manoeuvred, when, 0),
            manoeuvre_km_s=np.where(manoeuvred, np.linalg.norm(difference[:, 3:], axis=1), np.nan),
            manoeuvre_sigma_km_s=np.where(manoeuvred, np.sqrt(np.einsum("gii->g", spread[:, 3:, 3:])), np.nan),
            unexplained=self.unexplained,
        )


def _manoeuvre_noise(lead_s: FloatArray) -> FloatArray:
    """Process noise (n, 6, 6) of an unknown change of velocity about ``lead_s`` ago."""
    noise = np.zeros((len(lead_s), 6, 6))
    dt, unit = lead_s[:, None, None], np.eye(3)
    noise[:, :3, :3], noise[:, 3:, 3:] = (dt**2 + _MANOEUVRE_TIME_S**2) * unit, unit
    noise[:, :3, 3:] = noise[:, 3:, :3] = dt * unit
    return np.asarray(_MANOEUVRE_KM_S**2 * noise)


def _whitened(covariance: FloatArray, information: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Factor of the covariance, and the information's axes and eigenvalues (n, 6) in its units, negative ones set to
    zero.
    """
    factor = np.linalg.cholesky(np.where(np.isfinite(covariance), covariance, np.eye(6)))
    inner = factor.swapaxes(-1, -2) @ np.nan_to_num(information) @ factor
    sizes, axes = np.linalg.eigh(0.5 * (inner + inner.swapaxes(-1, -2)))
    return factor, axes, np.maximum(sizes, 0.0)


def _innovation(
    deviation: FloatArray, covariance: FloatArray, information: FloatArray, vector: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Squared normalised innovation (n,) of the information against the state, and its degrees of freedom (n,)."""
    factor, axes, sizes = _whitened(covariance, information)
    residual = vector - np.einsum("nij,nj->ni", information, deviation)
    along = np.einsum("nji,nj->ni", axes, np.einsum("nkj,nk->nj", factor, residual))
    is_observable = sizes > _LEAST_INFORMATION
    squares = np.where(is_observable, along**2 / (sizes**2 + np.where(is_observable, sizes, 1.0)), 0.0)
    return squares.sum(axis=1), is_observable.sum(axis=1)


def _update(
    deviation: FloatArray, covariance: FloatArray, information: FloatArray, vector: FloatArray
) -> tuple[FloatArray, FloatArray]:
    factor, axes, sizes = _whitened(covariance, information)
    root = factor @ axes
    smaller = (root / (1 + sizes[:, None, :])) @ root.swapaxes(-1, -2)
    residual = vector - np.einsum("nij,nj->ni", information, deviation)
    return deviation + np.einsum("nij,nj->ni", smaller, residual), 0.5 * (smaller + smaller.swapaxes(-1, -2))
