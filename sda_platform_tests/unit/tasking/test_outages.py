"""Sensors whose agents failed get no observations: what counts as an outage, and what becomes of their bookings."""

from typing import Any

import pytest

from sda_platform.formats.membership_events import ALIVE, DEAD, LEFT, STATUS_NAMES, SUSPECTED
from sda_platform.tasking.antennas import Antenna
from sda_platform.tasking.outages import EVIDENCE_S, SensorOutage, is_affected, outages, shown_outages
from sda_platform.tasking.planning import planned
from sda_platform.tasking.scheduling import Rules
from sda_platform_tests.support.segments import START_NS

MINUTE_NS = 60 * 10**9
SENSORS = ("radar-1", "radar-2")
ANTENNAS = {name: Antenna(name, 10.0, 5.0) for name in SENSORS}


def member(name: str, status: int, **more: object) -> dict[str, Any]:
    """A registered member that two observers hold for ``status``."""
    views = {"alive_views": 2, "other_views": 0} if status == ALIVE else {"alive_views": 0, "other_views": 2}
    times = {"since_time_ns": START_NS - MINUTE_NS, "own_report_time_ns": START_NS if status == ALIVE else None}
    return {"member": name, "is_registered": True, "status": STATUS_NAMES[status], **views, **times, **more}


OBSERVER = member("collector", ALIVE)


@pytest.mark.parametrize(
    ("found", "is_out"),
    [
        (member("radar-1", DEAD), True),
        (member("radar-1", LEFT), True),
        (member("radar-1", SUSPECTED), False),
        (member("radar-1", DEAD, alive_views=1, other_views=1), False),
        (member("radar-1", DEAD, other_views=0), False),
        (member("radar-1", DEAD, is_registered=False), False),
        (member("radar-1", ALIVE), False),
        (member("telescope-9", DEAD), False),
    ],
    ids=["failed", "left", "suspected", "disputed", "no current view", "not registered", "alive", "no sensor of ours"],
)
def test_a_sensor_is_out_when_all_who_report_hold_its_registered_agent_failed__TG25(
    found: dict[str, Any], is_out: bool
) -> None:
    out = outages([OBSERVER, found], SENSORS, START_NS)
    assert out == ({"radar-1": SensorOutage("radar-1", found["status"], START_NS - MINUTE_NS, 2)} if is_out else {})


def test_membership_that_nobody_reports_any_more_takes_no_sensor_out__TG26() -> None:
    fleet = [OBSERVER, member("radar-1", DEAD)]
    late_ns = START_NS + round(EVIDENCE_S * 1e9)
    assert set(outages(fleet, SENSORS, late_ns)) == {"radar-1"}
    assert outages(fleet, SENSORS, late_ns + 1) == {}
    assert outages([], SENSORS, START_NS) == {}


def request(name: str, norad_id: int) -> dict[str, Any]:
    facts = {"reason": "conjunction", "priority_class": 1, "owner": "catalogue", "information_gain": 1.0}
    times = {"requested_time_ns": START_NS, "deadline_time_ns": START_NS + 100 * MINUTE_NS}
    return {"request_id": name, "norad_id": norad_id, "dwell_s": None, **facts, **times}


def window(norad_id: int, sensor: str, after_min: int) -> dict[str, Any]:
    aos_ns = START_NS + after_min * MINUTE_NS
    times = {"aos_time_ns": aos_ns, "tca_time_ns": aos_ns + 3 * MINUTE_NS, "los_time_ns": aos_ns + 6 * MINUTE_NS}
    azimuths = {f"azimuth_{name}_deg": 90.0 for name in ("aos", "tca", "los")}
    named = {"pass_id": f"{sensor}-{norad_id}", "norad_id": norad_id, "source_id": sensor}
    return {**named, **times, **azimuths, "max_elevation_deg": 45.0}


def test_observations_of_a_sensor_that_failed_move_or_are_reported_with_the_reason__PW23() -> None:
    requests = [request("both", 1), request("only", 2), request("never", 3)]
    windows = [window(1, "radar-1", 5), window(1, "radar-2", 40), window(2, "radar-1", 20)]

    def plan(existing: list[dict[str, Any]], sensors: tuple[str, ...]) -> list[dict[str, Any]]:
        antennas = {name: ANTENNAS[name] for name in sensors}
        how: dict[str, Any] = {"as_of_ns": START_NS, "observation_ns": 2 * MINUTE_NS, "rules": Rules()}
        return planned(requests, windows, existing, antennas, {}, **how)[1]

    def served(rows: list[dict[str, Any]]) -> dict[str, str]:
        return {row["request_id"]: row.get("source_id") or row["unserved_reason"] for row in rows}

    before = plan([], SENSORS)
    assert served(before) == {"both": "radar-1", "only": "radar-1", "never": "no_window"}
    out = outages([OBSERVER, member("radar-1", DEAD)], SENSORS, START_NS)
    rows = [{"source_id": None, "end_time_ns": None, **row} for row in before]
    assert is_affected(rows, out, START_NS)
    after = plan(before, ("radar-2",))
    assert served(after) == {"both": "radar-2", "only": "sensor_out", "never": "no_window"}
    assert not is_affected([{"source_id": None, "end_time_ns": None, **row} for row in after], out, START_NS)
    (line,) = shown_outages(out, rows, after, START_NS)
    assert (line["sensor"], line["agent"], line["observers"]) == ("radar-1", "failed", 2)
    assert (line["observations moved"], line["without another sensor"]) == (1, 1)


def test_an_observation_that_has_ended_is_not_affected() -> None:
    out = {"radar-1": SensorOutage("radar-1", "failed", START_NS, 2)}
    done = {"request_id": "a", "status": "scheduled", "source_id": "radar-1", "end_time_ns": START_NS}
    assert not is_affected([done], out, START_NS)
