"""What a schedule shows to people: service and antenna time of each owner, use and coverage of each sensor."""

from typing import Any

import numpy as np

from sda_platform.tasking.pictures import coverage_map
from sda_platform.tasking.reports import owner_shares, sensor_use, shown_schedule
from sda_platform_tests.support.segments import START_NS

MINUTE_NS = 60_000_000_000


def task(number: int, owner: str, sensor: str | None = "radar-1", start_min: int = 0) -> dict[str, Any]:
    """A row of the schedule; without a sensor it is not served."""
    row = {"request_id": f"r{number}", "norad_id": number, "owner": owner, "priority_class": 1}
    if sensor is None:
        return {**row, "status": "unserved", "unserved_reason": "no_window"}
    start_ns = START_NS + start_min * MINUTE_NS
    times = {"start_time_ns": start_ns, "end_time_ns": start_ns + 2 * MINUTE_NS}
    directions = {"azimuth_start_deg": 10.0, "azimuth_end_deg": 90.0, "max_elevation_deg": 40.0}
    return {**row, "status": "scheduled", "source_id": sensor, **times, **directions}


def window(number: int, sensor: str, start_min: int) -> dict[str, Any]:
    start_ns = START_NS + start_min * MINUTE_NS
    return {"norad_id": number, "source_id": sensor, "aos_time_ns": start_ns, "los_time_ns": start_ns + 10 * MINUTE_NS}


TASKS = [task(1, "north"), task(2, "north", start_min=70), task(3, "south", "radar-2"), task(4, "south", None)]
WINDOWS = [window(1, "radar-1", 0), window(1, "radar-1", 90), window(2, "radar-1", 55), window(3, "radar-3", 200)]


def test_owners_are_listed_with_their_service_and_share_of_the_antenna_time_worst_first__PW6() -> None:
    assert [tuple(each.values()) for each in owner_shares(TASKS)] == [
        ("south", 2, 1, "50 %", "2 min", "33 %"),
        ("north", 2, 2, "100 %", "4 min", "67 %"),
    ]
    unserved = owner_shares([task(1, "north", None)])
    assert unserved[0]["share of the antenna time"] == "0 %"


def test_each_sensor_is_listed_with_what_it_could_see_and_what_it_observes() -> None:
    scheduled = [each for each in TASKS if each["status"] == "scheduled"]
    assert [tuple(each.values()) for each in sensor_use(WINDOWS, scheduled)] == [
        ("radar-1", 3, 2, 2, 2, "4 min"),
        ("radar-2", 0, 0, 1, 1, "2 min"),
        ("radar-3", 1, 1, 0, 0, "0 min"),
    ]


def test_a_materialization_shows_fairness_coverage_and_pictures() -> None:
    facts = shown_schedule(TASKS, WINDOWS, START_NS)
    assert facts["class_1_served"] == "3 of 4" and facts["unserved_no_window"] == 1
    assert "radar-3" in facts["coverage"].md_str and "south" in facts["fairness"].md_str
    for name in ("coverage_map", "gantt_chart", "sky_plot"):
        assert "data:image/png;base64," in facts[name].md_str
    assert shown_schedule([], [], START_NS) == {}


def test_a_window_that_began_before_the_plan_counts_from_its_first_hour() -> None:
    (in_view,) = coverage_map([window(1, "radar-1", -5)], [], START_NS).axes[0].images
    assert np.asarray(in_view.get_array()).tolist() == [[1.0]]
