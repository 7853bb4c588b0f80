"""Where a primary would be: as it is known, after burns, or on a planned ephemeris."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.conjunction.known_trajectory import SearchSets, State, StatesNear, Unchanged
from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.dynamics.orbit_uncertainty import first_coefficients
from sda_platform.orbits.earth_orientation import gcrf_of_teme, teme_of_gcrf
from sda_platform.orbits.element_errors import degrees_of_freedom, element_covariance_rtn, element_tails
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.orbits.frames import rtn_basis
from sda_platform.orbits.long_tails import GAUSSIAN, Tails
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.path_sets import sets_through
from sda_platform.orbits.propagation import Propagator
from sda_platform.orbits.two_body import two_body_stm
from sda_platform.units import DAY_NS, SECOND_NS

_SAMPLE_NS = 120 * SECOND_NS


class PlanError(ValueError):
    """A plan that cannot be screened; the text says why."""


@dataclass(frozen=True)
class Burn:
    """A change of velocity (3,) m/s in radial, transverse and normal axes, at once at ``time_ns``."""

    time_ns: int
    dv_rtn_m_s: tuple[float, float, float]


@dataclass(frozen=True)
class BurnErrors:
    """How well burns are carried out, 1 sigma: of the size, as a part of it, and of the direction, rad."""

    size: float = 0.03
    direction_rad: float = float(np.radians(1.0))


Displacement = Callable[[IntArray], FloatArray]
"""How far (n, 6), TEME, burns have moved the path at times (n,): zero before the first one."""


@dataclass(frozen=True, eq=False)
class Burned:
    """The known path, displaced by burns; their errors widen its covariance."""

    before: Unchanged
    burns: tuple[Burn, ...]
    displacement: Displacement
    errors: BurnErrors = field(default_factory=BurnErrors)

    def near(self, time_ns: IntArray) -> StatesNear:
        return _Moved(self, self.before.near(time_ns))

    def search_sets(self, start_ns: int, end_ns: int) -> SearchSets:
        time_ns = np.append(np.arange(start_ns, end_ns, _SAMPLE_NS, dtype=np.int64), end_ns)
        states = self.before.sampled(time_ns) + self.displacement(time_ns)
        nothing = np.empty(0, np.int64), np.empty((0, 6, 6))
        found = Stated(Ephemeris(time_ns, states, *nothing, start_ns, end_ns), self.before).search_sets(
            start_ns, end_ns
        )
        return SearchSets(
            found.elements,
            found.from_ns,
            found.until_ns,
            found.margin_km + self.before.search_sets(start_ns, end_ns).margin_km,
        )

    def span(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        return start_ns, end_ns


class _Displaced(ABC):
    """States that burns have moved; errors of burns are Gaussian, whatever the others are."""

    side: StatesNear

    def at(self, time_ns: IntArray) -> State:
        """Compute states as `StatesNear.at`."""
        r, v, covariance = self.side.at(time_ns)
        moved = self.moved(time_ns)
        return r + moved[:, :3], v + moved[:, 3:], covariance + self.of_burns(time_ns)

    def tails(self, time_ns: IntArray, r_km: FloatArray, v_km_s: FloatArray) -> Tails:
        """Return `StatesNear.tails`."""
        moved = self.moved(time_ns)
        unmoved = self.side.tails(time_ns, r_km - moved[:, :3], v_km_s - moved[:, 3:])
        return unmoved.with_steady(self.of_burns(time_ns))

    @abstractmethod
    def moved(self, time_ns: IntArray) -> FloatArray:
        """Return how far (n, 6) the burns have moved the states at ``time_ns`` (n,)."""

    @abstractmethod
    def of_burns(self, time_ns: IntArray) -> FloatArray:
        """Return covariances (n, 6, 6) at ``time_ns`` (n,) from the errors of the burns."""


@dataclass(frozen=True, eq=False)
class _Moved(_Displaced):
    path: Burned
    side: StatesNear

    def moved(self, time_ns: IntArray) -> FloatArray:
        return self.path.displacement(time_ns)

    def of_burns(self, time_ns: IntArray) -> FloatArray:
        path, none = self.path, np.zeros((len(time_ns), 6, 6))
        return sum((_of_errors(path.before, burn, path.errors, time_ns) for burn in path.burns), start=none)


def _of_errors(before: Unchanged, burn: Burn, errors: BurnErrors, time_ns: IntArray) -> FloatArray:
    """Return covariances (n, 6, 6) at ``time_ns`` (n,) from the errors of a burn; zero before it."""
    r, v = _state(before, burn.time_ns)
    dv = np.einsum("nji,j->ni", rtn_basis(r, v), np.asarray(burn.dv_rtn_m_s) / 1000)[0]
    along, across = errors.size**2, errors.direction_rad**2
    of_speed = across * (dv @ dv) * np.eye(3) + (along - across) * np.outer(dv, dv)
    elapsed_s = np.maximum((time_ns - burn.time_ns) / 1e9, 0.0)
    reach = two_body_stm(np.repeat(r, len(time_ns), 0), np.repeat(v, len(time_ns), 0), elapsed_s)[:, :, 3:]
    found = np.einsum("nij,jk,nlk->nil", reach, of_speed, reach)
    return np.where((time_ns > burn.time_ns)[:, None, None], found, 0.0)


@dataclass(frozen=True, eq=False)
class Stated:
    """The path of a planned ephemeris. Without covariances the model of the published set's errors counts."""

    ephemeris: Ephemeris
    before: Unchanged

    def near(self, _time_ns: IntArray) -> StatesNear:
        return self

    def at(self, time_ns: IntArray) -> State:
        """Compute states as `StatesNear.at`."""
        state, covariance = self.ephemeris.at(time_ns)
        r, v, catalogue = state[:, :3], state[:, 3:], self.before.known.catalogue
        rows = catalogue.rows_in_force(np.full(len(time_ns), self.before.norad_id), time_ns)
        modelled = rtn_to_teme(element_covariance_rtn(catalogue.propagator, rows, time_ns, r, v), r, v)
        return r, v, np.where(np.isfinite(covariance), covariance, modelled)

    def tails(self, time_ns: IntArray, r_km: FloatArray, v_km_s: FloatArray) -> Tails:
        """Compute `StatesNear.tails`: errors by a stated covariance are Gaussian."""
        catalogue = self.before.known.catalogue
        rows = catalogue.rows_in_force(np.full(len(time_ns), self.before.norad_id), time_ns)
        is_stated = np.isfinite(self.ephemeris.at(time_ns)[1]).all(axis=(1, 2))
        degrees = np.where(is_stated, GAUSSIAN, degrees_of_freedom(catalogue.propagator, rows))
        return element_tails(degrees, r_km, v_km_s)

    def search_sets(self, start_ns: int, end_ns: int) -> SearchSets:
        found = sets_through(self.ephemeris, *self.span(start_ns, end_ns))
        if found is None:
            raise PlanError("SGP4 cannot follow a state of the plan")
        begins, ends = np.append(ALWAYS_NS, found.from_ns[1:]), np.append(found.until_ns[:-1], FOREVER_NS)
        return SearchSets(found.elements.of_object(self.before.norad_id), begins, ends, found.margin_km)

    def span(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        begin_ns, until_ns = max(start_ns, self.ephemeris.usable_from_ns), min(end_ns, self.ephemeris.usable_until_ns)
        if until_ns <= begin_ns:
            raise PlanError("the ephemeris covers nothing of the span")
        return begin_ns, until_ns


def burned(before: Unchanged, burns: Sequence[Burn], errors: BurnErrors) -> Burned:
    """Return the path after ``burns``, displaced by numerical integration with and without them."""
    ordered = tuple(sorted(burns, key=lambda each: each.time_ns))
    return Burned(before, ordered, _Integrated(before, ordered), errors)


@dataclass(frozen=True, eq=False)
class SizedBurns(_Displaced):
    """States after burns of several sizes at one time, by SGP4 with and without them: fast, for a search among many.

    ``side`` has n states for each size; ``size_m_s`` (k,). A size that SGP4 cannot follow has NaN.
    """

    before: Unchanged
    time_ns: int
    direction_rtn: tuple[float, float, float]
    size_m_s: FloatArray
    side: StatesNear
    errors: BurnErrors

    def moved(self, time_ns: IntArray) -> FloatArray:
        """Return how far (k n, 6) the burns move states: all of the first size, then of the next."""
        size = self._size(time_ns)
        without, with_burn = (np.hstack(self._sets.at(row, time_ns)[1:]) for row in (0 * size, size + 1))
        return np.where((time_ns > self.time_ns)[:, None], with_burn - without, 0.0)

    def of_burns(self, time_ns: IntArray) -> FloatArray:
        """Return covariances (k n, 6, 6) of the burns' errors."""
        unit = _of_errors(self.before, Burn(self.time_ns, self.direction_rtn), self.errors, time_ns)
        return unit * (self.size_m_s[self._size(time_ns)] ** 2)[:, None, None]

    def _size(self, time_ns: IntArray) -> IntArray:
        return np.repeat(np.arange(len(self.size_m_s)), len(time_ns) // len(self.size_m_s))

    @cached_property
    def _sets(self) -> Propagator:
        """Without a burn, then after one of each size."""
        r, v = _state(self.before, self.time_ns)
        unit = np.einsum("nji,j->ni", rtn_basis(r, v), np.asarray(self.direction_rtn) / 1000)
        sizes = np.concatenate([[0.0], self.size_m_s])[:, None]
        return Propagator(
            mean_elements(np.repeat(r, len(sizes), 0), v + sizes * unit, np.full(len(sizes), self.time_ns))
        )


@dataclass(frozen=True, eq=False)
class _Integrated:
    """The displacement by burns (at least one), numerically integrated in the dynamics of tracks.

    It is integrated once, every two minutes, and interpolated by position and velocity: to 1 cm where it is 10 km.
    """

    before: Unchanged
    burns: tuple[Burn, ...]

    def __call__(self, time_ns: IntArray) -> FloatArray:
        """As of `Displacement`."""
        moved = np.zeros((len(time_ns), 6))
        last_ns = int(time_ns.max(initial=self.burns[0].time_ns))
        for begin_ns, end_ns, position_km in _splines(self, -(-(last_ns - self.burns[0].time_ns) // DAY_NS)):
            inside = (time_ns > begin_ns) & (time_ns <= end_ns)
            since_s = (time_ns[inside] - begin_ns) / SECOND_NS
            moved[inside] = np.hstack([position_km(since_s), position_km(since_s, 1)])
        return moved

    def splines(self, days: int) -> list[tuple[int, int, CubicHermiteSpline]]:
        """Return the displacement (km by seconds) after each burn: its begin, its end, and a curve from the begin."""
        found = []
        begin_ns = self.burns[0].time_ns
        first = state = np.hstack(_state(self.before, begin_ns))
        ends = [*(each.time_ns for each in self.burns[1:]), begin_ns + max(days, 1) * DAY_NS]
        for burn, end_ns in zip(self.burns, ends, strict=True):
            if end_ns <= burn.time_ns:  # two burns at once, or one beyond the times that are asked for
                end_ns = burn.time_ns + 1
            r, v = state[:, :3], state[:, 3:]
            v = v + np.einsum("nji,j->ni", rtn_basis(r, v), np.asarray(burn.dv_rtn_m_s) / 1000)
            time_ns = np.append(np.arange(burn.time_ns, end_ns, _SAMPLE_NS, dtype=np.int64), end_ns)
            path = self._free(np.hstack([r, v]), burn.time_ns, time_ns)
            moved, state = path - self._free(first, begin_ns, time_ns), path[-1:]
            since_s = (time_ns - burn.time_ns) / SECOND_NS
            found.append((burn.time_ns, end_ns, CubicHermiteSpline(since_s, moved[:, :3], moved[:, 3:])))
        return found

    def _free(self, state_teme: FloatArray, begin_ns: int, time_ns: IntArray) -> FloatArray:
        """States (k, 6), TEME, at ``time_ns`` (k,), ascending, from one (1, 6)."""
        catalogue = self.before.known.catalogue
        row = catalogue.positions([self.before.norad_id])[:1]
        areas = first_coefficients(catalogue.propagator.elements.bstar_per_earth_radius[row])[0]
        at_ns = np.array([begin_ns])
        found = self.before.known.dynamics.states(gcrf_of_teme(state_teme, at_ns), areas, at_ns, time_ns[None])[0]
        return teme_of_gcrf(found, time_ns)


@lru_cache(maxsize=64)
def _splines(path: _Integrated, days: int) -> list[tuple[int, int, CubicHermiteSpline]]:
    return path.splines(days)


@lru_cache(maxsize=256)
def _state(before: Unchanged, time_ns: int) -> tuple[FloatArray, FloatArray]:
    at_ns = np.array([time_ns])
    r, v, _ = before.near(at_ns).at(at_ns)
    return r, v
