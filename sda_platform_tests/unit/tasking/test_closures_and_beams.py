"""Sensors that are closed for a time, and phased arrays that observe several objects at once."""

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.formats.closures import Closure, listed_closures
from sda_platform.formats.listings import ListingError
from sda_platform.tasking.antennas import Antenna, AntennaPass, AntennaTimeline
from sda_platform.tasking.checks import double_bookings
from sda_platform.tasking.outages import is_closed
from sda_platform.tasking.planning import planned
from sda_platform.tasking.resource import TaskingResource
from sda_platform.tasking.scheduling import NO_ANTENNA_TIME, SENSOR_OUT, Request, Rules, schedule
from sda_platform.tasking.tables import PASS_SCHEDULE
from sda_platform_tests.support.delta_tables import commit, lake_at

S = 1_000_000_000
HEADER = "source_id,start,end,reason\n"


def window(source_id: str, aos_s: int, los_s: int) -> AntennaPass:
    return AntennaPass(f"{source_id}-{aos_s}", source_id, aos_s * S, (aos_s + los_s) // 2 * S, los_s * S)


def request(name: str, priority_class: int = 1, deadline_s: int = 10_000) -> Request:
    return Request(name, 1, priority_class, deadline_s * S)


def tasking_of(home: Path) -> TaskingResource:
    found: dict[str, Any] = {"lists_in": str(home)}
    return TaskingResource(**found)


def test_nothing_is_planned_while_a_sensor_is_closed_and_what_was_moves() -> None:
    requests = [request("moves"), request("shifts"), request("only")]
    windows = {
        "moves": [window("a", 1000, 1300), window("a", 5000, 5300)],
        "shifts": [window("a", 950, 1500)],
        "only": [window("a", 1100, 1250)],
    }
    before = schedule(requests, windows, {"a": Antenna("a", 10.0, 5.0)}, 0)
    assert before.unserved == {}
    closed = Antenna("a", 10.0, 5.0, closed_ns=((1030 * S, 1270 * S),))
    after = schedule(requests, windows, {"a": closed}, 0, existing=before.booked.values())
    assert after.unserved == {"only": SENSOR_OUT}
    assert after.booked["moves"].start_ns >= 5000 * S
    assert 1270 * S <= after.booked["shifts"].start_ns <= 1380 * S


def test_a_booking_in_the_freeze_is_not_kept_when_the_sensor_closes() -> None:
    windows = {"x": [window("a", 100, 400), window("b", 5000, 5300)]}
    open_ = {name: Antenna(name, 10.0, 5.0) for name in "ab"}
    first = schedule([request("x")], windows, open_, 0)
    assert first.booked["x"].source_id == "a"
    closed = {**open_, "a": replace(open_["a"], closed_ns=((200 * S, 10_000 * S),))}
    again = schedule([request("x")], windows, closed, 0, existing=first.booked.values())
    assert again.booked["x"].source_id == "b"
    row = {"status": "scheduled", "source_id": "a", "start_time_ns": 190 * S, "end_time_ns": 310 * S}
    assert is_closed([row], closed, 0) and not is_closed([row], open_, 0) and not is_closed([row], closed, 310 * S)


def test_a_phased_array_observes_as_many_objects_at_once_as_it_has_beams() -> None:
    requests = [request(str(number)) for number in range(4)]
    windows = {each.request_id: [window("a", 1000, 1130)] for each in requests}
    found = schedule(requests, windows, {"a": Antenna("a", 0.0, math.inf, beams=3)}, 0)
    assert sorted(each.beam for each in found.booked.values()) == [0, 1, 2]
    assert list(found.unserved.values()) == [NO_ANTENNA_TIME]
    urgent = [*requests, request("red", 0)]
    windows["red"] = [window("a", 1000, 1130)]
    again = schedule(urgent, windows, {"a": Antenna("a", 0.0, math.inf, beams=3)}, 0, existing=found.booked.values())
    assert "red" in again.booked and len(again.booked) == 3
    fewer = schedule(requests, windows, {"a": Antenna("a", 0.0, math.inf, beams=2)}, 0, existing=found.booked.values())
    assert sorted(each.beam for each in fewer.booked.values()) == [0, 1], "the array has lost a beam"


@given(st.integers(0, 10**6), st.integers(1, 50), st.integers(1, 4))
def test_no_beam_has_two_observations_and_none_lies_in_a_closure(seed: int, count: int, beams: int) -> None:
    chance = random.Random(seed)
    starts_s = [chance.randrange(3000) for _ in range(chance.randrange(4))]
    closed = tuple((start * S, (start + chance.randrange(1, 600)) * S) for start in starts_s)
    antenna = Antenna("a", 10.0, 5.0, beams, closed) if beams == 1 else Antenna("a", 0.0, math.inf, beams, closed)
    requests = [request(f"r{n}", chance.randrange(3), chance.randrange(500, 3000)) for n in range(count)]
    windows = {
        each.request_id: [
            window("a", start, start + chance.randrange(60, 500))
            for start in (chance.randrange(2500) for _ in range(chance.randrange(4)))
        ]
        for each in requests
    }
    kept = schedule(requests[::2], windows, {"a": replace(antenna, closed_ns=())}, 0).booked.values()
    found = schedule(requests, windows, {"a": antenna}, 0, Rules(aging_ns=10**19), kept)
    assert sorted([*found.booked, *found.unserved]) == sorted(each.request_id for each in requests)
    timelines = [AntennaTimeline(antenna, beam) for beam in range(beams)]
    for booking in found.booked.values():
        timelines[booking.beam].add(booking)
        assert not any(start < booking.end_ns and booking.start_ns < end for start, end in closed)
    for request_id, reason in found.unserved.items():
        usable = [w for w in windows[request_id] if w.los_ns - w.aos_ns >= 120 * S]
        assert reason != SENSOR_OUT or (usable and closed)


@pytest.mark.parametrize("dwell_s", [240.0, 120.0, 60.0])
def test_a_dwell_is_as_long_as_a_sensor_in_service_permits(dwell_s: float) -> None:
    start_ns = 10**18

    def window_of(sensor: str, seconds: int) -> dict[str, Any]:
        times = {"aos_time_ns": start_ns, "tca_time_ns": start_ns + seconds * S // 2}
        directions = {f"azimuth_{name}_deg": 90.0 for name in ("aos", "tca", "los")} | {"max_elevation_deg": 45.0}
        named = {"pass_id": sensor, "norad_id": 1, "source_id": sensor, "los_time_ns": start_ns + seconds * S}
        return {**named, **times, **directions}

    facts = {"reason": "conjunction", "priority_class": 0, "owner": "x", "information_gain": 1.0, "dwell_s": dwell_s}
    requested = {"requested_time_ns": start_ns, "deadline_time_ns": start_ns + 400 * S}
    asked = [{"request_id": "r", "norad_id": 1, **facts, **requested}]
    how: dict[str, Any] = {"as_of_ns": start_ns, "observation_ns": 120 * S, "rules": Rules()}

    def length_s(windows: list[dict[str, Any]], *antennas: Antenna) -> float:
        _, (row,) = planned(asked, windows, [], {each.source_id: each for each in antennas}, {}, **how)
        return float(row["end_time_ns"] - row["start_time_ns"]) / S

    closed = Antenna("a", 10.0, 5.0, closed_ns=((start_ns, start_ns + 150 * S),))
    assert length_s([window_of("a", 300)], closed) == min(dwell_s, 120.0)
    in_service = Antenna("b", 10.0, 5.0)
    assert length_s([window_of("a", 300), window_of("b", 200)], in_service) == min(dwell_s, 120.0)
    assert length_s([window_of("b", 200), window_of("a", 300)], in_service, replace(closed, closed_ns=())) == dwell_s


def test_a_plan_of_rows_keeps_the_beam_of_an_observation() -> None:
    start_ns = 10**18
    times = {"aos_time_ns": start_ns, "tca_time_ns": start_ns + 90 * S, "los_time_ns": start_ns + 180 * S}
    directions = {f"azimuth_{name}_deg": 90.0 for name in ("aos", "tca", "los")} | {"max_elevation_deg": 45.0}
    windows = [{"pass_id": f"p{n}", "norad_id": n, "source_id": "a", **times, **directions} for n in (1, 2)]
    facts = {"reason": "stale", "priority_class": 2, "owner": "x", "information_gain": 1.0, "dwell_s": None}
    requested = {"requested_time_ns": start_ns, "deadline_time_ns": start_ns + 200 * S}
    requests = [{"request_id": f"r{n}", "norad_id": n, **facts, **requested} for n in (1, 2)]
    antennas = {"a": Antenna("a", 0.0, math.inf, beams=2)}
    how: dict[str, Any] = {"as_of_ns": start_ns - 60 * S, "observation_ns": 120 * S, "rules": Rules()}
    _, rows = planned(requests, windows, [], antennas, {}, **how)
    assert Counter(row["beam"] for row in rows) == {0: 1, 1: 1}
    _, again = planned(list(reversed(requests)), windows, rows, antennas, {}, **how)
    assert again == rows


def test_two_observations_of_one_beam_are_a_double_booking_and_of_two_beams_none(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    base = {"status": "scheduled", "op": "insert", "source_id": "radar-1"}
    times = {"start_time_ns": 10**18, "end_time_ns": 10**18 + 120 * S}
    beams = {"r1": 0, "r2": 1, "r3": None}
    commit(lake, PASS_SCHEDULE, [{**base, **times, "request_id": name, "beam": beam} for name, beam in beams.items()])
    log = lake.log(PASS_SCHEDULE)
    (problem,) = double_bookings(lake, log, log.commits(None))
    assert problem.startswith("1 double bookings") and "r1" in problem and "r3" in problem and "r2" not in problem


def test_closures_are_read_from_the_home_and_recorded_with_what_used_them(tmp_path: Path) -> None:
    resource = tasking_of(tmp_path)
    assert resource.antennas()["optical-maui"].closed_ns == ()
    without = resource.recorded()
    (tmp_path / "closures.csv").write_text(HEADER)
    assert resource.recorded() == without, "an empty list is none"
    (tmp_path / "closures.csv").write_text(
        f"{HEADER}optical-maui,2026-11-29T04:00:00Z,2026-11-29T09:30:00+00:00,clouds\n"
        "optical-maui,2026-11-30T04:00:00Z,2026-11-30T05:00:00Z,clouds\n"
    )
    assert len(resource.antennas()["optical-maui"].closed_ns) == 2
    assert resource.closures_listed()[0] == Closure("optical-maui", 1_795_924_800 * S, 1_795_944_600 * S, "clouds")
    recorded = resource.recorded()
    assert recorded != without
    (tmp_path / "closures.csv").unlink()
    then = resource.as_recorded(recorded)
    assert len(then.antennas()["optical-maui"].closed_ns) == 2, "a replay plans around the closures of its day"


def test_a_list_that_a_spreadsheet_wrote_is_read(tmp_path: Path) -> None:
    line = "optical-maui,2026-11-29T04:00:00Z,2026-11-29T05:00:00Z,clouds\r\n"
    (tmp_path / "closures.csv").write_text(f"\ufeff{HEADER.strip()}\r\n{line}", newline="")
    assert len(tasking_of(tmp_path).closures_listed()) == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("optical-maui,2026-11-29T04:00:00Z,2026-11-29T04:00:00Z,clouds", "line 2: end is 2026-11-29T04:00:00Z, must"),
        ("optical-maui,tonight,2026-11-29T04:00:00Z,clouds", "line 2: start is 'tonight', must be like"),
        (",2026-11-29T04:00:00Z,2026-11-29T05:00:00Z,clouds", "line 2: source_id is empty"),
        ("optical-maui,2026-11-29T04:00:00Z", "line 2: 2 fields, expected 4"),
        ("optical-hilo,2026-11-29T04:00:00Z,2026-11-29T05:00:00Z,x", "'optical-hilo' is not in the list of sensors"),
    ],
)
def test_a_wrong_closure_is_refused_with_its_line(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "closures.csv").write_text(f"{HEADER}{line}\n")
    with pytest.raises(ListingError) as refused:
        tasking_of(tmp_path).antennas()
    assert reason in str(refused.value) and str(tmp_path / "closures.csv") in str(refused.value)


def test_without_a_file_no_sensor_is_closed() -> None:
    assert listed_closures("") == []
