"""Where commanders are named, only what they signed is sent: whatever else is in the log, and in any order."""

from dataclasses import asdict, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from sda_platform.formats.ground_events import ACCEPTED, CONFIRMED, DISPATCHED, GroundEvent
from sda_platform.ground.command_states import EVENT_COLUMNS, FINAL, command_of
from sda_platform.ground.commanders import Commanders
from sda_platform.ground.commands import Command
from sda_platform.ground.event_keys import EventKeys, is_signed
from sda_platform.ground.issued_commands import IssuedCommands
from sda_platform.ground.known_commands import KnownCommands
from sda_platform.ground.tables import GROUND_EVENTS
from sda_platform.ground.uplink_events import UplinkEvents
from sda_platform.orchestration.webhooks import SigningKeys
from sda_platform_tests.support.commanders import COMMANDERS, by, log_of, request, sent
from sda_platform_tests.support.delta_tables import commit
from sda_platform_tests.support.ground_loop import ground_at
from sda_platform_tests.support.segments import START_NS, after

OURS = EventKeys(SigningKeys("SDA_STATION_KEYS", "one:whsec_" + "A" * 32))
OTHERS = EventKeys(SigningKeys("SDA_STATION_KEYS", "one:whsec_" + "B" * 32))


def of_uplink(request: GroundEvent, event: str, **changed: Any) -> GroundEvent:
    return replace(request, event=event, uplink="primary", token=1, number=1, person="", signature="", **changed)


def queued(*events: GroundEvent, commanders: Commanders = COMMANDERS) -> list[tuple[str, str, float | None]]:
    known = KnownCommands(EventKeys(), lambda: START_NS)
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


@pytest.mark.parametrize("end", FINAL)
@pytest.mark.parametrize("when", ["before", "with", "after"])
def test_a_forged_end_keeps_no_command_from_its_station__46_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, when: str
) -> None:
    """Also where it looks like that of an uplink with another key, or like one of another command."""
    with ground_at(tmp_path, monkeypatch) as ground:
        over = replace(request("c"), expires_time_ns=0)
        events = UplinkEvents("atlantic", "primary", ground.now_ns, OTHERS)
        forged = [of_uplink(over, end, detail="executed"), events.of_command(command_of(asdict(over)), end, 9)]
        primary = ground.uplink("primary", event_keys=OURS)
        if when == "before":
            ground.log().append(forged)
            ground.run(0.1)
        ground.log().append([request("c")])
        ground.log().append(forged if when == "with" else [])
        if when == "after":
            primary._next_send_s = 1.0
            ground.run(0.5)
            ground.log().append(forged)
            ground.run(0.1)
            ground.uplink("primary", event_keys=OURS)  # it takes its queue from the log
        ground.run(2)
        assert ground.executed() == ["c"]


def test_an_end_that_an_uplink_signed_counts_for_the_other_one__46_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ground_at(tmp_path, monkeypatch) as ground:
        ground.log().append([request("c"), replace(request("d"), expires_time_ns=after(1))])
        ground.uplink("primary", event_keys=OURS)
        ground.run(1)
        assert sorted(ground.executed()) == ["c", "d"]
        lake, consumed = ground.lake, ground.log().new_events()
        rows = [{name: each[name] for name in EVENT_COLUMNS} for each in consumed]
        commit(lake, GROUND_EVENTS, rows)
        (Path(ground.landing) / "ground").rename(tmp_path / "consumed")
        assert len(ground.log().new_events()) == len(rows)
        keys = OURS.now()
        ends = [each for each in ground.log().new_events() if each["event"] in FINAL]
        assert [is_signed(each, keys) for each in ends] == [True, True], "also as the table has them"
        assert not any(is_signed({**each, "detail": "lost"}, keys) for each in ends)
        again = ground.uplink("primary", event_keys=OURS)
        sent = list[str]()
        monkeypatch.setattr(again._link, "send", lambda command, _: sent.append(command.command_id))
        ground.run(2)
        assert sent == []


def test_ends_from_before_there_were_keys_cost_nothing() -> None:
    known = KnownCommands(OURS, lambda: after(1))
    past, ahead = replace(request("past"), expires_time_ns=after(1)), request("ahead")
    events = [past, ahead, *(of_uplink(each, "acknowledged") for each in (past, ahead))]
    assert known.add(asdict(each) for each in events) == ["past"]
    assert [each["command_id"] for each in known.requests()] == ["ahead"], "its station knows whether it executed it"


def test_while_the_file_of_keys_is_gone_no_end_counts_and_none_is_signed(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("one:whsec_" + "A" * 32)
    file.chmod(0o600)
    keys = EventKeys(SigningKeys("SDA_STATION_KEYS", str(file)))
    end = keys.signed(of_uplink(request("c"), "acknowledged"))
    assert is_signed(asdict(end), keys.now())
    file.unlink()
    assert keys.signed(replace(end, signature="")).signature == ""
    assert not is_signed(asdict(end), keys.now())
