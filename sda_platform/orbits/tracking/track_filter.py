"""Track filter: one orbit per object, updated by each window fit with that window's observations alone. Where an
earlier call kept an orbit (`kept_orbits`), the filter of a track without manoeuvre continues from it.

State, drag area and reflective area are estimated together, propagated numerically between windows.

A fit inconsistent with the filtered covariance is set aside. When the next one is inconsistent too, a manoeuvre is
detected: the velocity covariance is widened and filtering continues. Errors of the model add up in windows of the
whole state, so only windows of a part of it confirm by a weaker contradiction. A window of directions from several
observers needs no next one if both halves of the observers contradict the track and agree with each other. The state
after it then comes from a fit of one impulse to the windows around it (`impulse_fit`), unless no impulse explains them.

One path from a wide prior may explain all windows of such a track: the object was off the path of its element set at
its first window. So it is where the first window contradicts the set by far. A manoeuvre since the set's epoch is
suspected then, at an unknown time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import BoolArray, FloatArray, IntArray
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.dynamics.numerical import CONSTANT_DYNAMICS, Dynamics, rotated
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits, first_coefficients
from sda_platform.orbits.earth_orientation import gcrf_of_teme, to_gcrf
from sda_platform.orbits.element_errors import tracking_prior_rtn
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.tracking.filtered_states import FilteredStates
from sda_platform.orbits.tracking.impulse_fit import Impulse, search_impulse
from sda_platform.orbits.tracking.kept_orbits import KEPT_BEFORE_NS, KeptOrbits, basis_of
from sda_platform.orbits.tracking.manoeuvre_evidence import by_both_halves, contradicts, leaves_set, manoeuvre_noise
from sda_platform.orbits.tracking.window_information import (
    Evidence,
    WindowFits,
    WindowHalves,
    innovation_of,
    updated_by,
)

# Windows before the first contradiction may be after the manoeuvre: a small one shows after hours in high orbits. It is
# searched so far back, in ever longer spans, until it is inside one. The filter goes on from so long after it.
_SEARCHED_NS, _FITTED_NS = tuple(minutes * 60 * 10**9 for minutes in (3, 60, 240, 720)), 600_000_000_000


def filter_tracks(
    fits: WindowFits,
    propagator: Propagator,
    index: npt.ArrayLike,
    dynamics: Dynamics = CONSTANT_DYNAMICS,
    kept: KeptOrbits | None = None,
    halves: WindowHalves | None = None,
) -> FilteredStates:
    """Filter every object's window fits.

    Args:
        fits: at least one of each object.
        propagator: the current catalogue: the prior of each object's first window.
        index: (g,) position of each object in it.
        dynamics: the numerical model between windows.
        kept: what an earlier call kept of these objects; nothing of those with another window until then.
        halves: the fits of windows by halves of their observers, where there are several.

    Objects that SGP4 rejects at their first window, or that meet the ground, have NaN states.

    Source: Bar-Shalom, Li & Kirubarajan, Estimation with Applications to Tracking and Navigation (2001), sections 5.2
    (normalised innovation), 11.3 (manoeuvre detection by it), 7.2 (information form).
    """
    index = np.asarray(index, dtype=np.int64)
    first = np.flatnonzero(np.diff(fits.group, prepend=-1))
    end = np.append(first[1:], len(fits.group))
    filter_ = _Filter.at_first(fits, propagator, index, first, dynamics)
    begin = first if kept is None else filter_.resumed(kept, first, end, fits.epoch_ns)
    used = np.flatnonzero(np.arange(len(fits.group)) >= begin[fits.group])
    evidence = Evidence.of(fits, used)
    if halves is not None:
        evidence = evidence.with_halves(halves, fits, used)
    filter_.follow(begin, end, evidence)
    is_manoeuvred = filter_.manoeuvre_row >= 0
    if kept is not None and (is_manoeuvred & (begin > first)).any():
        return filter_tracks(fits, propagator, index, dynamics, kept.without(is_manoeuvred), halves)
    found = filter_.report(evidence)
    rows = np.flatnonzero(is_manoeuvred)
    if not len(rows):
        return found
    path = _Filter.at_first(fits, propagator, index[rows], first[rows], dynamics, is_off_set=True)
    path.follow(first[rows], end[rows], evidence)
    # One that the filter has set aside as well is a stray window.
    more = np.bincount(fits.group[path.set_aside & ~filter_.set_aside], minlength=len(index))
    is_explained = (path.manoeuvre_row < 0) & (more[rows] == 0)
    found = found.with_all(rows[is_explained], is_explained, path.report(evidence))
    return _with_impulses(found, filter_, rows[~is_explained], fits, propagator, index, evidence)


def _with_impulses(
    found: FilteredStates,
    filter_: _Filter,
    manoeuvred: IntArray,
    fits: WindowFits,
    propagator: Propagator,
    index: IntArray,
    evidence: Evidence,
) -> FilteredStates:
    """``found``, where the objects ``manoeuvred`` follow from fits of an impulse to their windows around it."""
    if not len(manoeuvred):
        return found
    dynamics, epoch_ns = filter_.dynamics, evidence.epoch_ns
    begin, end = (np.searchsorted(fits.group, manoeuvred, side=side) for side in ("left", "right"))
    contradicted_ns = epoch_ns[filter_.manoeuvre_row[manoeuvred]]

    def first_after(offset_ns: int) -> IntArray:
        found = [
            start + np.searchsorted(epoch_ns[start:stop], at_ns + offset_ns, side="right")
            for start, stop, at_ns in zip(begin, end, contradicted_ns, strict=True)
        ]
        return np.array(found, np.int64)

    fitted, followed = first_after(_FITTED_NS), begin
    before, spans = _Filter.at_first(fits, propagator, index[manoeuvred], begin, dynamics), []
    for span_ns in reversed(_SEARCHED_NS):
        cut = first_after(-span_ns)
        before.follow(followed, cut, evidence)
        spans.append((before.orbits.copied(), cut))
        followed = cut
    impulses: list[Impulse | None] = []
    for number, at_ns in enumerate(contradicted_ns.tolist()):
        rows = np.arange(begin[number], fitted[number])
        rows, one = rows[~filter_.set_aside[rows]], np.array([number])
        since = [(orbits.take(one), rows[rows >= cut[number]]) for orbits, cut in reversed(spans)]
        impulses.append(search_impulse(since, evidence, at_ns, dynamics))
    known = np.array([impulse is not None for impulse in impulses])
    if not known.any():
        return found
    newest_ns = epoch_ns[fitted - 1]  # the newest window may be set aside
    orbits = [
        impulse.orbit.at(dynamics, newest_ns[number : number + 1]) for number, impulse in enumerate(impulses) if impulse
    ]
    after = before.restarted(np.flatnonzero(known), orbits)
    after.follow(fitted[known], end[known], evidence)
    return found.with_orbits(
        manoeuvred[known],
        after.report(evidence),
        np.array([impulse.speed_km_s for impulse in impulses if impulse]),
        np.array([impulse.sigma_km_s for impulse in impulses if impulse]),
    )


@dataclasses.dataclass(eq=False)
class _Filter:
    """Filter state of all objects between two windows, in GCRF."""

    dynamics: Dynamics
    orbits: UncertainOrbits
    innovation: FloatArray
    innovation_size: IntArray
    inconsistent_row: IntArray
    """(g,) the newest window if it contradicted the orbit and none before it did, else -1."""
    manoeuvre_row: IntArray
    set_ns: IntArray
    """(g,) the epoch of the element set."""
    is_off_set: BoolArray
    """(g,) objects that have left the path of their element set before their first window."""
    unexplained: IntArray
    set_aside: BoolArray
    """(w,) the windows that no update has used."""
    ballistic: UncertainOrbits
    """The orbits without the detected manoeuvre, at the window at which it was detected."""
    kept: KeptOrbits
    """The orbits after the newest windows that are old enough, where no window contradicts them."""

    @classmethod
    def at_first(
        cls,
        fits: WindowFits,
        propagator: Propagator,
        index: IntArray,
        first: IntArray,
        dynamics: Dynamics,
        *,
        is_off_set: bool = False,
    ) -> _Filter:
        count, epoch_ns = len(first), fits.epoch_ns[first]
        error, r, v = propagator.at(index, epoch_ns)
        in_rtn = tracking_prior_rtn(propagator, index, epoch_ns, r, v)
        coefficients, of_coefficients = first_coefficients(propagator.elements.bstar_per_earth_radius[index])
        covariance = np.zeros((count, 8, 8))
        covariance[:, :6, :6] = rotated(to_gcrf("TEME", epoch_ns), rtn_to_teme(in_rtn, r, v))
        covariance[:, 6:, 6:] = of_coefficients
        covariance += manoeuvre_noise(np.zeros(1)) if is_off_set else 0.0
        state = gcrf_of_teme(np.where((error == 0)[:, None], np.hstack([r, v]), np.nan), epoch_ns)
        orbits = UncertainOrbits(epoch_ns, state, coefficients, covariance)
        return cls(
            dynamics=dynamics,
            orbits=orbits,
            innovation=np.full(count, np.nan),
            innovation_size=np.zeros(count, dtype=np.int64),
            inconsistent_row=np.full(count, -1),
            manoeuvre_row=np.full(count, -1),
            set_ns=propagator.elements.epoch_time_ns[index],
            is_off_set=is_off_set & (propagator.elements.epoch_time_ns[index] < epoch_ns),
            unexplained=np.zeros(count, dtype=np.int64),
            set_aside=np.zeros(len(fits.group), dtype=np.bool_),
            ballistic=orbits.copied(),
            kept=KeptOrbits.none(basis_of(propagator, index, epoch_ns, dynamics)),
        )

    def resumed(self, kept: KeptOrbits, first: IntArray, end: IntArray, epoch_ns: IntArray) -> IntArray:
        """Continue from the orbits of ``kept`` that hold; the window (g,) with which each object continues."""
        begin = kept.next_windows(self.kept.basis, first, end, epoch_ns)
        rows = np.flatnonzero(begin > first)
        orbits, unexplained = kept.orbits.take(rows), kept.unexplained[rows]
        self.orbits.put(rows, orbits)
        self.unexplained[rows] = unexplained
        self.kept.put(rows, orbits, unexplained)
        return begin

    def follow(self, begin: IntArray, end: IntArray, evidence: Evidence) -> None:
        """Update each object with its windows from ``begin`` to before ``end``."""
        count = end - begin
        oldest_ns = evidence.epoch_ns[end - 1] - KEPT_BEFORE_NS
        for step in range(int(count.max(initial=0))):
            live = np.flatnonzero(count > step)
            rows = begin[live] + step
            self.update(live, rows, evidence)
            old = live[(evidence.epoch_ns[rows] <= oldest_ns[live]) & (self.inconsistent_row[live] < 0)]
            self.kept.put(old, self.orbits.take(old), self.unexplained[old])

    def restarted(self, chosen: IntArray, orbits: Sequence[UncertainOrbits]) -> _Filter:
        """A filter of the objects ``chosen`` that goes on from ``orbits``, one (1) of each."""
        joined = UncertainOrbits.stack(orbits)
        return dataclasses.replace(
            self,
            orbits=joined,
            innovation=self.innovation[chosen],
            innovation_size=self.innovation_size[chosen],
            inconsistent_row=np.full(len(chosen), -1),
            manoeuvre_row=np.full(len(chosen), -1),
            set_ns=self.set_ns[chosen],
            is_off_set=self.is_off_set[chosen],
            unexplained=np.zeros(len(chosen), dtype=np.int64),
            ballistic=joined.copied(),
            kept=KeptOrbits.none(self.kept.basis[chosen]),
        )

    def update(self, live: IntArray, rows: IntArray, evidence: Evidence) -> None:
        """Update with the windows ``rows``, one of each object in ``live``."""
        is_first = self.orbits.epoch_ns[live] == evidence.epoch_ns[rows]
        predicted = self.orbits.take(live).at(self.dynamics, evidence.epoch_ns[rows])
        information, vector = evidence.about(rows, predicted)
        innovation, size = innovation_of(predicted.covariance, information, vector)
        is_doubted = self.inconsistent_row[live] >= 0
        is_contradicted = contradicts(innovation, size, may_confirm=is_doubted & (size < 6))
        is_inconsistent = is_contradicted & ~is_first
        is_manoeuvre = is_inconsistent & is_doubted
        first = np.flatnonzero(is_inconsistent & ~is_doubted & (size < 6))
        is_manoeuvre[first] = by_both_halves(rows[first], predicted.take(first), evidence)
        # A first window that contradicts the element set may follow a manoeuvre since the set.
        is_after, covariance = is_contradicted & is_first, predicted.covariance
        if is_after.any():
            is_later = self.set_ns[live] < evidence.epoch_ns[rows]
            self.is_off_set[live] |= is_after & is_later & leaves_set(innovation, size)
            covariance = np.where(is_after[:, None, None], covariance + manoeuvre_noise(np.zeros(1)), covariance)
        if is_manoeuvre.any():
            contradicted = np.where(is_doubted, self.inconsistent_row[live], rows)
            self.manoeuvre_row[live[is_manoeuvre]] = contradicted[is_manoeuvre]
            self.ballistic.put(live[is_manoeuvre], predicted.take(is_manoeuvre))
            lead_s = (evidence.epoch_ns[rows] - evidence.epoch_ns[contradicted]) / 1e9
            covariance = np.where(is_manoeuvre[:, None, None], covariance + manoeuvre_noise(lead_s), covariance)
        accepted = ~is_inconsistent | is_manoeuvre
        self.unexplained[live] += ~accepted
        self.set_aside[rows] = ~accepted
        self.set_aside[self.manoeuvre_row[live[is_manoeuvre]]] = False
        change, smaller = updated_by(covariance, information, vector)
        change = np.where(accepted[:, None], change, 0.0)
        updated = UncertainOrbits(
            predicted.epoch_ns,
            predicted.state + change[:, :6],
            predicted.coefficients + change[:, 6:],
            np.where(accepted[:, None, None], smaller, covariance),
        )
        self.orbits.put(live, updated)
        self.inconsistent_row[live] = np.where(is_inconsistent & ~is_manoeuvre, rows, -1)
        self.innovation[live] = np.where(is_first, np.nan, innovation)
        self.innovation_size[live] = size

    def report(self, evidence: Evidence) -> FilteredStates:
        manoeuvred = self.manoeuvre_row >= 0
        when = np.where(manoeuvred, evidence.epoch_ns[np.maximum(self.manoeuvre_row, 0)], self.set_ns * self.is_off_set)
        speed, sigma = np.full(len(when), np.nan), np.full(len(when), np.nan)
        rows = np.flatnonzero(manoeuvred)
        if len(rows):
            # Both paths are propagated back to the manoeuvre: their velocity difference there is the change of speed.
            after, before = (each.take(rows).at(self.dynamics, when[rows]) for each in (self.orbits, self.ballistic))
            speed[rows] = np.linalg.norm(after.state[:, 3:] - before.state[:, 3:], axis=1)
            spread = after.covariance[:, 3:6, 3:6] + before.covariance[:, 3:6, 3:6]
            sigma[rows] = np.sqrt(np.einsum("gii->g", spread))
        state, joint_covariance = self.orbits.in_teme()
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
            kept=self.kept.without(manoeuvred | self.is_off_set),
        )
