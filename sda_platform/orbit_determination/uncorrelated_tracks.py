"""Processing of uncorrelated tracks (UCT): observations become tracklets, orbits, and analyst satellites once
confirmed.

Tracklets with consistent orbits are linked and fitted together, unless one sensor tracked both at once. An object is
confirmed when it was observed in three windows, or by two tracklets. A numbered object that is recognised again keeps
its number. Arrow in, Arrow out.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.formats.markings import highest, of_rows
from sda_platform.fusion.tables import lower_triangles
from sda_platform.fusion.watermarks import window_start
from sda_platform.orbit_determination.recognition import (
    REACH_NS,
    EarlierSet,
    continued,
    earlier_sets,
    set_before,
    stored,
)
from sda_platform.orbit_determination.tables import PROVISIONAL_ELEMENTS
from sda_platform.orbit_determination.tracklets import Tracklet, observations_of
from sda_platform.orbits.determination.initial_orbit import NoOrbit
from sda_platform.orbits.determination.linking import link, recognise
from sda_platform.orbits.determination.numerical_fit import NumericalFit, fit_orbit
from sda_platform.orbits.determination.track_elements import NoFit, elements_along
from sda_platform.orbits.dynamics.forces import Forces
from sda_platform.orbits.dynamics.numerical import Dynamics
from sda_platform.orbits.dynamics.orbit_uncertainty import UncertainOrbits
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.mean_elements import state_partials
from sda_platform.orbits.sensing.observations import ObservationArrays
from sda_platform.orbits.two_body import orbital_period_s
from sda_platform.units import HOUR_NS, SECOND_NS

PROVISIONAL_SCHEMA = PROVISIONAL_ELEMENTS.content_schema
MEMORY_NS = 1200 * SECOND_NS
"""Span of uncorrelated observations that are processed again, event time."""
ANGLES_ONLY_MEMORY_NS = HOUR_NS
"""The same for angles-only observations: the distance of a geostationary object takes most of an hour to determine."""
ANALYST_SATELLITE_IDS = range(80_000, 90_000)
"""Catalogue numbers that the surveillance network reserves for analyst satellites."""
_CONFIRMING_WINDOWS = 3
# A smaller increase in observations is not worth a new set.
_MORE_OBSERVATIONS = 1.5
# An orbit with a larger position sigma can be neither recognised nor screened.
_LARGEST_SIGMA_M = 50_000.0
# Degree of the field that mean elements follow: SGP4 is some hundred metres off, the rest of the field some ten.
_ELEMENTS_DEGREE = 12


def discovered(
    found: Sequence[Tracklet],
    known: pa.Table,
    taken: Sequence[int],
    followed: Set[int],
    window_ns: int,
    as_of_ns: int,
    dynamics: Dynamics,
) -> pa.Table:
    """Element sets of confirmed objects: new ones with the next free numbers, known ones with many more observations.

    Args:
        found: the current tracklets.
        known: rows of `provisional_elements` that may share observations or objects with them.
        taken: catalogue numbers in use.
        followed: catalogue numbers with current fits.
        window_ns: length of a window.
        as_of_ns: mission time of the commit.
        dynamics: the numerical model.
    """
    confirmed = _confirmed(found, window_ns, dynamics)
    numbers, counts = _known(known, found)
    owners = [_owner(numbers, chain) for chain, _ in confirmed]
    earlier = _earlier(confirmed, owners, known, followed, dynamics)
    free = iter(sorted(set(ANALYST_SATELLITE_IDS) - set(taken) - set(known["norad_id"].to_pylist())))
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    for (chain, alone), owner, before in zip(confirmed, owners, earlier, strict=True):
        if owner is not None and sum(t.observations.num_rows for t in chain) < _MORE_OBSERVATIONS * counts[owner]:
            continue
        joined = None if before is None else continued(before, _observations(chain), alone, dynamics)
        basis = None if joined is None else before
        number = owner if owner is not None else basis.number if basis is not None else next(free, None)
        if number is None:
            continue
        # One of two chains of an object counts if their epochs, which are keys, are equal; the other is numbered later.
        key = (number, int(alone.orbit.epoch_ns[0]))
        if key not in rows:
            rows[key] = _row(number, chain, joined or alone, basis, as_of_ns, dynamics)
    return pa.Table.from_pylist([rows[key] for key in sorted(rows)], PROVISIONAL_SCHEMA)


def _known(known: pa.Table, found: Sequence[Tracklet]) -> tuple[dict[str, int], dict[int, int]]:
    """Return the number of each tracklet and observation that has one, and each number's observation count in its
    newest set.

    Observations are keys too, because a telescope's tracklet is named after its first observation, which expires.
    Sets too old to share an observation are left out: a radar may have reused their track names.
    """
    first_ns = min((t.observations["sensor_time_ns"][0].as_py() for t in found), default=0)
    # An epoch lies within the span of its set's observations, which the memory limits.
    shared = known.filter(pc.greater_equal(known["epoch_time_ns"], first_ns - ANGLES_ONLY_MEMORY_NS))
    numbers: dict[str, int] = {}
    counts: dict[int, int] = {}
    for row in shared.sort_by("epoch_time_ns").to_pylist():
        numbers |= dict.fromkeys([*row["tracklets"], *row["observation_ids"]], row["norad_id"])
        counts[row["norad_id"]] = row["readings"]
    return numbers, counts


def _owner(numbers: Mapping[str, int], chain: Sequence[Tracklet]) -> int | None:
    names = (name for t in chain for name in (t.name, *t.observations["observation_id"].to_pylist()))
    return next((numbers[name] for name in names if name in numbers), None)


def _earlier(
    confirmed: Sequence[tuple[Sequence[Tracklet], NumericalFit]],
    owners: Sequence[int | None],
    known: pa.Table,
    followed: Set[int],
    dynamics: Dynamics,
) -> list[EarlierSet | None]:
    """Return the set that each orbit may continue: its own number's last set from other observations, or that of an
    object without fits.

    That object may have a chain of its own now, which did not link with these tracklets: a part of a pass determines an
    orbit badly. Then both chains must fit as one orbit, and continue a set before them. A sensor that tracks both at
    once proves that they are two.
    """
    sets = earlier_sets(known)
    # Those without a chain first: they are compared with all chains, the others with those of no number only.
    last = [of_one[-1] for number, of_one in sets.items() if number not in followed]
    current = frozenset(owners)
    last.sort(key=lambda one: one.number in current)
    chains = [chain for chain, _ in confirmed]
    apart, number_of = _chains_apart(chains), np.array([owner or 0 for owner in owners], dtype=np.int64)
    settled = np.zeros((len(last), len(chains)), dtype=bool)
    for row, one in enumerate(last):
        own = number_of == one.number
        settled[row] = apart[own].any(axis=0) | (own.any() & (number_of > 0))
    matches = recognise([one.orbit for one in last], [fit.orbit for _, fit in confirmed], settled, dynamics)
    again = {
        met: _set_before_all(
            last[which],
            sets,
            chains[met],
            [chains[n] for n in np.flatnonzero(number_of == last[which].number)],
            dynamics,
        )
        for met, which in matches.items()
        if owners[met] is None
    }
    return [
        again.get(position) if owner is None else set_before(sets.get(owner, ()), chain)
        for position, ((chain, _), owner) in enumerate(zip(confirmed, owners, strict=True))
    ]


def _set_before_all(
    one: EarlierSet,
    sets: Mapping[int, Sequence[EarlierSet]],
    chain: Sequence[Tracklet],
    own: Sequence[Sequence[Tracklet]],
    dynamics: Dynamics,
) -> EarlierSet | None:
    """Return the set that ``chain`` continues together with its object's ``own`` chains; without any, ``one``."""
    if not own:
        return one
    together = [*chain, *(tracklet for each in own for tracklet in each)]
    before, fit = set_before(sets[one.number], together), _fitted(together, dynamics)
    if before is None or fit is None:
        return None
    return before if continued(before, _observations(together), fit, dynamics) is not None else None


def _confirmed(
    found: Sequence[Tracklet], window_ns: int, dynamics: Dynamics
) -> list[tuple[list[Tracklet], NumericalFit]]:
    """Chains of linked tracklets observed often enough, each with the orbit through all of it; earliest first.

    A chain whose joint fit fails is split into its tracklets.
    """
    sure: list[tuple[list[Tracklet], NumericalFit]] = []
    waiting = [[found[n] for n in chain] for chain in link([t.orbit for t in found], _distinct(found))]
    while waiting:
        chain = waiting.pop()
        if len(chain) == 1 and _windows(chain[0], window_ns) < _CONFIRMING_WINDOWS:
            continue
        orbit = _fitted(chain, dynamics)
        if orbit is not None:
            sure.append((chain, orbit))
        elif len(chain) > 1:
            waiting += [[tracklet] for tracklet in chain]
    return sorted(sure, key=lambda each: (each[0][0].observations["sensor_time_ns"][0].as_py(), each[0][0].name))


def _chains_apart(chains: Sequence[Sequence[Tracklet]]) -> npt.NDArray[np.bool_]:
    """Return which pairs (n, n) of chains are two objects, by any of their tracklets."""
    of_chain = np.repeat(np.arange(len(chains)), [len(chain) for chain in chains])
    one, other = np.nonzero(_distinct([tracklet for chain in chains for tracklet in chain]))
    apart = np.zeros((len(chains),) * 2, dtype=bool)
    apart[of_chain[one], of_chain[other]] = True
    np.fill_diagonal(apart, val=False)
    return apart


def _distinct(found: Sequence[Tracklet]) -> npt.NDArray[np.bool_]:
    """Return which pairs (n, n) are two objects: a sensor never tracks one object in two tracks at once."""
    source = np.array([t.observations["source_id"][0].as_py() for t in found], dtype=np.str_)
    first = np.array([t.observations["sensor_time_ns"][0].as_py() for t in found], dtype=np.int64)
    last = np.array([t.observations["sensor_time_ns"][-1].as_py() for t in found], dtype=np.int64)
    overlap = (first[:, None] <= last) & (first <= last[:, None])
    return np.asarray((source[:, None] == source) & overlap)


def _windows(tracklet: Tracklet, window_ns: int) -> int:
    return len({window_start(time_ns, window_ns) for time_ns in tracklet.observations["sensor_time_ns"].to_pylist()})


def _fitted(chain: Sequence[Tracklet], dynamics: Dynamics) -> NumericalFit | None:
    """Return the orbit through all of the chain, or None where the fit is implausible."""
    start = chain[-1].orbit
    epoch_ns = int(start.elements.epoch_time_ns[0]) // 1000 * 1000  # an OMM's epoch has microseconds
    try:
        orbit = fit_orbit(_observations(chain), np.append(start.r_teme_km, start.v_teme_km_s), epoch_ns, dynamics)
    except NoOrbit:
        return None
    return orbit if orbit.is_plausible and _sigma_m(orbit) < _LARGEST_SIGMA_M else None


def _observations(chain: Sequence[Tracklet]) -> ObservationArrays:
    """Return the observations that the orbit of the whole chain is fitted to."""
    return observations_of(pa.concat_tables(t.evidence for t in chain), chain[0].sensors)


def _sigma_m(fit: NumericalFit) -> float:
    return float(np.sqrt(np.trace(fit.orbit.covariance[0, :3, :3]))) * 1e3


def _row(
    number: int,
    chain: Sequence[Tracklet],
    fit: NumericalFit,
    before: EarlierSet | None,
    as_of_ns: int,
    dynamics: Dynamics,
) -> dict[str, Any]:
    like = replace(chain[-1].orbit.elements, norad_id=np.array([number]), epoch_time_ns=fit.orbit.epoch_ns)
    elements, off_m = _elements(fit.orbit, like, dynamics)
    observations = pa.concat_tables(t.observations for t in chain)
    _, of_teme = fit.orbit.in_teme()
    inverse = np.linalg.inv(state_partials(elements)[1])
    of_elements = inverse @ of_teme[0, :6, :6] @ inverse.T
    return {
        **{name: getattr(elements, name)[0].item() for name in ElementSets.__dataclass_fields__},
        "object_name": f"UNKNOWN {number}",
        "international_designator": None,
        "position_sigma_m": float(np.hypot(_sigma_m(fit), off_m)),
        "tracklets": [t.name for t in chain],
        "readings": observations.num_rows,
        "observation_ids": sorted(observations["observation_id"].to_pylist()),
        "first_seen_ns": pc.min(observations["sensor_time_ns"]).as_py(),
        "chi_square": fit.chi_square,
        "degrees_of_freedom": fit.degrees_of_freedom,
        "covariance": lower_triangles(of_elements[None])[0].tolist(),
        "orbit": stored(fit.orbit),
        **highest([of_rows(observations), *([before.marking] if before else [])]).columns(),
        "earlier_epoch_ns": None if before is None else before.epoch_ns,
        "as_of_ns": as_of_ns,
    }


def _elements(orbit: UncertainOrbits, like: ElementSets, dynamics: Dynamics) -> tuple[ElementSets, float]:
    """Mean elements that follow the orbit, and their rms distance (m); those of the observations if SGP4 has none.

    They follow one revolution, at most REACH_NS. Over a day they would be five times as far off at the epoch. The orbit
    of a single pass is itself kilometres off by then.
    """
    revolution_s = orbital_period_s(orbit.state[:, :3], orbit.state[:, 3:])[0]
    span_s = min(int(revolution_s), REACH_NS // SECOND_NS)
    coarse = replace(dynamics, forces=Forces(degree=_ELEMENTS_DEGREE, order=_ELEMENTS_DEGREE))
    try:
        elements, off_km = elements_along(orbit, like, coarse, span_s)
    except NoFit:
        return like, 0.0
    return elements, off_km * 1e3
