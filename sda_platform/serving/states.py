"""States of objects at times, by SGP4 from the set that was in force at each time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sda_platform.formats.element_set import set_marking
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.propagation import SGP4_ERRORS, Propagator
from sda_platform.serving.record import StoredElements
from sda_platform.serving.view import View
from sda_platform.units import DAY_NS

MOST_STATES = 100_000
"""Bound of the states of one answer."""


class TooMany(Exception):
    """The request exceeds the size of one answer."""


def states(view: View, norad_ids: Sequence[int], times_ns: Sequence[int]) -> list[dict[str, Any]]:
    """Return the state of each object at each time, object by object; objects without a set are left out.

    Positions in km and velocities in km/s, TEME of date. Where SGP4 refuses, ``error`` is the
    reason and there is no state. Raises TooMany.
    """
    if len(norad_ids) * len(times_ns) > MOST_STATES:
        raise TooMany(f"{len(norad_ids)} objects at {len(times_ns)} times: one answer holds {MOST_STATES:,} states")
    # An unknown object has no set at any time.
    wanted = [each for number in norad_ids for each in zip(view.in_force_at(number, times_ns), times_ns, strict=False)]
    if not wanted:
        return []
    sets, time_ns = [found for found, _ in wanted], np.array([time for _, time in wanted], np.int64)
    error, r_teme_km, v_teme_km_s = Propagator(elements_of(sets)).at(np.arange(len(sets)), time_ns)
    return [
        _state(found, time, code, r, v)
        for (found, time), code, r, v in zip(
            wanted, error.tolist(), r_teme_km.tolist(), v_teme_km_s.tolist(), strict=True
        )
    ]


def elements_of(sets: Sequence[StoredElements]) -> ElementSets:
    """Return sets as arrays for SGP4, in their order."""
    return ElementSets.from_columns(
        {name: [getattr(each, name) for each in sets] for name in ElementSets.__dataclass_fields__}
    )


def _state(found: StoredElements, time_ns: int, code: int, r: list[float], v: list[float]) -> dict[str, Any]:
    facts = {
        "norad_id": found.norad_id,
        "time_ns": time_ns,
        "elements_epoch_ns": found.epoch_time_ns,
        "elements_age_days": (time_ns - found.epoch_time_ns) / DAY_NS,
        "frame": "TEME",
        **set_marking(found.classification, found.data_mode).columns(),
        "owner": found.owner,
        "source": found.source_name,
    }
    if code:
        return {**facts, "error": SGP4_ERRORS.get(code, f"SGP4 error {code}")}
    return {**facts, "r_teme_km": r, "v_teme_km_s": v}
