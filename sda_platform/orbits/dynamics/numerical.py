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

_SHARED_FROM_S = 7200.0
"""Flight of all orbits together from which threads share the work: some milliseconds with derivatives."""


def integrate(
    state: npt.ArrayLike, epoch_ns: int, time_ns: IntArray, forces: Forces, weather: SpaceWeather = CONSTANT_WEATHER
) -> FloatArray:
    """States (m, 6), GCRF, km and km/s, at times (m,) in any order, from one (6,) at ``epoch_ns``.

    Error of the integration in a low orbit: a millimetre in a day. At the edges of the shadow, reflective area adds
    half a metre for each 0.01 m2/kg. NaN from where the satellite meets the ground.
    """
    times: IntArray = np.asarray(time_ns, dtype=np.int64)
    around = _around(np.append(times, epoch_ns), weather)
    parameters = np.array(
        [[forces.drag_area_m2_kg, forces.reflective_area_m2_kg, *forces.own_km_s2, *forces.own_rate_km_s3]]
    )
    start, epoch = np.asarray(state, dtype=np.float64)[None], np.array([epoch_ns])
    found = np.empty((len(times), 6))
    for side in (times >= epoch_ns, times < epoch_ns):
        if side.any():
            unique, back = np.unique(times[side], return_inverse=True)
            order = np.argsort(np.abs(unique - epoch_ns), kind="stable")
            out = np.empty((len(unique), 6))
            elapsed_s, ends = _elapsed_s(epoch, unique[order]), np.array([len(unique)])
            trajectories(start, *around.place(epoch), elapsed_s, ends, parameters, model(around, forces), False, out)
            found[side] = out[np.argsort(order)][back]
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
        """States (n, k, 6), GCRF, km and km/s, at ``time_ns`` (n, k), in any order, from ``epoch_ns`` (n,).

        Args:
            state_gcrf: (n, 6) at the epochs.
            coefficients: (n, 2) drag area and reflective area over mass, m2/kg.
            epoch_ns: (n,)
            time_ns: (n, k)
        """
        count, times = time_ns.shape
        of = np.repeat(np.arange(count), times)
        return self._propagated(state_gcrf, coefficients, epoch_ns, of, time_ns.reshape(-1), partials=False).reshape(
            count, times, 6
        )

    def transitions(
        self, state_gcrf: FloatArray, coefficients: FloatArray, epoch_ns: IntArray, of: IntArray, time_ns: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """States (m, 6) of orbits ``of`` (m,) at ``time_ns`` (m,), and their derivatives (m, 6, 8) by state and
        coefficients, all in GCRF.

        Each orbit is integrated once in each direction, however many times are asked of it, in steps that do not depend
        on them. Other arguments as of `states`.
        """
        found = self._propagated(state_gcrf, coefficients, epoch_ns, of, time_ns, partials=True)
        return found[:, :6], found[:, 6:].reshape(-1, 6, 8)

    def _propagated(
        self,
        state: FloatArray,
        coefficients: FloatArray,
        epoch_ns: IntArray,
        of: IntArray,
        time_ns: IntArray,
        *,
        partials: bool,
    ) -> FloatArray:
        found = np.empty((len(time_ns), 54 if partials else 6))
        if not len(time_ns):
            return found
        around = _around(np.append(epoch_ns[of], time_ns), self.weather)
        elapsed_ns = time_ns - epoch_ns[of]
        order = np.lexsort((np.abs(elapsed_ns), elapsed_ns < 0, of))
        of, elapsed_ns = of[order], elapsed_ns[order]
        is_last = np.append((np.diff(of) != 0) | (np.diff(elapsed_ns < 0)), True)
        last = np.flatnonzero(is_last)
        rows, ends, times_s = of[last], last + 1, _elapsed_s(epoch_ns[of], time_ns[order])
        parameters = np.zeros((len(rows), 8))
        parameters[:, :2] = coefficients[rows]
        shared, starts, (row, after_s) = model(around, self.forces), state[rows], around.place(epoch_ns[rows])
        out = np.empty_like(found)

        def carry_out(part: slice) -> None:
            begin = ends[part.start - 1] if part.start else 0
            whole = slice(begin, ends[part][-1])
            trajectories(
                starts[part], row[part], after_s[part], times_s[whole], ends[part] - begin, parameters[part], shared,
                partials, out[whole],
            )  # fmt: skip

        flights_s = np.abs(elapsed_ns[last]) / 1e9
        in_threads(carry_out, len(rows), self.threads if flights_s.sum() >= _SHARED_FROM_S else 1)
        found[order] = out
        return found


CONSTANT_DYNAMICS = Dynamics()
"""The model with the default space weather."""


def rotated(turn: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return covariances (n, 6, 6) in the frame that ``turn`` (n, 3, 3) leads to."""
    both = np.zeros((len(turn), 6, 6))
    both[:, :3, :3] = both[:, 3:, 3:] = turn
    return np.asarray(both @ covariance @ both.swapaxes(1, 2))


def _around(time_ns: IntArray, weather: SpaceWeather) -> Surroundings:
    return surroundings(int(time_ns.min()), int(time_ns.max()), weather)


def _elapsed_s(epoch_ns: IntArray, time_ns: IntArray) -> FloatArray:
    return np.asarray((utc_to_tai_ns(time_ns) - utc_to_tai_ns(epoch_ns)) / 1e9)


def in_threads(carry_out: Callable[[slice], None], count: int, threads: int) -> None:
    """Run on parts of the rows; each row's result depends on that row alone."""
    size = max(1, -(-count // (threads * 8)) if threads > 1 else count)
    parts = [slice(low, min(low + size, count)) for low in range(0, count, size)]
    if len(parts) < 2:
        for part in parts:
            carry_out(part)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(carry_out, parts))
