"""Numerical propagation of many satellites in GCRF, by elapsed time (TAI), with the Earth's published orientation."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.formats.time_systems import utc_to_tai_ns
from sda_platform.orbits.dynamics.forces import Forces, model
from sda_platform.orbits.dynamics.integrator import trajectories
from sda_platform.orbits.dynamics.space_weather import CONSTANT_WEATHER, SpaceWeather
from sda_platform.orbits.dynamics.surroundings import Surroundings, surroundings

_LEAST_ROWS = 32


def integrate(
    state: npt.ArrayLike, epoch_ns: int, time_ns: IntArray, forces: Forces, weather: SpaceWeather = CONSTANT_WEATHER
) -> FloatArray:
    """States (m, 6), GCRF, km and km/s, at times (m,) in any order, from one (6,) at ``epoch_ns``.

    Error of the integration: a centimetre in a day. NaN from where the satellite meets the ground.
    """
    times: IntArray = np.asarray(time_ns, dtype=np.int64)
    around = _around(np.append(times, epoch_ns), weather)
    parameters = np.array(
        [[forces.drag_area_m2_kg, forces.reflective_area_m2_kg, *forces.own_km_s2, *forces.own_rate_km_s3]]
    )
    start, start_s = np.asarray(state, dtype=np.float64)[None], _seconds(around, np.array([epoch_ns]))
    found = np.empty((len(times), 6))
    for side in (times >= epoch_ns, times < epoch_ns):
        if side.any():
            unique, back = np.unique(times[side], return_inverse=True)
            order = np.argsort(np.abs(unique - epoch_ns), kind="stable")
            out = np.empty((1, len(unique), 6))
            elapsed_s = _seconds(around, unique[order])[None]
            trajectories(start, start_s, elapsed_s, parameters, model(around, forces), False, out)
            found[side] = out[0, np.argsort(order)][back]
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Dynamics:
    """The numerical model of all objects: full field, Moon, Sun, tide, sunlight, and drag in the given weather."""

    weather: SpaceWeather = CONSTANT_WEATHER
    forces: Forces = dataclasses.field(default_factory=Forces)
    threads: int = dataclasses.field(default_factory=lambda: os.cpu_count() or 1)

    def states(
        self, state_gcrf: FloatArray, coefficients: FloatArray, epoch_ns: IntArray, time_ns: IntArray
    ) -> FloatArray:
        """States (n, k, 6), GCRF, km and km/s, at ``time_ns`` (n, k), ascending or descending from ``epoch_ns`` (n,).

        Args:
            state_gcrf: (n, 6) at the epochs.
            coefficients: (n, 2) drag area and reflective area over mass, m2/kg.
            epoch_ns: (n,)
            time_ns: (n, k), all on one side of the row's epoch.
        """
        return self._propagated(state_gcrf, coefficients, epoch_ns, time_ns, partials=False)

    def transitions(
        self, state_gcrf: FloatArray, coefficients: FloatArray, epoch_ns: IntArray, time_ns: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """States (n, 6) at ``time_ns`` (n,), and their derivatives (n, 6, 8) by state and coefficients, all in GCRF.

        Arguments as of `states`.
        """
        found = self._propagated(state_gcrf, coefficients, epoch_ns, time_ns[:, None], partials=True)[:, 0]
        return found[:, :6], found[:, 6:].reshape(-1, 6, 8)

    def transitions_along(
        self, state_gcrf: FloatArray, coefficients: FloatArray, epoch_ns: IntArray, time_ns: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Propagate one orbit (1, 6) to many times (k,), ascending: states (k, 6) and derivatives (k, 6, 8)."""
        found = self._propagated(state_gcrf, coefficients, epoch_ns, time_ns[None], partials=True)[0]
        return found[:, :6], found[:, 6:].reshape(-1, 6, 8)

    def _propagated(
        self, state: FloatArray, coefficients: FloatArray, epoch_ns: IntArray, time_ns: IntArray, *, partials: bool
    ) -> FloatArray:
        count = len(state)
        out = np.empty((count, time_ns.shape[1], 54 if partials else 6))
        if not out.size:
            return out
        around = _around(np.append(epoch_ns, time_ns), self.weather)
        parameters = np.zeros((count, 8))
        parameters[:, :2] = coefficients
        shared, starts = model(around, self.forces), np.ascontiguousarray(state)
        start_s, times_s = _seconds(around, epoch_ns), _seconds(around, time_ns)

        def carry_out(rows: slice) -> None:
            trajectories(starts[rows], start_s[rows], times_s[rows], parameters[rows], shared, partials, out[rows])

        _in_threads(carry_out, count, self.threads)
        return out


CONSTANT_DYNAMICS = Dynamics()
"""The model with the default space weather."""


def rotated(turn: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return covariances (n, 6, 6) in the frame that ``turn`` (n, 3, 3) leads to."""
    both = np.zeros((len(turn), 6, 6))
    both[:, :3, :3] = both[:, 3:, 3:] = turn
    return np.asarray(both @ covariance @ both.swapaxes(1, 2))


def _around(time_ns: IntArray, weather: SpaceWeather) -> Surroundings:
    return surroundings(int(time_ns.min()), int(time_ns.max()), weather)


def _seconds(around: Surroundings, time_ns: IntArray) -> FloatArray:
    return np.asarray((utc_to_tai_ns(time_ns) - around.zero_tai_ns) / 1e9)


def _in_threads(carry_out: Callable[[slice], None], count: int, threads: int) -> None:
    """Run on parts of the rows; each row's result depends on that row alone."""
    if threads == 1 or count < 2 * _LEAST_ROWS:
        carry_out(slice(0, count))
        return
    size = max(_LEAST_ROWS, -(-count // (threads * 8)))
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(carry_out, [slice(low, low + size) for low in range(0, count, size)]))
