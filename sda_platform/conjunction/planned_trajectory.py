"""Where a primary would be: on its element set, after a burn, or on a planned ephemeris."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sda_platform.orbits.covariance import rtn_to_teme
from sda_platform.orbits.element_errors import element_covariance_rtn
from sda_platform.orbits.elements import ALWAYS_NS, FOREVER_NS, ElementSets, FloatArray, IntArray
from sda_platform.orbits.ephemerides import Ephemeris
from sda_platform.orbits.frames import rtn_basis
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.orbits.path_sets import sets_through
from sda_platform.orbits.propagation import Propagator


class PlanError(ValueError):
    """A plan that cannot be screened; the text says why."""


@dataclass(frozen=True)
class Burn:
    """A change of velocity (3,) m/s in radial, transverse and normal axes, at once at ``time_ns``."""

    time_ns: int
    dv_rtn_m_s: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class PlannedTrajectory:
    """A primary's path as element sets, each in force from ``from_ns`` to ``until_ns`` (n,), rows by time.

    The model of its covariance is that of the ``published`` set (1,) with its object's error scale. With an
    ``ephemeris`` the sets only serve the search; states, and the covariance if it has one, come from it.
    """

    elements: ElementSets
    from_ns: IntArray
    until_ns: IntArray
    published: Propagator
    ephemeris: Ephemeris | None = None
    margin_km: float = 0.0
    """How far beyond the threshold its approaches must be searched: the error of the sets that stand for it."""

    def at(self, time_ns: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Position (n, 3) km, velocity (n, 3) km/s and covariance (n, 6, 6) at ``time_ns`` (n,), TEME."""
        if self.ephemeris:
            state, covariance = self.ephemeris.at(time_ns)
            r, v = state[:, :3], state[:, 3:]
        else:
            row = np.searchsorted(self.until_ns, time_ns, side="right")
            _, r, v = Propagator(self.elements).at(row, time_ns)
            covariance = np.full((len(time_ns), 6, 6), np.nan)
        only = np.zeros(len(time_ns), np.int64)
        modelled = rtn_to_teme(element_covariance_rtn(self.published, only, time_ns, r, v), r, v)
        return r, v, np.where(np.isfinite(covariance), covariance, modelled)


def unchanged(published: Propagator) -> PlannedTrajectory:
    """The path by the published set (1,)."""
    always, forever = np.array([ALWAYS_NS]), np.array([FOREVER_NS])
    return PlannedTrajectory(published.elements, always, forever, published)


def burned(published: Propagator, burns: Sequence[Burn]) -> PlannedTrajectory:
    """The path by the published set (1,), changed by ``burns``.

    After a burn the path is that of SGP4 through the changed state, with the drag term of the set. The covariance is
    that of the set: the burn is taken as exact. Raises PlanError where SGP4 cannot follow.
    """
    elements = published.elements
    sets, begins = [elements], [ALWAYS_NS]
    for burn in sorted(burns, key=lambda each: each.time_ns):
        _, r, v = Propagator(sets[-1]).at([0], burn.time_ns)
        after = v + np.einsum("nji,j->ni", rtn_basis(r, v), np.asarray(burn.dv_rtn_m_s) / 1000)
        changed = mean_elements(r, after, burn.time_ns, elements.bstar_per_earth_radius)
        if not np.isfinite(changed.mean_motion_rev_per_day).all():
            raise PlanError(f"SGP4 cannot follow the orbit after a burn of {burn.dv_rtn_m_s} m/s")
        sets.append(_numbered(changed, int(elements.norad_id[0])))
        begins.append(burn.time_ns)
    until = np.array([*begins[1:], FOREVER_NS])
    return PlannedTrajectory(ElementSets.stack(sets), np.array(begins), until, published)


def planned(ephemeris: Ephemeris, published: Propagator) -> PlannedTrajectory:
    """The path by a planned ephemeris; sets through its states serve the search.

    ``published`` (1,) is the published set of the object.

    Raises PlanError where SGP4 cannot follow one of these states.
    """
    found = sets_through(ephemeris, ephemeris.usable_from_ns, ephemeris.usable_until_ns)
    if found is None:
        raise PlanError("SGP4 cannot follow a state of the ephemeris")
    begins, ends = np.append(ALWAYS_NS, found.from_ns[1:]), np.append(found.until_ns[:-1], FOREVER_NS)
    numbered = _numbered(found.elements, int(published.elements.norad_id[0]))
    return PlannedTrajectory(numbered, begins, ends, published, ephemeris, found.margin_km)


def _numbered(elements: ElementSets, norad_id: int) -> ElementSets:
    columns = {name: getattr(elements, name) for name in ElementSets.__dataclass_fields__}
    return ElementSets.from_columns({**columns, "norad_id": np.full(len(elements), norad_id)})
