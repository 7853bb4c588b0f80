"""Whose clock is off: one offset per source, estimated from everything it and the others saw.

A clock that runs ahead stamps readings late in their object's motion: residuals that go with the rate at which each
reading changes, over all objects alike. The objects' own states are unknowns, too, and eliminated; sources that are
known to be right (a link with a disciplined clock) anchor the rest, as does the catalogue by its sheer number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from sda_platform.orbits.elements import FloatArray, IntArray
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.sensing.linearisation import normal_equations, whitened, whitened_rates
from sda_platform.orbits.sensing.observations import ObservationArrays, TextArray
from sda_platform.orbits.sensing.sensors import Sensor, sensor_registry
from sda_platform.orbits.tracking.estimation import Problem, pose

_ROUNDS = 4


@dataclasses.dataclass(frozen=True, eq=False)
class ClockOffsets:
    """Clock less true time of ``s`` sources, each array (s,), by name."""

    source_id: TextArray
    offset_s: FloatArray
    sigma_s: FloatArray
    readings: IntArray

    def is_off(self, sigmas: float = 5.0) -> npt.NDArray[np.bool_]:
        """(s,) whether noise alone hardly explains the offset."""
        return np.asarray(np.abs(self.offset_s) > sigmas * self.sigma_s)


def estimate_clock_offsets(
    observations: ObservationArrays,
    group: npt.ArrayLike,
    propagator: Propagator,
    index: npt.ArrayLike,
    mid_time_ns: npt.ArrayLike,
    sensors: Mapping[str, Sensor] | None = None,
    *,
    references: Collection[str] = (),
    doubt_s: float = 1.0,
) -> ClockOffsets:
    """Offsets of all sources at once, by weighted least squares over windows of many objects.

    Args:
        observations, group, propagator, index, mid_time_ns, sensors: as of ``estimation.fit_windows``; leave out what
            its fit rejected.
        references: sources whose clocks are as good as they say.
        doubt_s: 1 sigma by which any other clock may be off, whatever it says.

    Source: elimination of the windows' states (Schur complement): Bierman, Factorization Methods (1977), chapter VI.
    """
    windows: IntArray = np.asarray(group, dtype=np.int64)
    problem, order = pose(
        observations,
        windows,
        propagator,
        np.asarray(index, dtype=np.int64),
        np.asarray(mid_time_ns, dtype=np.int64),
        sensor_registry() if sensors is None else sensors,
    )
    names, source = np.unique(observations.source_id[order], return_inverse=True)
    exact = problem.measurements.time_sigma_s.copy()
    trusted = np.isin(names, list(references))
    claimed = np.full(len(names), np.inf)
    np.minimum.at(claimed, source, exact)
    sigma_s = np.where(trusted, np.maximum(claimed, 1e-9), doubt_s)
    stamped = dataclasses.replace(problem.measurements, time_sigma_s=np.zeros(len(order)))
    problem = dataclasses.replace(problem, measurements=stamped)
    offset_s, covariance = _solve(problem, source, 1.0 / sigma_s**2)
    return ClockOffsets(
        source_id=names,
        offset_s=offset_s,
        sigma_s=np.sqrt(np.diag(covariance)),
        readings=np.bincount(source, minlength=len(names)),
    )


def corrected(observations: ObservationArrays, offsets: ClockOffsets) -> ObservationArrays:
    """The observations with the offsets taken out of their times; sources without one stay as they are."""
    if not len(offsets.source_id):
        return observations
    place = np.minimum(np.searchsorted(offsets.source_id, observations.source_id), len(offsets.source_id) - 1)
    known = offsets.source_id[place] == observations.source_id
    shift_ns = np.where(known, np.round(offsets.offset_s[place] * 1e9), 0).astype(np.int64)
    return dataclasses.replace(observations, sensor_time_ns=observations.sensor_time_ns - shift_ns)


def _solve(problem: Problem, source: IntArray, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Offsets (s,) and their covariance (s, s), by Gauss-Newton in offsets and states together."""
    count, clocks = len(problem.r_mid), len(prior)
    rows = np.arange(len(problem.group))
    readings = problem.measurements.readings
    rates = whitened_rates(readings, rows, problem.r_obs, problem.v_obs)
    states, offset_s = np.zeros((count, 6)), np.zeros(clocks)
    everyone = np.ones(len(rows), dtype=bool)
    # Windows and sources meet in few pairs: each is summed once, and coupled to the others of its window.
    pairs, pair = np.unique(np.stack([problem.group, source]), axis=1, return_inverse=True)
    for _ in range(_ROUNDS):
        design, misfit = whitened(readings, rows, problem.r_obs, problem.v_obs, problem.reach, states, problem.group)
        misfit = misfit + rates * offset_s[source][:, None]
        normal, gradient, _ = normal_equations(design, misfit, problem.group, everyone, count)
        normal += np.eye(6)
        gradient -= states
        cross = np.zeros((pairs.shape[1], 6))
        np.add.at(cross, pair, -np.einsum("kij,ki->kj", design, rates))
        inverse = np.linalg.inv(normal)
        information = np.diag(prior + np.bincount(source, np.einsum("ki,ki->k", rates, rates), minlength=clocks))
        right = -np.bincount(source, np.einsum("ki,ki->k", rates, misfit), minlength=clocks) - prior * offset_s
        coupling = np.zeros((clocks, count, 6))
        coupling[pairs[1], pairs[0]] = cross
        reached = np.einsum("sgi,gij->sgj", coupling, inverse)
        information = information - np.einsum("sgj,tgj->st", reached, coupling)
        right = right - np.einsum("sgj,gj->s", reached, gradient)
        covariance = np.linalg.inv(information)
        step_s = covariance @ right
        states = states + np.einsum("gij,gj->gi", inverse, gradient - np.einsum("sgj,s->gj", coupling, step_s))
        offset_s = offset_s + step_s
    return offset_s, covariance
