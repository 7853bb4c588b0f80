"""Unknown objects that are met again: the earlier set that a new orbit goes on, and the orbit by both.

An orbit of one pass of 100 s is kilometres off a revolution later, which is further than association looks, but its own
covariance says so. What is met there belongs to it if neither could belong to another, and if both fit as one.
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
"""How old an earlier set may be, event time: more than a revolution of a low orbit."""


@dataclass(frozen=True, eq=False)
class EarlierSet(UncertainElements):
    """A row of `provisional_elements`, and which readings are behind it."""

    readings: frozenset[str]

    @property
    def number(self) -> int:
        return int(self.elements.norad_id[0])

    @property
    def epoch_ns(self) -> int:
        return int(self.elements.epoch_time_ns[0])


def earlier_sets(known: pa.Table) -> dict[int, list[EarlierSet]]:
    """By number, the rows of `provisional_elements` that say how far they are to be believed, in order of epoch."""
    sets: dict[int, list[EarlierSet]] = {}
    for row in known.filter(pc.is_valid(known["covariance"])).sort_by("epoch_time_ns").to_pylist():
        one = EarlierSet(
            elements=ElementSets.from_columns({name: [value] for name, value in row.items()}),
            covariance=covariance_from_lower(row["covariance"])[0],
            readings=frozenset(row["observation_ids"]),
        )
        sets.setdefault(one.number, []).append(one)
    return sets


def set_before(sets: Sequence[EarlierSet], chain: Sequence[Tracklet]) -> EarlierSet | None:
    """The last of one number's sets that is older than the chain and from none of its readings: none counts twice."""
    first_ns = min(tracklet.readings["sensor_time_ns"][0].as_py() for tracklet in chain)
    ids = {reading for tracklet in chain for reading in tracklet.readings["observation_id"].to_pylist()}
    before = [one for one in sets if one.epoch_ns < first_ns and ids.isdisjoint(one.readings)]
    return before[-1] if before else None


def continued(before: EarlierSet, observations: ObservationArrays, alone: Correction) -> Correction | None:
    """The orbit by these observations and ``before``; None if it fits them worse than chance would once in 1,000.

    ``alone`` is the orbit by the observations alone: the earlier set adds six degrees of freedom to its chi-square.
    """
    prior = propagated(before, int(alone.elements.epoch_time_ns[0]))
    try:
        joined = correct_elements(observations, prior.elements, prior=prior.covariance)
    except (NoOrbit, np.linalg.LinAlgError):  # or a covariance that rounding left without an inverse
        return None
    fits = np.array_equal(joined.used, alone.used) and joined.chi_square - alone.chi_square <= GATE
    return joined if fits else None
