"""Scenarios besides the everyday link faults: a break-up, a silent radar, observers in orbit, a manoeuvre."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    """A radar whose link is down for a share of the simulated time; it keeps measuring and sends its backlog
    afterwards.

    The backlog takes `catch_up` of the outage's length to send, so that its observations exceed the radars' lateness
    bound.
    """

    source_id: str = "radar-1"
    from_share: float = 1 / 3
    to_share: float = 2 / 3
    catch_up: float = 0.05

    def delayed(
        self, observations: SimulatedObservations, start_time_ns: int, duration_ns: int
    ) -> SimulatedObservations:
        """The observations; those of the silent radar are received after the outage, in their order."""
        begin, end = (start_time_ns + int(share * duration_ns) for share in (self.from_share, self.to_share))
        received = observations.received_time_ns
        silent = (observations.source_id == self.source_id) & (received >= begin) & (received < end)
        backlog = end + ((received - begin) * self.catch_up).astype(np.int64)
        return observations.received_at(np.where(silent, backlog, received))


def elements_segment(data: bytes, available_time_ns: int) -> SimulatedSegment:
    """An `omm-csv` segment of the elements feed; it has no truth rows."""
    meta = describe_segment(
        data,
        feed="elements",
        segment_format="omm-csv",
        sealed_time_ns=available_time_ns,
        sealed_wall_time_ns=available_time_ns,
    )
    return SimulatedSegment("elements", "omm-csv", data, meta, available_time_ns, TRUTH_SCHEMA.empty_table())


def parent_of(breakup: Breakup, catalogue: pa.Table, start_time_ns: int, seed: int) -> int:
    """The NORAD id that breaks up: the given one, or the first of its name that radars observe then and 90 s later.

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
    """The sky in which the parent ends and its debris begins, and the debris's element sets as `omm-csv`.

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
    """The sky in which the object follows its path after the burn from then on.

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
