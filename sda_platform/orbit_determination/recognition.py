"""Recognises an unknown object on a later pass: the earlier set that a new orbit continues, and the orbit from both.

An orbit of one pass of 100 s is kilometres off after a revolution, outside the association gate but within its own
covariance. A new orbit continues it if the match is unique in both directions, and if both fit as one orbit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.formats.markings import UNMARKED, Marking
from sda_platform.fusion.tables import covariance_from_lower, lower_triangles
from sda_platform.orbit_determination.tracklets import Tracklet
from sda_platform.orbits.determination.initial_orbit import NoOrbit
from sda_platform.orbits.determination.linking import GATE
from sda_platform.orbits.determination.numerical_fit import NumericalFit, continued_orbit
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits, first_coefficients, orbits_of_teme
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.mean_elements import state_partials
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.units import HOUR_NS

REACH_NS = 3 * HOUR_NS
"""Largest age of an earlier set, event time: more than a revolution of a low orbit."""


@dataclass(frozen=True, eq=False)
class EarlierSet:
    """A row of `provisional_elements`: its orbit, and the observations that it was estimated from."""

    number: int
    epoch_ns: int
    orbit: UncertainOrbits
    """One row."""
    observation_ids: frozenset[str]
    marking: Marking = UNMARKED


def earlier_sets(known: pa.Table) -> dict[int, list[EarlierSet]]:
    """Return the rows of `provisional_elements` with a covariance, by number, in order of epoch."""
    sets: dict[int, list[EarlierSet]] = {}
    for row in known.filter(pc.is_valid(known["covariance"])).sort_by("epoch_time_ns").to_pylist():
        one = EarlierSet(
            number=row["norad_id"],
            epoch_ns=row["epoch_time_ns"],
            orbit=_of_elements(row) if row["orbit"] is None else _of_column(row),
            observation_ids=frozenset(row["observation_ids"]),
            marking=Marking.of(row),
        )
        sets.setdefault(one.number, []).append(one)
    return sets


def stored(orbit: UncertainOrbits) -> list[float]:
    """Encode one orbit for column `orbit`."""
    lower = lower_triangles(orbit.covariance)
    return [float(value) for value in np.hstack([orbit.state, orbit.coefficients, lower])[0]]


def _of_column(row: dict[str, Any]) -> UncertainOrbits:
    state, areas, lower = np.split(np.array([row["orbit"]]), [6, 8], axis=1)
    return UncertainOrbits(np.array([row["epoch_time_ns"]]), state, areas, covariance_from_lower(lower, size=8))


def _of_elements(row: dict[str, Any]) -> UncertainOrbits:
    """Return the orbit of a row that has only mean elements with their covariance, as rows of earlier versions have."""
    elements = ElementSets.from_columns({name: [value] for name, value in row.items()})
    state, partials = state_partials(elements)
    coefficients, of_coefficients = first_coefficients(elements.bstar_per_earth_radius)
    covariance = np.zeros((1, 8, 8))
    covariance[:, :6, :6] = partials @ covariance_from_lower(row["covariance"])[0] @ partials.T
    covariance[:, 6:, 6:] = of_coefficients
    return orbits_of_teme(elements.epoch_time_ns, state[None], coefficients, covariance)


def set_before(sets: Sequence[EarlierSet], chain: Sequence[Tracklet]) -> EarlierSet | None:
    """Return the last of one number's sets that is older than the chain and shares no observation with it."""
    first_ns = min(tracklet.observations["sensor_time_ns"][0].as_py() for tracklet in chain)
    ids = {
        observation_id for tracklet in chain for observation_id in tracklet.observations["observation_id"].to_pylist()
    }
    before = [one for one in sets if one.epoch_ns < first_ns and ids.isdisjoint(one.observation_ids)]
    return before[-1] if before else None


def continued(
    before: EarlierSet, observations: ObservationArrays, alone: NumericalFit, dynamics: Dynamics
) -> NumericalFit | None:
    """Return the orbit from these observations and ``before``; None if the joint fit is less likely than 1 in 1,000.

    ``alone`` is the orbit from the observations alone: the earlier orbit adds six degrees of freedom to its cost. An
    observation near the bound of outliers may be one in either fit only.
    """
    try:
        joined = continued_orbit(before.orbit, observations, int(alone.orbit.epoch_ns[0]), dynamics)
    except (NoOrbit, np.linalg.LinAlgError):  # or a covariance that rounding left without an inverse
        return None
    return joined if joined.cost - alone.cost <= GATE else None
