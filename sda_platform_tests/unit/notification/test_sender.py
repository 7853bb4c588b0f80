"""What channels are sent of the alerts of a lake: at least once under one key, each channel by itself."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from threading import Event, Thread
from typing import Any

import pytest
from click.testing import CliRunner

from sda_platform.cli.main import main
from sda_platform.conjunction.acknowledging import act
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.lake.lake import Lake
from sda_platform.notification import channel_state
from sda_platform.notification.late_channels import notification_problems
from sda_platform.notification.notifier import Notifier
from sda_platform.notification.rules import NotifyRules
from sda_platform.notification.sender import ChannelSender
from sda_platform.notification.situation import AlertReader
from sda_platform.observability.vitals.evaluation import evaluate
from sda_platform.observability.vitals.facts import Facts, Finding
from sda_platform.settings import Settings
from sda_platform_tests.support.crashes import crash_at, crashes
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.failure_webhook import FailureWebhook, failure_webhook
from sda_platform_tests.support.segments import after

FACTS = {"event_id": "an-event", "norad_id_1": 25544, "norad_id_2": 5, "object_name_1": "ISS", "object_name_2": "DEB",
         "tca_time_ns": after(86_400), "miss_distance_km": 0.3, "collision_probability": 2e-4, "risk": "red",
         "status": "open"}  # fmt: skip
RULES = """
[channels.desk]
url_variable = "DESK"
[channels.pager]
url_variable = "PAGER"
[[rules]]
name = "all"
channels = ["desk"]
[[rules]]
name = "red"
channels = ["pager"]
levels = ["red"]
"""


class Desk:
    """A home with rules, a lake with alerts, a receiver, and the senders of both channels on a clock of their own."""

    def __init__(self, home: Path, server: FailureWebhook) -> None:
        (home / "notify.toml").write_text(RULES)
        self.home, self.server, self.settings = home, server, Settings(home=home)
        self.lake: Lake = lake_at(home / "lake")
        self.now_s = 1_000_000.0
        self.log: list[str] = []
        self._sequence = 0
        self.start()

    def start(self) -> None:
        """Begin as a new process does: with what is in the home."""
        reader = AlertReader(self.lake, self.settings.landing_uri)
        self.senders = {
            name: ChannelSender(self.settings, reader, name, self.log.append, lambda: self.now_s)
            for name in ("desk", "pager")
        }

    def alert(self, op: str = "insert", **facts: Any) -> None:
        commit(self.lake, CONJUNCTION_ALERTS, [{**FACTS, "sequence": self._sequence, "op": op, **facts}])
        self._sequence += op == "insert"

    def round(self, channel: str = "desk", later_s: float = 5.0) -> None:
        self.now_s += later_s
        rules = NotifyRules.load(self.settings)
        assert rules is not None
        self.senders[channel].round(rules)

    @property
    def titles(self) -> list[str]:
        return [content["title"] for _, content in self.server.received]

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.server.received]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with failure_webhook() as server:
        url = f"json://127.0.0.1:{server.server_address[1]}/hook"
        monkeypatch.setenv("DESK", url)
        monkeypatch.setenv("PAGER", url)
        yield Desk(tmp_path, server)


def test_each_revision_is_sent_to_whom_a_rule_sends_it(desk: Desk) -> None:
    desk.round()
    assert desk.titles == []
    desk.alert(risk="yellow")
    desk.round()
    desk.round()
    desk.round("pager")
    assert desk.titles == ["yellow begun: ISS – DEB, in 1.0 d"]
    ((_, content),) = desk.server.received
    assert "ISS (25544) – DEB (5)" in content["message"] and "miss 0.300 km, Pc 2.0e-04" in content["message"]
    desk.alert("retract", sequence=0)
    desk.alert(risk="red")
    desk.round()
    desk.round("pager")
    desk.alert("retract", sequence=1)
    desk.round("pager")
    assert [title.partition(":")[0] for title in desk.titles[1:]] == ["red raised", "red begun", "red withdrawn"]


def test_alerts_of_one_round_are_one_message_with_the_highest_first(desk: Desk) -> None:
    rows = [{**FACTS, "event_id": f"e{n}", "risk": "red" if n == 20 else "yellow", "sequence": 0, "op": "insert",
             "object_name_2": f"DEB {n}"} for n in range(30)]  # fmt: skip
    commit(desk.lake, CONJUNCTION_ALERTS, rows)
    desk.round()
    ((_, content),) = desk.server.received
    assert content["title"] == "red begun: ISS – DEB 20, in 1.0 d and 29 more"
    assert content["message"].startswith("red, begun: ISS (25544) – DEB 20 (5)") and "and 15 more" in content["message"]


def test_a_crash_at_any_point_repeats_a_message_under_its_key_and_loses_none(desk: Desk) -> None:
    desk.alert()
    for crash in crashes():
        desk.start()
        with crash:
            desk.round()
    desk.start()
    desk.round()
    assert len(set(desk.keys)) == 1 and len(desk.keys) >= 1
    desk.alert("retract", sequence=0)
    desk.alert()
    with crash_at("notify.sent"):
        desk.round()
    desk.start()
    desk.alert("retract", sequence=1)
    desk.round()
    desk.round()
    revised, again, gone = desk.keys[-3:]
    assert revised == again != gone, "what came meanwhile is a message of its own"
    assert desk.titles[-1].startswith("red withdrawn")


def test_a_channel_that_fails_gets_its_message_later_and_then_what_holds(desk: Desk) -> None:
    desk.alert()
    desk.server.statuses.extend([500, 503])
    desk.round()
    desk.round(later_s=1)
    assert len(desk.server.raw) == 1, "a pause comes after a failure"
    desk.round(later_s=5)
    desk.alert("retract", sequence=0)
    desk.alert()
    desk.alert("retract", sequence=1)
    assert desk.titles == []
    desk.round(later_s=300)
    desk.round()
    assert [title.partition(":")[0] for title in desk.titles] == ["red begun", "red withdrawn"]
    keys = [headers["idempotency-key"] for headers, _ in desk.server.raw]
    assert len(set(keys)) == 2 and keys[0] == keys[1] == keys[2]
    assert len(desk.log) == 2, "each problem once"


def test_a_channel_that_fails_is_red_and_the_other_one_reports_it(desk: Desk) -> None:
    desk.alert()
    desk.server.statuses.append(500)
    desk.round("pager")
    desk.round("desk", later_s=10)
    assert notification_problems(desk.settings, desk.now_s) == []
    desk.server.statuses.append(502)
    desk.round("pager", later_s=121)
    (late,) = notification_problems(desk.settings, desk.now_s)
    assert late.channel == "pager" and "has taken no message for 2 min" in late.text and "502" in late.text
    desk.round("desk")
    desk.round("desk")
    assert [title for title in desk.titles if "pager" in title] == [
        title for title in desk.titles if title.startswith("channel pager has taken no message for 2 min")
    ] and len(desk.titles) == 2
    readings = {each.vital: each for each in evaluate(Facts(0, unnotified=[Finding(*late)]), desk.settings.vitals)}
    assert readings["people_are_notified"].problems == [late.text]
    desk.round("pager", later_s=300)
    desk.round("desk")
    assert desk.titles[-1] == "channel pager takes messages again"
    assert notification_problems(desk.settings, desk.now_s) == []


def test_a_message_that_is_refused_for_good_is_recorded_rings_elsewhere_and_lets_the_next_pass(desk: Desk) -> None:
    desk.alert()
    desk.server.statuses.append(413)
    desk.round("pager")
    assert desk.titles == [] and "refuses a message for good" in desk.log[-1]
    desk.start()
    desk.round("desk")
    (title,) = desk.titles
    assert (
        title.startswith("red begun")
        and "channel pager refused a message for good" in desk.server.received[0][1]["message"]
    )
    desk.round("desk")
    assert len(desk.titles) == 1, "it rings once"
    (found,) = notification_problems(desk.settings, desk.now_s)
    assert "413" in found.text and "red begun" in found.text
    (row,) = json.loads(CliRunner().invoke(main, ["--home", str(desk.home), "channel", "list", "--json"]).output)[1:]
    assert row["channel"] == "pager" and "refused for good" in row["problem"] and row["waits_s"] == 0
    desk.alert("retract", sequence=0)
    desk.round("pager")
    assert desk.titles[-1].startswith("red withdrawn"), "the next one passes"
    assert notification_problems(desk.settings, desk.now_s + 90_000) == []


def test_rules_that_cannot_be_used_are_red_and_the_earlier_ones_stay_in_force(desk: Desk) -> None:
    (desk.home / "notify.toml").write_text("nonsense")
    (found,) = notification_problems(desk.settings, desk.now_s)
    assert found.channel == "rules" and "notify.toml: is no TOML" in found.text


def test_a_full_disk_keeps_no_message_from_people(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    desk.alert()
    with monkeypatch.context() as patch:
        patch.setattr(channel_state, "store", full)
        desk.round()
        desk.round()
    assert len(desk.titles) == 1
    desk.round()
    assert len(desk.titles) == 1


def test_an_acknowledged_alert_does_not_escalate(desk: Desk) -> None:
    (desk.home / "notify.toml").write_text(f'{RULES}unacknowledged_for = "0s"\n')
    desk.alert()
    act(desk.lake, desk.settings.landing_uri, alert_id="an-event", revision=0, by="ann", comment="")
    desk.round("pager")
    assert desk.titles == []
    desk.alert("retract", sequence=0)
    desk.alert(event_id="other", sequence=0)
    desk.round("pager")
    assert len(desk.titles) == 1


def until(is_so: Callable[[], bool]) -> None:
    waiting = Event()
    for _ in range(2000):
        if is_so():
            return
        waiting.wait(0.01)
    raise AssertionError("it never happened")


@contextmanager
def notifying(desk: Desk) -> Iterator[None]:
    stop = Event()
    notifier = Notifier(desk.settings, desk.lake, desk.log.append)
    thread = Thread(target=notifier.keep_sending, args=(stop, 0.02), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)


def test_a_mail_server_that_hangs_delays_nobody_else(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts the connection and says nothing."""
    with create_server(("127.0.0.1", 0)) as hung:
        monkeypatch.setenv("PAGER", f"mailto://127.0.0.1:{hung.getsockname()[1]}?from=a@example.org&to=b@example.org")
        desk.alert()
        with notifying(desk):
            connection, _ = hung.accept()
            until(lambda: len(desk.titles) == 1)
            desk.alert("retract", sequence=0)
            until(lambda: len(desk.titles) == 2)
            assert channel_state.load(desk.home, "pager").pending is not None, "it still waits for its server"
            connection.close()


def test_the_commands_list_and_test_the_channels(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def sda(*arguments: str) -> Any:
        return CliRunner().invoke(main, ["--home", str(desk.home), *arguments])

    (desk.home / "lake").mkdir(exist_ok=True)
    assert json.loads(sda("channel", "test", "--json").output) == [
        {"channel": "desk", "result": "taken"}, {"channel": "pager", "result": "taken"}
    ]  # fmt: skip
    monkeypatch.delenv("PAGER")
    answer = sda("channel", "test", "pager")
    assert (
        answer.exit_code == 1 and "not taken: channel pager: the environment variable PAGER is not set" in answer.output
    )
    rows = json.loads(sda("channel", "list", "--json").output)
    assert [(row["channel"], row["service"], row["rules"]) for row in rows] == [
        ("desk", "JSON", "all"), ("pager", "unknown", "red")
    ]  # fmt: skip
    assert "there is no channel 'x': desk, pager" in sda("channel", "test", "x").output
    (desk.home / "notify.toml").unlink()
    assert "no channel is configured: there is no" in sda("channel", "list").output
    answer = sda("channel", "test")
    assert answer.exit_code == 1 and "no channel is configured: there is no" in answer.output
