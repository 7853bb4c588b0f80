"""Recognises an unknown object on a later pass: the earlier set that a new orbit continues, and the orbit from both.

An orbit of one pass of 100 s is kilometres off after a revolution, outside the association gate but within its own
covariance. A new orbit continues it if the match is unique in both directions, and if both fit as one orbit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.fusion.tables import covariance_from_lower
from sda_platform.orbit_determination.tracklets import Tracklet
from sda_platform.orbits.determination.differential_correction import Correction, UncertainElements, correct_elements
from sda_platform.orbits.determination.initial_orbit import NoOrbit
from sda_platform.orbits.determination.linking import GATE, propagated
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.sensing.observations import ObservationArrays

REACH_NS = 3 * 3600 * NANOSECONDS_PER_SECOND
"""Largest age of an earlier set, event time: more than a revolution of a low orbit."""


@dataclass(frozen=True, eq=False)
class EarlierSet(UncertainElements):
    """A row of `provisional_elements`, and the observations that it was estimated from."""

    observation_ids: frozenset[str]

    @property
    def number(self) -> int:
        return int(self.elements.norad_id[0])

    @property
    def epoch_ns(self) -> int:
        return int(self.elements.epoch_time_ns[0])


def earlier_sets(known: pa.Table) -> dict[int, list[EarlierSet]]:
    """The rows of `provisional_elements` with a covariance, by number, in order of epoch."""
    sets: dict[int, list[EarlierSet]] = {}
    for row in known.filter(pc.is_valid(known["covariance"])).sort_by("epoch_time_ns").to_pylist():
        one = EarlierSet(
            elements=ElementSets.from_columns({name: [value] for name, value in row.items()}),
            covariance=covariance_from_lower(row["covariance"])[0],
            observation_ids=frozenset(row["observation_ids"]),
        )
        sets.setdefault(one.number, []).append(one)
    return sets


def set_before(sets: Sequence[EarlierSet], chain: Sequence[Tracklet]) -> EarlierSet | None:
    """The last of one number's sets that is older than the chain and shares no observation with it."""
    first_ns = min(tracklet.observations["sensor_time_ns"][0].as_py() for tracklet in chain)
    ids = {
        observation_id for tracklet in chain for observation_id in tracklet.observations["observation_id"].to_pylist()
    }
    before = [one for one in sets if one.epoch_ns < first_ns and ids.isdisjoint(one.observation_ids)]
    return before[-1] if before else None


def continued(before: EarlierSet, observations: ObservationArrays, alone: Correction) -> Correction | None:
    """The orbit from these observations and ``before``; None if the joint fit is less likely than 1 in 1,000.

    ``alone`` is the orbit from the observations alone: the earlier set adds six degrees of freedom to its chi-square.
    """
    prior = propagated(before, int(alone.elements.epoch_time_ns[0]))
    try:
        joined = correct_elements(observations, prior.elements, prior=prior.covariance)
    except (NoOrbit, np.linalg.LinAlgError):  # or a covariance that rounding left without an inverse
        return None
    fits = np.array_equal(joined.used, alone.used) and joined.chi_square - alone.chi_square <= GATE
    return joined if fits else None
