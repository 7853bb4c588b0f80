"""Rules of notification: what they select, when they are quiet, when they escalate, and what they refuse."""

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.lake.errors import Misconfigured
from sda_platform.notification.due import Followed, due
from sda_platform.notification.notify_file import CHANGES, NotifyFile, RuleEntry
from sda_platform.notification.quiet_hours import is_quiet
from sda_platform.notification.rules import NotifyRules
from sda_platform.notification.situation import AlertsNow
from sda_platform.settings import Settings
from sda_platform.units import MINUTE_NS, SECOND_NS
from sda_platform_tests.support.segments import START_NS

CHANNELS = '[channels.desk]\nurl_variable = "DESK"\n'
TCA_NS = START_NS + 10 * 86_400 * SECOND_NS
RANK = {"yellow": 1, "red": 2}


def rules_of(**rule: Any) -> NotifyRules:
    content = {"channels": {"desk": {"url_variable": "DESK"}}, "rules": [{"name": "r", "channels": ["desk"], **rule}]}
    return NotifyRules(NotifyFile.model_validate(content))


def alert_of(level: str, sequence: int, **facts: Any) -> dict[str, Any]:
    common = {"event_id": "e", "op": "insert", "status": "open", "norad_id_1": 25544, "norad_id_2": 5,
              "object_name_1": "ISS (ZARYA)", "object_name_2": "DEB", "tca_time_ns": TCA_NS}  # fmt: skip
    return {**common, "risk": level, "sequence": sequence, **facts}


class Told:
    """One rule, asked moment after moment: what it sends of alert `e`, and what it follows meanwhile."""

    def __init__(self, **rule: Any) -> None:
        self.rules = rules_of(**rule)
        self.rule: RuleEntry = self.rules.file.rules[0]
        self.followed: Followed = {}

    def at(self, minute: float, alert: Mapping[str, Any] | None, acknowledged: int = -1) -> list[str]:
        now = AlertsNow(START_NS + round(minute * MINUTE_NS), {"e": alert} if alert else {}, {"e": acknowledged})
        self.followed, changed = due(self.rules, self.rule, self.followed, now)
        return [each.change for each in changed]


def withdrawn(sequence: int) -> dict[str, Any]:
    return alert_of("red", sequence, op="retract")


def test_each_change_is_sent_once_with_its_name() -> None:
    told = Told()
    assert told.at(0, alert_of("yellow", 0)) == ["begun"]
    assert told.at(1, alert_of("yellow", 0)) == []
    assert told.at(2, alert_of("yellow", 1)) == ["revised"]
    assert told.at(3, alert_of("red", 2)) == ["raised"]
    assert told.at(4, alert_of("yellow", 3)) == ["lowered"]
    assert told.at(5, withdrawn(3)) == ["withdrawn"]
    assert told.at(6, withdrawn(3)) == []
    assert told.at(7, alert_of("red", 4)) == ["begun"]
    assert told.at(8, alert_of("red", 5, status="closed")) == ["withdrawn"]


def test_only_the_changes_that_a_rule_names_are_sent() -> None:
    told = Told(changes=["begun", "raised"])
    alerts = [alert_of("yellow", 0), alert_of("red", 1), alert_of("red", 2), alert_of("yellow", 3), alert_of("red", 4)]
    assert [told.at(n, alert) for n, alert in enumerate(alerts)] == [["begun"], ["raised"], [], [], ["raised"]]


def test_who_was_sent_a_red_alert_learns_that_it_is_red_no_more() -> None:
    told = Told(levels=["red"])
    assert told.at(0, alert_of("yellow", 0)) == []
    assert told.at(1, alert_of("red", 1)) == ["begun"]
    assert told.at(2, alert_of("yellow", 2)) == ["lowered"]
    assert told.at(3, alert_of("yellow", 3)) == []
    assert told.at(4, withdrawn(3)) == []


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({}, True),
        ({"levels": ["yellow"]}, False),
        ({"satellites": [25544]}, True),
        ({"satellites": ["iss", 7]}, True),
        ({"satellites": [7, "hubble"]}, False),
        ({"within": "11d"}, True),
        ({"within": "9d"}, False),
        ({"levels": ["red"], "satellites": ["DEB"], "within": "240.1h"}, True),
    ],
)
def test_a_rule_selects_by_level_satellite_and_time_to_tca(rule: dict[str, Any], expected: bool) -> None:
    assert (Told(**rule).at(0, alert_of("red", 0)) == ["begun"]) is expected


def test_time_to_tca_passes() -> None:
    told = Told(within="9d")
    assert told.at(24 * 60 - 1, alert_of("red", 0)) == []
    assert told.at(24 * 60 + 1, alert_of("red", 0)) == ["begun"]


def test_an_operator_is_that_of_the_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = tmp_path / "fleet.csv"
    fleet.write_text("norad_id,name,operator\n25544,ISS,NASA\n7,X,ESA\n")
    monkeypatch.setenv("SDA_FLEET", str(fleet))
    path = tmp_path / "notify.toml"
    path.write_text(CHANNELS + '[[rules]]\nname = "r"\nchannels = ["desk"]\noperators = ["nasa"]\n')
    rules = NotifyRules.load(Settings(home=tmp_path))
    assert rules is not None and rules.selects(rules.file.rules[0], alert_of("red", 0), START_NS)
    path.write_text(CHANNELS + '[[rules]]\nname = "r"\nchannels = ["desk"]\noperators = ["JAXA"]\n')
    with pytest.raises(Misconfigured, match="no satellite of the fleet has the operator 'JAXA'"):
        NotifyRules.load(Settings(home=tmp_path))


def test_quiet_hours_hold_back_and_the_net_change_follows() -> None:
    """START is at midnight UTC."""
    told = Told(quiet="22:00-06:00")
    assert told.at(0, alert_of("yellow", 0)) == []
    assert told.at(60, alert_of("red", 1)) == []
    assert told.at(359.9, alert_of("red", 2)) == []
    assert told.at(360, alert_of("red", 2)) == ["begun"]
    assert told.at(22 * 60, alert_of("yellow", 3)) == []
    assert told.at(24 * 60, alert_of("red", 4)) == []
    assert told.at(30 * 60, alert_of("red", 4)) == ["revised"], "the level is again that which was sent"
    assert told.at(47 * 60, withdrawn(4)) == []
    assert told.at(54 * 60, withdrawn(4)) == ["withdrawn"]


@given(
    st.times().map(lambda t: t.replace(second=0, microsecond=0)),
    st.times().map(lambda t: t.replace(second=0, microsecond=0)),
    st.integers(0, 3 * 24 * 60),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/New_York"]),
)
def test_quiet_hours_are_by_the_clock_of_the_zone_also_over_midnight(
    begin: time, end: time, minute: int, zone: str
) -> None:
    """Against a walk back to when the clock last showed one of the two times."""
    if begin == end:
        return
    rule = RuleEntry.model_validate({
        "name": "r", "channels": ["d"], "quiet": f"{begin:%H:%M}-{end:%H:%M}", "timezone": zone
    })  # fmt: skip
    now = datetime(2024, 11, 15, tzinfo=UTC) + timedelta(minutes=minute)
    last = now
    while last.astimezone(rule.timezone).time() not in (begin, end):
        last -= timedelta(minutes=1)
    assert is_quiet(rule.quiet, rule.timezone, round(now.timestamp()) * SECOND_NS) == (
        last.astimezone(rule.timezone).time() == begin
    )


def test_an_unacknowledged_alert_escalates_and_an_acknowledged_one_does_not() -> None:
    told = Told(levels=["red"], unacknowledged_for="30min")
    assert told.at(0, alert_of("yellow", 0)) == []
    assert told.at(10, alert_of("red", 1)) == []
    assert told.at(39.9, alert_of("red", 2)) == [], "a revision does not begin the time anew"
    assert told.at(40, alert_of("red", 2)) == ["begun"]
    assert told.at(41, alert_of("red", 3), acknowledged=2) == []
    assert told.at(99, alert_of("red", 9), acknowledged=2) == [], "at the level that was acknowledged"
    assert told.at(100, withdrawn(9), acknowledged=2) == ["withdrawn"]
    other = Told(unacknowledged_for="30min")
    assert other.at(0, alert_of("yellow", 0)) == []
    assert other.at(29, alert_of("yellow", 0), acknowledged=0) == []
    assert other.at(60, alert_of("red", 1), acknowledged=0) == [], "another level needs another acknowledgement"
    assert other.at(89, alert_of("red", 1), acknowledged=0) == []
    assert other.at(90, alert_of("red", 1), acknowledged=0) == ["begun"]


STATES = st.one_of(st.none(), st.sampled_from(["yellow", "red", "withdrawn"]))


@given(
    st.lists(st.tuples(STATES, st.booleans(), st.booleans()), max_size=30),
    st.sampled_from([None, ["red"], ["yellow", "red"]]),
)
def test_what_was_sent_last_is_what_holds_whatever_was_missed(
    moments: list[tuple[str | None, bool, bool]], levels: list[str] | None
) -> None:
    """Rounds are missed, or fall into quiet hours; after the next one that is neither, the receiver knows the state."""
    told = Told(**({"levels": levels} if levels else {}), quiet="12:00-13:00")
    shown: str | None = None
    alert: dict[str, Any] | None = None
    for sequence, (state, is_missed, in_quiet_hours) in enumerate(moments):
        if state == "withdrawn":
            alert = withdrawn(sequence) if alert else None
        elif state:
            alert = alert_of(state, sequence)
        if is_missed:
            continue
        changes = told.at(12 * 60 + 30 if in_quiet_hours else 60, alert)
        assert set(changes) <= set(CHANGES) and len(changes) <= 1
        assert not (in_quiet_hours and changes)
        for change in changes:
            assert alert is not None
            was, is_now = shown, alert["risk"] if alert["op"] == "insert" else None
            assert (change == "begun") == (was is None)
            assert (change == "withdrawn") == (is_now is None)
            if was and is_now:
                order = (RANK[is_now] > RANK[was]) - (RANK[is_now] < RANK[was])
                assert change == {1: "raised", -1: "lowered", 0: "revised"}[order]
            shown = is_now if is_now in (levels or RANK) else None
        if not in_quiet_hours:
            current = alert["risk"] if alert and alert["op"] == "insert" else None
            assert shown == (current if current in (levels or RANK) else None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "channels: Field required"),
        ("[channels.desk]\n", "name either url_variable or url_file"),
        ('[channels.desk]\nurl = "json://t0ken"\n', "channels.desk.url: Extra inputs are not permitted"),
        ('[channels."a/b"]\nurl_variable = "X"\n', "pattern"),
        (CHANNELS + '[[rules]]\nname = "r"\nchannels = ["pager"]\n', "rule 'r' names 'pager', which is no channel"),
        (CHANNELS + '[[rules]]\nname = "r"\nchannels = []\n', "rules.0.channels"),
        (CHANNELS + '[[rules]]\nname = "r"\nchannels = ["desk"]\nquiet = "late"\n', "no quiet hours, such as"),
        (CHANNELS + '[[rules]]\nname = "r"\nchannels = ["desk"]\nquiet = "06:00-06:00"\n', "no quiet hours"),
        (CHANNELS + '[[rules]]\nname = "r"\nchannels = ["desk"]\nquiet = "25:00-06:00"\n', "rules.0.quiet"),
        (CHANNELS + '[[rules]]\nname = "r"\nchannels = ["desk"]\ntimezone = "Mars"\n', "'Mars' is no time zone"),
        (CHANNELS + '[[rules]]\nname = "r"\nchannels = ["desk"]\nwithin = "soon"\n', "no span of time"),
        (CHANNELS + '[[rules]]\nname = "r"\nchannels = ["desk"]\nlevels = ["green"]\n', "rules.0.levels"),
        (CHANNELS + 2 * '[[rules]]\nname = "r"\nchannels = ["desk"]\n', "two rules have the name 'r'"),
        ("channels", "is no TOML"),
    ],
)
def test_rules_that_cannot_be_used_are_refused_with_file_and_reason(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "notify.toml"
    path.write_text(text)
    with pytest.raises(Misconfigured, match=f"{path}: ") as refused:
        NotifyRules.load(Settings(home=tmp_path))
    assert reason in str(refused.value) and "t0ken" not in str(refused.value)


def test_without_the_file_nobody_is_notified_and_a_named_one_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert NotifyRules.load(Settings(home=tmp_path)) is None
    monkeypatch.setenv("SDA_NOTIFY", str(tmp_path / "other.toml"))
    with pytest.raises(Misconfigured, match="cannot be read"):
        NotifyRules.load(Settings(home=tmp_path))
