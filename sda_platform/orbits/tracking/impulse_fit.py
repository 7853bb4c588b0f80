"""The orbit after a suspected manoeuvre: one change of velocity at an unknown time, fitted to all windows around it.

A filter that opens its velocity has lost the windows before the suspicion, and that the path has no jump. Here the path
before the manoeuvre, and the time and the change of velocity are estimated together. The time is one of many; each has
a linear fit, and the fits are weighted by their evidence. The size of the change is unknown by two orders of magnitude,
so each fit has one of three sizes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.orbits.chi_square import share_above
from sda_platform.orbits.covariance import symmetric
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits, white_noise
from sda_platform.orbits.tracking.window_information import Evidence

# One sigma of each component of the change of velocity.
_SIZES_KM_S = np.array([5e-4, 5e-3, 5e-2])
_TIMES = 32
_IMPLAUSIBLE = 1e-6
# A manoeuvre before the searched span is found in this first part of it: more probable there, and it may be earlier.
_BEGIN_SHARE, _LEAST_PROBABLE = 1 / 8, 0.02
# Smaller eigenvalues of a window's information, relative to the largest one, are rounding.
_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class Impulse:
    """The orbit (1) after the manoeuvre, at the newest window, and the change of velocity."""

    orbit: UncertainOrbits
    speed_km_s: float
    sigma_km_s: float
    is_inside: bool
    """Whether the time of the manoeuvre is clearly after the beginning of the searched span."""


def search_impulse(
    spans: Iterable[tuple[UncertainOrbits, IntArray]], evidence: Evidence, until_ns: int, dynamics: Dynamics
) -> Impulse | None:
    """Return the impulse in the first of ever longer ``spans`` that has it inside, else the last one that explains its
    span.

    A small impulse shows late. Windows before the first contradiction are after it then, and an orbit from them is not
    the one before. None where no span has an impulse.

    Args:
        spans: of each the orbit (1) before it, and the rows of its windows.
        evidence: the windows.
        until_ns, dynamics: as of `fit_impulse`.
    """
    found, windows = None, -1
    for before, rows in spans:
        if len(rows) > windows:
            found, windows = fit_impulse(before, *evidence.of_rows(rows), until_ns, dynamics) or found, len(rows)
        if found is not None and found.is_inside:
            break
    return found


def fit_impulse(
    before: UncertainOrbits,
    epoch_ns: IntArray,
    information: FloatArray,
    vector: FloatArray,
    reference: FloatArray,
    until_ns: int,
    dynamics: Dynamics,
) -> Impulse | None:
    """Return the orbit at the last of ``k`` windows that an impulse after ``before`` (1) and until ``until_ns``
    explains.

    None where no impulse does, for example after a long thrust.

    Args:
        before: the orbit before the manoeuvre, at a time before all windows, or at the first.
        epoch_ns: (k,) ascending.
        information, vector: (k, 8, 8) and (k, 8) of each window about ``reference`` (k, 6), GCRF.
        until_ns: the first window that contradicts the orbit before.
        dynamics: the numerical model.
    """
    start_ns = int(before.epoch_ns[0])
    problem = _Problem.of(before, epoch_ns, information, vector, reference, dynamics)
    width_ns = max(until_ns - start_ns, 1) / _TIMES
    coarse = start_ns + (np.arange(_TIMES) + 0.5) * width_ns
    first = problem.fits(np.asarray(coarse, np.float64), np.full(_TIMES, width_ns))
    best_ns = first.time_ns[int(np.argmax(first.evidence))]
    fine_ns = 2 * width_ns / _TIMES
    near = best_ns - width_ns + (np.arange(_TIMES) + 0.5) * fine_ns
    inside = (near >= start_ns) & (near <= until_ns)
    second = problem.fits(near[inside], np.full(int(inside.sum()), fine_ns))
    fits = _Fits.joined(first.take(np.abs(first.time_ns - best_ns) > width_ns), second)
    if not np.isfinite(fits.evidence).all() or problem.implausible(fits.gain.max()):
        return None
    return problem.combined(fits, start_ns + _BEGIN_SHARE * (until_ns - start_ns))


@dataclasses.dataclass(frozen=True, eq=False)
class _Fits:
    """Fits (f,) of one time and size each: log evidence, explained squares, and the deviation (f, 11) with covariance:
    of the orbit before, and the change of velocity."""

    time_ns: FloatArray
    evidence: FloatArray
    gain: FloatArray
    mean: FloatArray
    covariance: FloatArray

    def take(self, chosen: np.ndarray) -> _Fits:
        return _Fits(*(getattr(self, each.name)[chosen] for each in dataclasses.fields(self)))

    @classmethod
    def joined(cls, one: _Fits, other: _Fits) -> _Fits:
        names = [each.name for each in dataclasses.fields(cls)]
        return cls(*(np.concatenate([getattr(one, name), getattr(other, name)]) for name in names))


@dataclasses.dataclass(frozen=True, eq=False)
class _Problem:
    """Windows about the path without manoeuvre."""

    before: UncertainOrbits
    dynamics: Dynamics
    epoch_ns: IntArray
    states: FloatArray
    """(k, 6) of the path without manoeuvre."""
    reach: FloatArray
    """(k, 8, 8) from the orbit before to the windows."""
    information: FloatArray
    vector: FloatArray
    squares: float
    """Squares of the windows alone, and their degrees of freedom."""
    degrees: int

    @classmethod
    def of(
        cls,
        before: UncertainOrbits,
        epoch_ns: IntArray,
        information: FloatArray,
        vector: FloatArray,
        reference: FloatArray,
        dynamics: Dynamics,
    ) -> _Problem:
        states, reach = _carried(before, epoch_ns.astype(np.float64), dynamics)
        about = vector - np.einsum("kij,kj->ki", information[:, :, :6], states - reference)
        squares, degrees = 0.0, 0
        for each, right in zip(information[:, :6, :6], about[:, :6], strict=True):
            # Positions and velocities differ by a thousand in size: compare them in units of their own information.
            unit = 1 / np.sqrt(np.maximum(np.diag(each), 1e-30))
            sizes, axes = np.linalg.eigh(unit[:, None] * each * unit)
            known = sizes > _ROUNDING * sizes.max(initial=0.0)
            squares += float(np.sum((axes.T @ (unit * right))[known] ** 2 / sizes[known]))
            degrees += int(known.sum())
        return cls(before, dynamics, epoch_ns, states, reach, information, about, squares, degrees)

    def fits(self, time_ns: FloatArray, width_ns: FloatArray) -> _Fits:
        """A fit for each time and size; ``width_ns``: how long a time counts."""
        count, sizes = len(time_ns), len(_SIZES_KM_S)
        kick = np.where(
            (self.epoch_ns > time_ns[:, None])[:, :, None, None], self.reach @ self._kicks(time_ns)[:, None], 0.0
        )
        design = np.concatenate([np.broadcast_to(self.reach, (count, *self.reach.shape)), kick], axis=3)
        seen = self.information @ design
        whole = np.repeat(np.einsum("fkia,fkib->fab", design, seen, optimize=True), sizes, axis=0)
        right = np.repeat(np.einsum("fkia,ki->fa", design, self.vector), sizes, axis=0)
        size = np.tile(_SIZES_KM_S, count)
        whole[:, :8, :8] += np.linalg.inv(self.before.covariance[0])
        whole[:, 8:, 8:] += np.eye(3) / size[:, None, None] ** 2
        # In units of each unknown, so that the factor does not lose digits.
        unit = 1 / np.sqrt(np.einsum("fii->fi", whole))
        factor = np.linalg.cholesky(unit[:, :, None] * whole * unit[:, None, :])
        half = np.linalg.solve(factor, (unit * right)[:, :, None])[:, :, 0]
        inverse = np.linalg.solve(factor, unit[:, :, None] * np.eye(11))
        log_size = 2 * (np.log(np.einsum("fii->fi", factor)) - np.log(unit)).sum(axis=1) + 6 * np.log(size)
        gain = np.einsum("fi,fi->f", half, half)
        return _Fits(
            time_ns=np.repeat(time_ns, sizes),
            evidence=0.5 * (gain - log_size) + np.log(np.repeat(width_ns, sizes)),
            gain=gain,
            mean=np.einsum("fij,fi->fj", inverse, half),
            covariance=inverse.swapaxes(1, 2) @ inverse,
        )

    def _kicks(self, time_ns: FloatArray) -> FloatArray:
        """(t, 8, 3): what a change of velocity at these times is at the orbit before."""
        _, to_burn = _carried(self.before, time_ns, self.dynamics)
        return np.asarray(np.linalg.solve(to_burn, np.broadcast_to(np.eye(8)[:, 3:6], (len(time_ns), 8, 3))))

    def implausible(self, gain: float) -> bool:
        """Return whether the windows contradict a fit that explains ``gain`` of their squares."""
        return bool(share_above(self.squares - gain, max(self.degrees, 1)) < _IMPLAUSIBLE)

    def combined(self, fits: _Fits, early_ns: float) -> Impulse:
        """Return the fits as one: their mean and covariance, weighted by the evidence, at the newest window."""
        weight = np.exp(fits.evidence - fits.evidence.max())
        weight /= weight.sum()
        is_inside = bool(weight[fits.time_ns < early_ns].sum() < _LEAST_PROBABLE)
        kept = weight > 1e-9
        weight, fits = weight[kept] / weight[kept].sum(), fits.take(kept)
        kick = self.reach[-1] @ self._kicks(fits.time_ns)
        last = np.concatenate([np.broadcast_to(self.reach[-1], (len(weight), 8, 8)), kick], axis=2)
        deviation, spread = _mixed(
            weight, np.einsum("fij,fj->fi", last, fits.mean), last @ fits.covariance @ last.swapaxes(1, 2)
        )
        change, of_change = _mixed(weight, fits.mean[:, 8:], fits.covariance[:, 8:, 8:])
        elapsed_s = np.array([(self.epoch_ns[-1] - self.before.epoch_ns[0]) / 1e9])
        spread[:6, :6] += white_noise(self.before.state, elapsed_s)[0]
        orbit = UncertainOrbits(
            self.epoch_ns[-1:],
            self.states[-1:] + deviation[None, :6],
            self.before.coefficients + deviation[None, 6:],
            symmetric(spread[None]),
        )
        return Impulse(orbit, float(np.linalg.norm(change)), float(np.sqrt(np.trace(of_change))), is_inside)


def _carried(before: UncertainOrbits, time_ns: FloatArray, dynamics: Dynamics) -> tuple[FloatArray, FloatArray]:
    """States (t, 6) of the orbit at times (t,), none before its own, and partials (t, 8, 8)."""
    one, times_ns = np.zeros(len(time_ns), np.int64), np.rint(time_ns).astype(np.int64)
    states, partials = dynamics.transitions(before.state, before.coefficients, before.epoch_ns, one, times_ns)
    whole = np.zeros((len(time_ns), 8, 8))
    whole[:, :6], whole[:, 6, 6], whole[:, 7, 7] = partials, 1.0, 1.0
    return states, whole


def _mixed(weight: FloatArray, mean: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d) of a mixture of (f,) normal distributions."""
    middle = weight @ mean
    off = mean - middle
    return middle, np.einsum("f,fij->ij", weight, covariance + off[:, :, None] * off[:, None, :])
