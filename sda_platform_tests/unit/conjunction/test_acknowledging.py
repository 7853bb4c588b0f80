"""Acknowledgements of alerts: from the command through the landing zone to where people read them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sda_platform.cli.alert.message import alert_message
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.conjunction import acknowledging
from sda_platform.conjunction.acknowledgement_decoding import decode
from sda_platform.conjunction.acknowledging import assignee, known_acknowledgements
from sda_platform.conjunction.report import report
from sda_platform.conjunction.tables import (
    ACKNOWLEDGEMENTS_FEED,
    ALERT_ACKNOWLEDGEMENTS,
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
)
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import AlertEntry, canonical
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.landing.record_rows import pending_rows
from sda_platform.landing.zone import LandingZone
from sda_platform.runtime.catalogue_source import LakeSource
from sda_platform_tests.support.delta_tables import commit, lake_at, row
from sda_platform_tests.support.segments import START_NS, after

ALERT = "3f2a-event"
FACTS = {"event_id": ALERT, "norad_id_1": 25544, "norad_id_2": 5, "tca_time_ns": after(3600), "risk": "red"}


def sda(home: Path, *arguments: str) -> str:
    answer = CliRunner().invoke(main, ["--home", str(home), *arguments])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An alert with two revisions, at the subscriber; mission time stands still."""
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    lake = lake_at(tmp_path / "lake")
    states = {"state_1": [7000.0, 0, 0, 0, 7.5, 0], "state_2": [7000.1, 0, 0, 0, 0, 7.5]}
    covariances = {name: [1e-4 if n in {0, 2, 5, 9, 14, 20} else 0.0 for n in range(21)] for name in
                   ("covariance_1", "covariance_2")}  # fmt: skip
    miss = dict.fromkeys((c.name for c in CONJUNCTION_ASSESSMENTS.columns if "relative_velocity_" in c.name), 1.0)
    types = miss | {"object_type_1": "payload", "object_type_2": "debris", "probability_method": "FOSTER-1992"}
    commit(lake, CONJUNCTION_ASSESSMENTS, [{**FACTS, **states, **covariances, **types, "sequence": 0, "op": "insert"}])
    entries = [(0, "insert"), (0, "retract"), (1, "insert")]
    commit(lake, CONJUNCTION_ALERTS, [{**FACTS, "sequence": n, "op": op, "status": "open"} for n, op in entries])
    body = canonical({**row(CONJUNCTION_ALERTS, **FACTS, status="open"), "object_name_1": "ISS"})
    SqliteSubscriber(tmp_path / "subscriber.sqlite").apply("b", [AlertEntry(ALERT, 1, "insert", body)])
    return lake


def landed(lake: Lake, home: Path) -> None:
    """What the asset does with the zone, without an engine."""
    zone = LandingZone(str(home / "landing"), ACKNOWLEDGEMENTS_FEED)
    for segment in zone.pending():
        loaded = zone.read(segment)
        assert loaded.meta is not None
        commit(lake, ALERT_ACKNOWLEDGEMENTS, decode(loaded.data, loaded.meta).to_pylist())
        (Path(str(zone.pending_path(segment.name)))).unlink()


def test_an_acknowledgement_is_seen_at_once_and_after_it_was_consumed(lake: Lake, tmp_path: Path) -> None:
    said = sda(tmp_path, "alert", "ack", "3f2a", "--by", "ann", "--comment", "manoeuvre planned")
    assert said == f"alert {ALERT}: acknowledged revision 1 by ann\n"
    assert known_acknowledgements(lake) == {}
    (listed,) = json.loads(sda(tmp_path, "alert", "list", "--json"))
    assert (listed["acknowledged_by"], listed["comment"]) == ("ann", "manoeuvre planned")
    landed(lake, tmp_path)
    sda(tmp_path, "alert", "ack", "3f2a", "--by", "bob")
    (listed,) = json.loads(sda(tmp_path, "alert", "list", "--json"))
    assert listed["acknowledged_by"] == "bob", "the last one counts"
    shown = sda(tmp_path, "alert", "list").split()
    assert "ann" not in shown and "bob" in shown
    assert [each["acknowledged_by"] for each in known_acknowledgements(lake, str(tmp_path / "landing"))[ALERT]] == [
        "ann",
        "bob",
    ]


def test_one_that_is_consumed_while_both_places_are_read_is_found(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sda(tmp_path, "alert", "ack", "3f2a", "--by", "ann")
    reads: list[str] = []

    def then_consumed(name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        def first(*arguments: Any) -> Any:
            found = read(*arguments)
            reads.append(name)
            if len(reads) == 1:
                landed(lake, tmp_path)
            return found

        return first

    monkeypatch.setattr(acknowledging, "pending_rows", then_consumed("pending", pending_rows))
    monkeypatch.setattr(TableLog, "rows", then_consumed("table", TableLog.rows))
    assert [each["acknowledged_by"] for each in known_acknowledgements(lake, str(tmp_path / "landing"))[ALERT]] == [
        "ann"
    ]
    assert reads[:2] == ["pending", "table"]


def test_ui_and_exports_show_it(lake: Lake, tmp_path: Path) -> None:
    sda(tmp_path, "alert", "ack", "3f2a", "--by", "ann", "--comment", "manoeuvre\nplanned")
    landed(lake, tmp_path)
    assert b"COMMENT ACKNOWLEDGED BY ann: manoeuvre planned" in alert_message(lake, "3f2a", "kvn")
    (served,) = LakeSource(lake, str(tmp_path / "landing")).alerts()
    assert [each["comment"] for each in served["acknowledgements"]] == ["manoeuvre\nplanned"]
    assert "| ann |" in str((report(lake, tmp_path).metadata or {})["acknowledged"])
    assert "acknowledged revision 1 by ann" in sda(tmp_path, "alert", "trace", "3f2a")


def test_a_withdrawn_or_unknown_alert_cannot_be_acknowledged(lake: Lake, tmp_path: Path) -> None:
    commit(lake, CONJUNCTION_ALERTS, [{**FACTS, "sequence": 1, "op": "retract"}])
    for alert, words in (("3f2a", f"alert {ALERT} is withdrawn"), ("zz", "no alert begins with 'zz'")):
        answer = CliRunner().invoke(main, ["--home", str(tmp_path), "alert", "ack", alert])
        assert answer.exit_code == 1 and words in answer.output


def test_alerts_are_assigned_and_commented_and_the_hand_over_log_has_it_all(lake: Lake, tmp_path: Path) -> None:
    said = sda(tmp_path, "alert", "assign", "3f2a", "bob", "--by", "ann", "--comment", "my shift ends")
    assert said == f"alert {ALERT}: assigned to bob by ann\n"
    landed(lake, tmp_path)
    sda(tmp_path, "alert", "comment", "3f2a", "called the operator", "--by", "bob")
    (listed,) = json.loads(sda(tmp_path, "alert", "list", "--json"))
    assert (listed["assigned_to"], listed["acknowledged_by"], listed["comment"]) == ("bob", "", "")
    assert known_acknowledgements(lake, str(tmp_path / "landing")) == {}, "neither is an acknowledgement"
    sda(tmp_path, "alert", "ack", "3f2a", "--by", "bob")
    (listed,) = json.loads(sda(tmp_path, "alert", "list", "--json"))
    assert (listed["assigned_to"], listed["acknowledged_by"]) == ("bob", "bob")
    assert "bob → bob" in " ".join(sda(tmp_path, "alert", "list").split())
    log = [line.split("Z ", 1)[1] for line in sda(tmp_path, "alert", "show", "3f2a").splitlines() if "Z " in line]
    assert log[-3:] == [
        "ann assigned to bob: my shift ends", "bob acknowledged revision 1", "bob commented: called the operator"
    ]  # fmt: skip
    assigned = [{"action": "assign", "assigned_to": name} for name in ("bob", "")]
    assert assignee([*assigned, {"action": "comment", "assigned_to": ""}]) == "", "to nobody"


def test_an_acknowledgement_of_an_earlier_release_is_one(lake: Lake, tmp_path: Path) -> None:
    old = {"alert_id": ALERT, "revision": 1, "acknowledged_by": "ann", "comment": "", "acknowledged_time_ns": START_NS}
    commit(lake, ALERT_ACKNOWLEDGEMENTS, [{**old, "action": None, "assigned_to": None, "record_number": 0}])
    zone = LandingZone(str(tmp_path / "landing"), ACKNOWLEDGEMENTS_FEED)
    line = json.dumps({**old, "acknowledged_by": "bob"}).encode() + b"\n"
    zone.seal_at(START_NS, "old.acks", line, "acknowledgements-jsonl")
    found = known_acknowledgements(lake, str(tmp_path / "landing"))[ALERT]
    assert [(each["acknowledged_by"], each["action"], each["assigned_to"]) for each in found] == [
        ("ann", "acknowledge", ""), ("bob", "acknowledge", "")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("ack", "3f2a", "--by", "ann\nbob"), "is no name"),
        (("ack", "3f2a", "--by", " "), "the name is empty"),
        (("ack", "3f2a", "--by", "x" * 101), "is no name"),
        (("ack", "3f2a", "--comment", "x" * 4097), "comment has 4097 characters, at most 4096"),
        (("assign", "3f2a", "b\x1b[0m"), "is no name"),
        (("comment", "3f2a", ""), "a comment is empty"),
    ],
)
def test_what_would_become_a_dead_letter_is_refused_at_once(
    lake: Lake, tmp_path: Path, arguments: tuple[str, ...], reason: str
) -> None:
    answer = CliRunner().invoke(main, ["--home", str(tmp_path), "alert", *arguments])
    assert answer.exit_code == 1 and reason in answer.output
    assert known_acknowledgements(lake, str(tmp_path / "landing")) == {}
