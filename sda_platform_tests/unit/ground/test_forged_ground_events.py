"""Where commanders are named, only what they signed is sent: whatever else is in the log, and in any order."""

from dataclasses import asdict, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from sda_platform.formats.ground_events import ACCEPTED, CONFIRMED, DISPATCHED, GroundEvent
from sda_platform.ground.commanders import Commanders
from sda_platform.ground.commands import Command
from sda_platform.ground.issued_commands import IssuedCommands
from sda_platform.ground.known_commands import KnownCommands
from sda_platform_tests.support.commanders import COMMANDERS, by, log_of, request, sent
from sda_platform_tests.support.ground_loop import ground_at
from sda_platform_tests.support.segments import START_NS, after


def of_uplink(request: GroundEvent, event: str, **changed: Any) -> GroundEvent:
    return replace(request, event=event, uplink="primary", token=1, number=1, person="", signature="", **changed)


def queued(*events: GroundEvent, commanders: Commanders = COMMANDERS) -> list[tuple[str, str, float | None]]:
    known = KnownCommands()
    known.add(asdict(each) for each in events)
    return [(each.command_id, each.kind, each.azimuth_deg) for each in known.queue(9, 1, commanders).pending]


@pytest.mark.parametrize("state", [ACCEPTED, DISPATCHED])
def test_a_takeover_sends_only_what_commanders_requested__46_3(state: str) -> None:
    emergency, repoint = by("ann").issued(request("c")), by("ann").issued(request("r", "REPOINT"))
    confirmed = by("bob").confirmed(asdict(emergency), START_NS)
    assert queued(of_uplink(request("forged", "EMERGENCY_ABORT"), state)) == []
    assert queued(emergency, of_uplink(emergency, state)) == [], "one person alone"
    forged = replace(confirmed, person="scheduler")
    assert queued(emergency, forged, of_uplink(emergency, state)) == []
    assert queued(emergency, confirmed, of_uplink(emergency, state)) == [("c", "SAFE_MODE", None)]
    changed = of_uplink(repoint, state, azimuth_deg=200.0)
    assert queued(repoint, changed) == [("r", "REPOINT", 10.0)], "as it was signed"
    assert queued(repoint, of_uplink(repoint, state, kind="HOUSEKEEPING")) == [("r", "REPOINT", 10.0)]


def test_of_several_valid_requests_a_takeover_sends_the_one_that_was_accepted() -> None:
    first = by("ann").issued(request("r", "REPOINT"))
    second = by("ann").issued(replace(request("r", "REPOINT"), issued_time_ns=after(1), azimuth_deg=50.0))
    assert queued(second, first, of_uplink(second, ACCEPTED)) == [("r", "REPOINT", 50.0)]
    assert queued(second, first, of_uplink(second, ACCEPTED, azimuth_deg=60.0)) == [("r", "REPOINT", 10.0)]


def test_without_commanders_a_takeover_sends_what_was_issued() -> None:
    issued = request("r", "REPOINT")
    assert queued(issued, of_uplink(issued, ACCEPTED, azimuth_deg=200.0), commanders={}) == [("r", "REPOINT", 10.0)]
    assert queued(of_uplink(issued, ACCEPTED), commanders={}) == [("r", "REPOINT", 10.0)], "its request is not known"


def test_a_station_executes_nothing_by_a_forged_event_after_a_takeover__46_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ground_at(tmp_path, monkeypatch) as ground:
        one = log_of(ground, "ann").issue("SAFE_MODE", expires_in_s=600, command_id="one")
        ground.log().append([of_uplink(request("none", "EMERGENCY_ABORT"), ACCEPTED), of_uplink(one, ACCEPTED)])
        ground.uplink("primary", commanders=COMMANDERS)
        ground.run(1)
        assert ground.executed() == []


def test_a_repeated_emergency_is_sent_in_any_order_of_its_events__46_3() -> None:
    first = by("ann").issued(request("c"))
    again = by("ann").issued(replace(request("c"), issued_time_ns=after(1), expires_time_ns=after(700)))
    for issued in (first, again):
        confirmed = by("bob").confirmed(asdict(issued), START_NS)
        copy, forged = replace(first, person="", signature=""), replace(first, event=CONFIRMED, person="bob")
        for events in permutations([first, again, confirmed, copy, forged]):
            assert sent(list(events)) == (["c"], {})
            one_by_one = IssuedCommands(COMMANDERS)
            taken: list[Command] = []
            for each in events:
                one_by_one.add([asdict(each)])
                taken += one_by_one.take_while(lambda _: True)
            assert [(each.command_id, each.expires_ns) for each in taken] == [("c", issued.expires_time_ns)]


def test_a_repeated_request_expires_with_the_last_of_its_events() -> None:
    issued = IssuedCommands(COMMANDERS)
    requests = [by("ann").issued(replace(request("c"), expires_time_ns=after(at))) for at in (600, 700)]
    issued.add(map(asdict, requests))
    assert issued.take_expired(after(650)) == []
    assert [each.command_id for each in issued.take_expired(after(700))] == ["c"]


def test_a_copy_without_signature_takes_no_command_back__46_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ground_at(tmp_path, monkeypatch) as ground:
        ground.uplink("primary", commanders=COMMANDERS)
        ground.log().append([replace(request("c"), event_time_ns=START_NS - 1)])
        issued = log_of(ground, "ann").issue("SAFE_MODE", expires_in_s=600, command_id="c")
        ground.run(1)
        ground.log().append([replace(issued, person="", signature="")])
        ground.run(1)
        assert ground.rows()["c"]["state"] == "issued"
        log_of(ground, "bob").confirm("c")
        ground.run(1)
        assert ground.executed() == ["c"]
