"""What the sensors have observed in the last day and will observe, read for pages."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow.dataset as ds

from sda_platform.arrays import IntArray
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import iso_to_second
from sda_platform.conjunction.currency import words_of
from sda_platform.console.page import ConsoleContext, ahead
from sda_platform.fusion.tables import TIME_TAG_BIASES, TRACKS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.tasking.resource import TaskingResource
from sda_platform.tasking.stored_rows import StoredRows
from sda_platform.tasking.tables import PASS_SCHEDULE, SCHEDULED
from sda_platform.units import DAY_NS, SECOND_NS

Row = Mapping[str, Any]
_BOOKED: Final = (
    "norad_id", "reason", "priority_class", "owner", "status", "unserved_reason", "unserved_detail", "source_id",
    "start_time_ns", "end_time_ns", "deadline_time_ns", "azimuth_start_deg", "azimuth_end_deg", "max_elevation_deg",
)  # fmt: skip
_BIAS: Final = [
    "source_id", "term_start_ns", "offset_s", "sigma_s", "is_applied", "residual_rms", "readings", "bound_s",
]  # fmt: skip


_WHOLE_FROM_M: Final = 10.0
"""Shorter lengths have a decimal."""


def network(context: ConsoleContext) -> SensorNetwork:
    """Return the ground sensors. Raises ListingError."""
    return TaskingResource(**context.settings.scheduling.model_dump()).network()


def requests_ahead(lake: Lake) -> list[Row]:
    """Return the requests of the schedule in force that have not ended: first the booked ones, by their beginning."""
    now_ns = lake.clock.now_ns()
    found = StoredRows(lake).current(PASS_SCHEDULE, _BOOKED, ds.field("deadline_time_ns") > now_ns).to_pylist()
    ahead = [row for row in found if row["status"] != SCHEDULED or row["end_time_ns"] > now_ns]
    return sorted(ahead, key=lambda row: (row["status"], row["start_time_ns"] or row["deadline_time_ns"]))


def observing_facts(lake: Lake, norad_id: int) -> dict[str, str]:
    """Describe when an object was observed last, and when a sensor will observe it next."""
    now_ns = lake.clock.now_ns()
    columns = ["last_seen_ns", "state", "windows", "position_sigma_m"]
    tracks = lake.log(TRACKS)
    rows = tracks.rows(columns, ds.field("norad_id") == norad_id).to_pylist() if tracks.version() >= 0 else []
    facts = {}
    for row in rows:
        age = words_of((now_ns - row["last_seen_ns"]) / SECOND_NS)
        facts["last observed"] = f"{iso_to_second(row['last_seen_ns'])}, {age} ago"
        sigma_m = row["position_sigma_m"]
        shown = f"{sigma_m:,.0f}" if sigma_m >= _WHOLE_FROM_M else f"{sigma_m:.1f}"
        facts["track"] = f"{row['state']}, {row['windows']:,} windows, 1 sigma {shown} m"
    mine = [row for row in requests_ahead(lake) if row["norad_id"] == norad_id]
    for row in mine[:1]:  # the first booked one, if there is any
        facts["next observation"] = (
            f"{iso_to_second(row['start_time_ns'])}, {ahead(row['start_time_ns'], now_ns)}, by {row['source_id']}"
            if row["status"] == SCHEDULED
            else f"none before {iso_to_second(row['deadline_time_ns'])}: "
            f"{(row['unserved_reason'] or '').replace('_', ' ')}"
        )
    return facts


def booked(requests: Sequence[Row]) -> list[Row]:
    """Return those that a sensor will serve."""
    return [row for row in requests if row["status"] == SCHEDULED]


def names_of(lake: Lake, norad_ids: set[int]) -> dict[int, str]:
    """Return the names of objects that have one."""
    if not norad_ids or lake.log(ORBITAL_CATALOG).version() < 0:
        return {}
    where = ds.field("norad_id").isin(sorted(norad_ids))
    rows = lake.log(ORBITAL_CATALOG).rows(["norad_id", "object_name"], where).to_pylist()
    return {row["norad_id"]: row["object_name"] for row in rows if row["object_name"]}


def observed_times(lake: Lake, source_id: str | None = None) -> dict[str, IntArray]:
    """Return the event times (k,) of the observations of the last day by sensor, rising; of all, or of one."""
    if lake.log(OBSERVATIONS).version() < 0:
        return {}
    now_ns = lake.clock.now_ns()
    where = (ds.field("sensor_time_ns") > now_ns - DAY_NS) & (ds.field("sensor_time_ns") <= now_ns)
    if source_id is not None:
        where &= ds.field("source_id") == source_id
    rows = lake.log(OBSERVATIONS).rows(["source_id", "sensor_time_ns"], where)
    sources, index = np.unique(rows["source_id"].to_numpy(zero_copy_only=False), return_inverse=True)
    times, order = rows["sensor_time_ns"].to_numpy(), np.argsort(index, kind="stable")
    parts = np.split(times[order], np.searchsorted(index[order], np.arange(1, len(sources))))
    return {str(source): np.sort(part) for source, part in zip(sources, parts, strict=False)}


def biases(lake: Lake, source_id: str | None = None) -> dict[str, list[Row]]:
    """Return the time-tag biases of the last day by sensor, the newest last; of all, or of one."""
    if lake.log(TIME_TAG_BIASES).version() < 0:
        return {}
    where = ds.field("term_start_ns") > lake.clock.now_ns() - DAY_NS
    if source_id is not None:
        where &= ds.field("source_id") == source_id
    found: dict[str, list[Row]] = defaultdict(list)
    for row in lake.log(TIME_TAG_BIASES).rows(_BIAS, where).sort_by("term_start_ns").to_pylist():
        found[row["source_id"]].append(row)
    return found
