"""Scenarios besides the everyday link faults: a break-up, a silent radar, observers in orbit, a manoeuvre."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.formats.element_set import ElementSet
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.omm import encode_omm_csv
from sda_platform.formats.segments import describe_segment
from sda_platform.orbits.frames import rtn_basis
from sda_platform.orbits.mean_elements import mean_elements
from sda_platform.simulation.breakup import Breakup, fragment_elements
from sda_platform.simulation.observers import Observers, ObservingPlan
from sda_platform.simulation.segments import TRUTH_SCHEMA, SimulatedSegment
from sda_platform.simulation.simulated_observations import SimulatedObservations
from sda_platform.simulation.sky import Sky

Scenario = Literal["nominal", "fragmentation", "outage", "constellation"]
# The radars must observe the parent for this long; otherwise the scenario shows nothing.
_OBSERVED_NS: Final = 90_000_000_000
SCENARIOS: Final[tuple[str, ...]] = get_args(Scenario)


@dataclass(frozen=True)
class Manoeuvre:
    """A burn of an object at a time: a change of velocity at once, m/s, in radial, transverse and normal axes."""

    norad_id: int
    time_ns: int
    dv_rtn_m_s: tuple[float, float, float]


@dataclass(frozen=True)
class Outage:
    """A radar whose link is down in [from_ns, to_ns); it keeps measuring and sends its backlog afterwards.

    The backlog takes `catch_up` of the outage's length to send, so that its observations exceed the radars' lateness
    bound.
    """

    source_id: str
    from_ns: int
    to_ns: int
    catch_up: float = 0.05

    @classmethod
    def of_middle_third(cls, start_time_ns: int, duration_ns: int, source_id: str = "radar-1") -> Self:
        """Return the outage of the scenario of this name."""
        return cls(source_id, start_time_ns + duration_ns // 3, start_time_ns + duration_ns * 2 // 3)

    def delayed(self, observations: SimulatedObservations) -> SimulatedObservations:
        """Delay the reception of the silent radar's observations until after the outage; keep their order."""
        received = observations.received_time_ns
        silent = (observations.source_id == self.source_id) & (received >= self.from_ns) & (received < self.to_ns)
        backlog = self.to_ns + ((received - self.from_ns) * self.catch_up).astype(np.int64)
        return observations.received_at(np.where(silent, backlog, received))


@dataclass(frozen=True)
class Newcomer:
    """An object that is catalogued at a time: sensors observe it from then on, and its first element set is exact."""

    element_set: ElementSet
    catalogued_ns: int


@dataclass(frozen=True)
class Incidents:
    """What happens in any scenario at times of its own; `arrivals` are files that others send."""

    manoeuvres: tuple[Manoeuvre, ...] = ()
    outages: tuple[Outage, ...] = ()
    newcomers: tuple[Newcomer, ...] = ()
    arrivals: tuple[SimulatedSegment, ...] = ()


def elements_segment(data: bytes, available_time_ns: int) -> SimulatedSegment:
    """An `omm-csv` segment of the elements feed; it has no truth rows."""
    return file_segment(data, "elements", "omm-csv", available_time_ns)


def file_segment(data: bytes, feed: str, segment_format: str, available_time_ns: int) -> SimulatedSegment:
    """A file that someone sends at a time; it has no truth rows."""
    meta = describe_segment(
        data,
        feed=feed,
        segment_format=segment_format,
        sealed_time_ns=available_time_ns,
        sealed_wall_time_ns=available_time_ns,
    )
    return SimulatedSegment(feed, segment_format, data, meta, available_time_ns, TRUTH_SCHEMA.empty_table())


def parent_of(breakup: Breakup, catalogue: pa.Table, start_time_ns: int, seed: int) -> int:
    """Return the NORAD id that breaks up: the given one, or the first of its name that radars observe then and 90 s
    later.

    Raises ValueError where the catalogue has no such object.
    """
    if breakup.parent_norad_id is not None:
        return breakup.parent_norad_id
    named = catalogue.filter(pc.equal(catalogue["object_name"], breakup.parent_name))["norad_id"].to_pylist()
    if not named:
        raise ValueError(f"no object to break up is named {breakup.parent_name!r}")
    sky = Sky.of_catalogue(catalogue, objects=named, seed=seed, catalogue_error_s=0.0, start_time_ns=start_time_ns)
    time_ns = start_time_ns + int(breakup.after_s * 1e9)
    observers = Observers(sky, ObservingPlan(radar_interval_s=5.0), seed)
    then, later = (
        set(observers.radar(begin_ns, begin_ns + 10_000_000_000).norad_id.tolist())
        for begin_ns in (time_ns, time_ns + _OBSERVED_NS)
    )
    return int(max(named, key=lambda norad_id: (norad_id in then, norad_id in later)))


def with_breakup(sky: Sky, parent_norad_id: int, breakup: Breakup, start_time_ns: int, seed: int) -> tuple[Sky, bytes]:
    """Return the sky in which the parent ends and its debris begins, and the debris's element sets as `omm-csv`.

    Raises ValueError where the parent is not in the sky or cannot be propagated.
    """
    rows = np.flatnonzero(sky.norad_id == parent_norad_id)
    if not len(rows):
        raise ValueError(f"the object to break up, {parent_norad_id}, is not in the catalogue")
    parent = int(rows[0])
    time_ns = start_time_ns + int(breakup.after_s * 1e9)
    data = encode_omm_csv(fragment_elements(sky, parent, time_ns, breakup.fragments, seed))
    table = decode_element_sets(data, segment_format="omm-csv")
    debris = Sky.of_catalogue(table, objects=None, seed=seed, catalogue_error_s=0.0, start_time_ns=start_time_ns)
    return sky.with_debris(debris, parent, time_ns), data


def with_manoeuvre(sky: Sky, burn: Manoeuvre) -> Sky:
    """Return the sky in which the object follows its path after the burn from then on.

    Raises ValueError where the object is not in the sky, or SGP4 cannot follow it afterwards.
    """
    rows = np.flatnonzero(sky.norad_id == burn.norad_id)
    if not len(rows):
        raise ValueError(f"the object that manoeuvres, {burn.norad_id}, is not in the sky")
    _, r, v = sky.states(rows[-1:], np.array([burn.time_ns]))
    after = v + np.einsum("nji,j->ni", rtn_basis(r, v), np.asarray(burn.dv_rtn_m_s) / 1000)
    drag = sky.propagator.elements.bstar_per_earth_radius[rows[-1:]]
    elements = mean_elements(r, after, burn.time_ns, drag)
    if not np.isfinite(elements.mean_motion_rev_per_day).all():
        raise ValueError(f"SGP4 cannot follow {burn.norad_id} after {burn.dv_rtn_m_s} m/s")
    return sky.with_path(elements, int(rows[-1]), burn.time_ns)


def with_newcomers(sky: Sky, newcomers: Sequence[Newcomer], seed: int) -> Sky:
    """Return the sky in which each newcomer is present from the time at which it is catalogued."""
    for each in newcomers:
        table = decode_element_sets(encode_omm_csv([each.element_set]), segment_format="omm-csv")
        one = Sky.of_catalogue(table, objects=None, seed=seed, catalogue_error_s=0.0, start_time_ns=sky.start_time_ns)
        sky = sky.joined_by(one, each.catalogued_ns)
    return sky
