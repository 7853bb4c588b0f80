"""From rows to the scheduler and back: requests, windows and existing bookings in; rows of `pass_schedule` out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from sda_platform.tasking.antennas import Antenna, AntennaPass, Booking, booked
from sda_platform.tasking.information import DWELLS_S
from sda_platform.tasking.scheduling import ObservationPlan, Request, Rules, schedule
from sda_platform.tasking.tables import SCHEDULED, UNSERVED
from sda_platform.tasking.task_outcomes import Task
from sda_platform.units import SECOND_NS

REQUEST_COLUMNS: Final = (
    "norad_id", "reason", "priority_class", "owner", "requested_time_ns", "deadline_time_ns", "information_gain",
    "dwell_s",
)  # fmt: skip
WINDOW_COLUMNS: Final = (
    "norad_id", "source_id", "aos_time_ns", "tca_time_ns", "los_time_ns", "max_elevation_deg", "azimuth_aos_deg",
    "azimuth_tca_deg", "azimuth_los_deg",
)  # fmt: skip
BOOKING_COLUMNS: Final = ("norad_id", "status", "source_id", "beam", "start_time_ns", "end_time_ns")
CLASS_VALUE: Final = {0: 100.0, 1: 10.0, 2: 1.0}
"""Weight of a class in the value of a schedule: a class is worth ten of the next."""

_COPIED: Final = ("request_id", "norad_id", "reason", "priority_class", "owner", "deadline_time_ns", "information_gain")


def planned(
    requests: Sequence[Mapping[str, Any]],
    windows: Iterable[Mapping[str, Any]],
    existing: Iterable[Mapping[str, Any]],
    antennas: Mapping[str, Antenna],
    masks_deg: Mapping[str, float],
    *,
    as_of_ns: int,
    observation_ns: int,
    rules: Rules,
    used_ns: Mapping[str, float] | None = None,
    failed: Iterable[Task] = (),
) -> tuple[ObservationPlan, list[dict[str, Any]]]:
    """Return the plan at ``as_of_ns`` and its rows, one for each request, without the columns of every correction log.

    ``antennas``: those in service. ``masks_deg``: least elevation by sensor, at which an antenna begins and ends.
    ``used_ns``: the antenna time that each owner had before. ``observation_ns``: that of a request which states none;
    where no window is as long as one states, the observation is shorter. The request of a ``failed`` task is not
    observed in the same pass again.
    """
    by_object: dict[int, list[AntennaPass]] = defaultdict(list)
    for row in windows:
        by_object[row["norad_id"]].append(antenna_pass(row, masks_deg.get(row["source_id"], 0.0)))
    spent = {(task.request_id, task.pass_id) for task in failed}
    options = {
        row["request_id"]: [
            w for w in by_object.get(row["norad_id"], []) if (row["request_id"], w.pass_id) not in spent
        ]
        for row in requests
    }
    wanted = [
        _request(row, _dwell_ns(row, options[row["request_id"]], antennas, as_of_ns, observation_ns))
        for row in requests
    ]
    kept = [booking for row in existing for booking in _existing(row, options.get(row["request_id"], []))]
    plan = schedule(wanted, options, antennas, as_of_ns, rules, kept, used_ns)
    peaks = {window.pass_id: window.tca_deg[1] for options_of in by_object.values() for window in options_of}
    return plan, [_row(row, plan, peaks) for row in sorted(requests, key=lambda each: str(each["request_id"]))]


def request_value(priority_class: int, information_gain: float) -> float:
    """Return the value of serving a request: that of its class, and up to twice as much by information gain."""
    return CLASS_VALUE[priority_class] * (1.0 + min(information_gain, 10.0) / 10.0)


def _dwell_ns(
    row: Mapping[str, Any],
    windows: Iterable[AntennaPass],
    antennas: Mapping[str, Antenna],
    as_of_ns: int,
    usual_ns: int,
) -> int:
    """Return the antenna time of a request: what it states, or the longest dwell below that which a window holds.

    Of a window counts what is ahead, before the deadline, and while a sensor in service is not closed.
    """
    if row["dwell_s"] is None:
        return usual_ns
    parts = [
        part
        for window in windows
        if window.source_id in antennas
        for part in antennas[window.source_id].open_parts(*window.ahead_ns(as_of_ns, row["deadline_time_ns"]))
    ]
    longest_ns = max((end_ns - start_ns for start_ns, end_ns in parts), default=0)
    fitting = [dwell_s for dwell_s in DWELLS_S if dwell_s <= row["dwell_s"] and dwell_s * SECOND_NS <= longest_ns]
    # Where none fits, the shortest one is asked for, so that the schedule states why it has no time.
    return round(max(fitting, default=min(DWELLS_S[0], row["dwell_s"])) * SECOND_NS)


def _request(row: Mapping[str, Any], observation_ns: int) -> Request:
    return Request(
        row["request_id"],
        row["norad_id"],
        row["priority_class"],
        row["deadline_time_ns"],
        row["requested_time_ns"],
        row["owner"],
        request_value(row["priority_class"], row["information_gain"]),
        observation_ns,
    )


def antenna_pass(row: Mapping[str, Any], mask_deg: float) -> AntennaPass:
    """Return the window of a row with `WINDOW_COLUMNS` and its ``pass_id``, from and to the elevation ``mask_deg``."""
    elevation_deg = row["max_elevation_deg"]
    return AntennaPass(
        row["pass_id"],
        row["source_id"],
        row["aos_time_ns"],
        row["tca_time_ns"],
        row["los_time_ns"],
        (row["azimuth_aos_deg"], mask_deg),
        (row["azimuth_tca_deg"], elevation_deg),
        (row["azimuth_los_deg"], mask_deg),
        # High passes measure better; above the half of the sky the difference no longer matters.
        quality=round(min(float(np.sin(np.radians(max(elevation_deg, 0.0)))), 0.5), 2),
    )


def _existing(row: Mapping[str, Any], windows: Iterable[AntennaPass]) -> list[Booking]:
    """Return the booking of an earlier plan, where a window still holds all of it."""
    if row["status"] != SCHEDULED:
        return []
    start_ns, end_ns = row["start_time_ns"], row["end_time_ns"]
    return [
        booked(row["request_id"], window, start_ns, end_ns - start_ns, row["beam"] or 0)
        for window in windows
        if window.source_id == row["source_id"] and window.aos_ns <= start_ns and end_ns <= window.los_ns
    ][:1]


def _row(request: Mapping[str, Any], plan: ObservationPlan, peaks_deg: Mapping[str, float]) -> dict[str, Any]:
    booking = plan.booked.get(request["request_id"])
    copied = {name: request[name] for name in _COPIED}
    if booking is None:
        return {**copied, "status": UNSERVED, "unserved_reason": plan.unserved[request["request_id"]]}
    return {
        **copied,
        "status": SCHEDULED,
        "pass_id": booking.pass_id,
        "source_id": booking.source_id,
        "beam": booking.beam,
        "start_time_ns": booking.start_ns,
        "end_time_ns": booking.end_ns,
        "azimuth_start_deg": round(booking.start_deg[0], 1),
        "azimuth_end_deg": round(booking.end_deg[0], 1),
        "max_elevation_deg": peaks_deg[booking.pass_id],
    }
