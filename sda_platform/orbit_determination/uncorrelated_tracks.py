"""Objects that nobody knows yet: readings that match nothing become tracklets, orbits, and numbers once confirmed.

Tracklets whose orbits meet are linked and fitted together, unless one sensor followed both at once. An object is
confirmed when it was seen in three windows, or by two tracklets; one that was numbered before and is met again keeps
its number. Arrow in, Arrow out.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.fusion.tables import lower_triangles
from sda_platform.fusion.watermarks import window_start
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbit_determination.recognition import EarlierSet, continued, earlier_sets, set_before
from sda_platform.orbit_determination.tables import PROVISIONAL_ELEMENTS
from sda_platform.orbit_determination.tracklets import Tracklet, observations_of
from sda_platform.orbits.determination.differential_correction import Correction, correct_elements
from sda_platform.orbits.determination.initial_orbit import NoOrbit
from sda_platform.orbits.determination.linking import link, recognise
from sda_platform.orbits.elements import ElementSets
from sda_platform.orbits.sensing.observations import ObservationArrays

PROVISIONAL_SCHEMA = pa.schema([field for field in PROVISIONAL_ELEMENTS.arrow_schema if field.name != COMMIT_SEQUENCE])
MEMORY_NS = 1200 * NANOSECONDS_PER_SECOND
"""How far back readings that match nothing are looked at again, event time."""
ANGLES_ONLY_MEMORY_NS = 3600 * NANOSECONDS_PER_SECOND
"""The same of telescopes' sightings: it takes the better part of an hour to tell how far a geostationary object is."""
ANALYST_IDS = range(80_000, 90_000)
"""Catalogue numbers that the surveillance network sets aside for objects without a name."""
_CONFIRMING_WINDOWS = 3
# An orbit that is refined by less than this is not worth a new set.
_MORE_READINGS = 1.5
# A position that is known no better than this cannot be met again, nor screened.
_VAGUEST_M = 50_000.0


def discovered(
    found: Sequence[Tracklet], known: pa.Table, taken: Sequence[int], followed: Set[int], window_ns: int, as_of_ns: int
) -> pa.Table:
    """Element sets of confirmed objects: new ones with the next free numbers, known ones where much was added.

    Args:
        found: tracklets of now.
        known: rows of `provisional_elements` that may be from some of the same readings, or of the same objects.
        taken: catalogue numbers in use.
        followed: those of objects that other readings of now are of.
        window_ns: length of a window.
        as_of_ns: mission time of the commit.
    """
    confirmed = _confirmed(found, window_ns)
    numbers, counts = _known(known, found)
    owners = [_owner(numbers, chain) for chain, _ in confirmed]
    earlier = _earlier(confirmed, owners, known, followed)
    free = iter(sorted(set(ANALYST_IDS) - set(taken) - set(known["norad_id"].to_pylist())))
    rows = []
    for (chain, alone), owner, before in zip(confirmed, owners, earlier, strict=True):
        if owner is not None and sum(t.readings.num_rows for t in chain) < _MORE_READINGS * counts[owner]:
            continue
        joined = None if before is None else continued(before, _observations(chain), alone)
        basis = None if joined is None else before
        number = owner if owner is not None else basis.number if basis is not None else next(free, None)
        if number is not None:
            rows.append(_told(number, chain, joined or alone, basis, as_of_ns))
    return pa.Table.from_pylist(sorted(rows, key=lambda row: row["norad_id"]), PROVISIONAL_SCHEMA)


def _known(known: pa.Table, found: Sequence[Tracklet]) -> tuple[dict[str, int], dict[int, int]]:
    """The number of each tracklet and reading that has one, and how many readings the newest set of a number is from.

    By readings, too: the sightings of a telescope are called by the first of them, which is forgotten one day. What
    these tracklets cannot share a reading with is left out: a radar may have called others the same before.
    """
    first_ns = min((t.readings["sensor_time_ns"][0].as_py() for t in found), default=0)
    # An epoch lies among the set's readings, and these are no further apart than is remembered.
    shared = known.filter(pc.greater_equal(known["epoch_time_ns"], first_ns - ANGLES_ONLY_MEMORY_NS))
    numbers: dict[str, int] = {}
    counts: dict[int, int] = {}
    for row in shared.sort_by("epoch_time_ns").to_pylist():
        numbers |= dict.fromkeys([*row["tracklets"], *row["observation_ids"]], row["norad_id"])
        counts[row["norad_id"]] = row["readings"]
    return numbers, counts


def _owner(numbers: Mapping[str, int], chain: Sequence[Tracklet]) -> int | None:
    names = (name for t in chain for name in (t.name, *t.readings["observation_id"].to_pylist()))
    return next((numbers[name] for name in names if name in numbers), None)


def _earlier(
    confirmed: Sequence[tuple[Sequence[Tracklet], Correction]],
    owners: Sequence[int | None],
    known: pa.Table,
    followed: Set[int],
) -> list[EarlierSet | None]:
    """What each orbit may go on: its own number's last set from other readings, or that of an object not seen now."""
    sets = earlier_sets(known)
    gone = [of_one[-1] for number, of_one in sets.items() if number not in followed and number not in owners]
    again = {met: gone[which] for met, which in recognise(gone, [orbit for _, orbit in confirmed]).items()}
    return [
        again.get(position) if owner is None else set_before(sets.get(owner, ()), chain)
        for position, ((chain, _), owner) in enumerate(zip(confirmed, owners, strict=True))
    ]


def _confirmed(found: Sequence[Tracklet], window_ns: int) -> list[tuple[list[Tracklet], Correction]]:
    """Chains of linked tracklets that were seen often enough, each with the orbit through all of it; earliest first.

    What is linked and turns out not to be one object counts as several.
    """
    sure: list[tuple[list[Tracklet], Correction]] = []
    waiting = [[found[n] for n in chain] for chain in link([t.orbit for t in found], _apart(found))]
    while waiting:
        chain = waiting.pop()
        if len(chain) == 1 and _windows(chain[0], window_ns) < _CONFIRMING_WINDOWS:
            continue
        orbit = _fitted(chain)
        if orbit is not None:
            sure.append((chain, orbit))
        elif len(chain) > 1:
            waiting += [[tracklet] for tracklet in chain]
    return sorted(sure, key=lambda each: (each[0][0].readings["sensor_time_ns"][0].as_py(), each[0][0].name))


def _apart(found: Sequence[Tracklet]) -> npt.NDArray[np.bool_]:
    """Which pairs (n, n) are of two objects: a sensor follows none in two tracks at once."""
    source = np.array([t.readings["source_id"][0].as_py() for t in found], dtype=np.str_)
    first = np.array([t.readings["sensor_time_ns"][0].as_py() for t in found], dtype=np.int64)
    last = np.array([t.readings["sensor_time_ns"][-1].as_py() for t in found], dtype=np.int64)
    overlap = (first[:, None] <= last) & (first <= last[:, None])
    return np.asarray((source[:, None] == source) & overlap)


def _windows(tracklet: Tracklet, window_ns: int) -> int:
    return len({window_start(time_ns, window_ns) for time_ns in tracklet.readings["sensor_time_ns"].to_pylist()})


def _fitted(chain: Sequence[Tracklet]) -> Correction | None:
    """The orbit through all of the chain, or None where that is not of one object after all."""
    orbit = chain[-1].orbit
    if len(chain) > 1:
        try:
            orbit = correct_elements(_observations(chain), orbit.elements)
        except NoOrbit:
            return None
    return orbit if orbit.is_plausible and _sigma_m(orbit) < _VAGUEST_M else None


def _observations(chain: Sequence[Tracklet]) -> ObservationArrays:
    """The observations that the orbit of the whole chain is fitted to."""
    return observations_of(pa.concat_tables(t.evidence for t in chain), chain[0].sensors)


def _sigma_m(orbit: Correction) -> float:
    return float(np.sqrt(np.trace(orbit.covariance_teme[:3, :3]))) * 1e3


def _told(
    number: int, chain: Sequence[Tracklet], orbit: Correction, before: EarlierSet | None, as_of_ns: int
) -> dict[str, Any]:
    epoch_ns = orbit.elements.epoch_time_ns // 1000 * 1000  # an OMM's epoch has microseconds
    elements = replace(orbit.elements, norad_id=np.array([number]), epoch_time_ns=epoch_ns)
    readings = pa.concat_tables(t.readings for t in chain)
    return {
        **{name: getattr(elements, name)[0].item() for name in ElementSets.__dataclass_fields__},
        "object_name": f"UNKNOWN {number}",
        "international_designator": None,
        "position_sigma_m": _sigma_m(orbit),
        "tracklets": [t.name for t in chain],
        "readings": readings.num_rows,
        "observation_ids": sorted(readings["observation_id"].to_pylist()),
        "first_seen_ns": pc.min(readings["sensor_time_ns"]).as_py(),
        "chi_square": orbit.chi_square,
        "degrees_of_freedom": orbit.degrees_of_freedom,
        "covariance": lower_triangles(orbit.covariance[None])[0].tolist(),
        "earlier_epoch_ns": None if before is None else before.epoch_ns,
        "as_of_ns": as_of_ns,
    }
