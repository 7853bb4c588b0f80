"""Which assessed events are alerts, when an alert is sent again, and how it ends."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.conjunction.alert_policy import LEVEL_COLUMNS, RULES, AlertPolicy, why_level
from sda_platform.conjunction.alerting import ASSESSED_COLUMNS, alerts_of, events_table
from sda_platform.conjunction.resource import AlertingResource
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.formats.listings import ListingError
from sda_platform.lake.errors import NotReplayable
from sda_platform.setting_sections import AlertSettings
from sda_platform_tests.support.delta_tables import row
from sda_platform_tests.support.segments import START_NS, after

POLICY = AlertPolicy(AlertSettings())
HOUR_S = 3600.0
TCA_NS = after(48 * HOUR_S)
EVENT: dict[str, Any] = {
    "event_id": "e",
    "norad_id_1": 1,
    "norad_id_2": 2,
    "tca_time_ns": TCA_NS,
    "miss_distance_km": 0.4,
    "collision_probability": 3e-5,
    "maximum_probability": 1e-4,
    "risk_flags": "",
    "mahalanobis_distance": 1.5,
    "risk": "yellow",
    "is_2d_valid": True,
    "state_source_1": "element_set",
    "state_source_2": "element_set",
}


def alert(sent: dict[str, Any] | None, as_of_ns: int = START_NS, policy: AlertPolicy = POLICY, **facts: Any) -> Any:
    """The alert of an event with ``facts``, after ``sent``; `gone=True`: it is no longer assessed. None: no alert."""
    is_gone, stated = facts.pop("gone", False), facts.pop("stated", None)
    full = row(CONJUNCTION_ASSESSMENTS, **{**EVENT, **facts})
    chosen = {name: full[name] if not is_gone or name == "event_id" else None for name in ASSESSED_COLUMNS}
    table = events_table({"e": chosen}, {"e": stated}, {"e": sent} if sent else {})
    (found,) = alerts_of(table, policy, as_of_ns).to_pylist() or [None]
    return found


def story(*steps: dict[str, Any]) -> list[str]:
    """What is sent at each step: the level and why; "" for nothing, "withdrawn" for a retract."""
    sent, told = None, []
    for facts in steps:
        now = alert(sent, **facts)
        told.append("" if now == sent else "withdrawn" if now is None else f"{now['risk']}: {now['change']}")
        sent = now
    return told


@pytest.mark.parametrize(
    ("facts", "level"),
    [
        ({"collision_probability": 9e-6}, None),
        ({"collision_probability": 1e-5}, ("yellow", "probability")),
        ({"collision_probability": 1e-4}, ("red", "probability")),
        ({"collision_probability": 3e-6, "maximum_probability": 0.5, "risk_flags": "extended_encounter,diluted",
          "mahalanobis_distance": 0.2}, ("red", "dilution")),
        ({"collision_probability": 3e-6, "maximum_probability": 2e-3, "risk_flags": "extended_encounter,diluted",
          "mahalanobis_distance": 1.8}, ("yellow", "dilution")),
        ({"collision_probability": 3e-6, "maximum_probability": 0.5, "risk_flags": "extended_encounter,diluted",
          "mahalanobis_distance": 3.0}, None),
        ({"collision_probability": 3e-6, "maximum_probability": 0.5, "risk_flags": "undiluted",
          "mahalanobis_distance": 0.2}, None),
        ({"collision_probability": 1e-9, "risk": "red", "is_2d_valid": None}, ("red", "probability")),
    ],
)  # fmt: skip
def test_a_level_follows_from_pc_or_from_dilution_near_tca(facts: dict[str, Any], level: Any) -> None:
    found = alert(None, **facts)
    assert (found and (found["risk"], found["rule"])) == level


def test_the_rule_of_dilution_begins_at_its_time_before_tca() -> None:
    hit = {"collision_probability": 3e-6, "maximum_probability": 1.0, "risk_flags": "diluted",
           "mahalanobis_distance": 0.0, "tca_time_ns": after(100 * HOUR_S)}  # fmt: skip
    assert story(hit, {**hit, "as_of_ns": after(27 * HOUR_S)}, {**hit, "as_of_ns": after(28 * HOUR_S)}) == [
        "", "", "red: new",
    ]  # fmt: skip


def test_only_changes_that_matter_are_sent() -> None:
    assert story(
        {},
        {"collision_probability": 5e-5, "miss_distance_km": 1.3, "tca_time_ns": TCA_NS + 9 * 10**9},
        {"collision_probability": 9.6e-5},
        {"collision_probability": 1.1e-4},
        {"collision_probability": 9e-5},
        {"collision_probability": 3.1e-5},
        {"miss_distance_km": 1.5, "collision_probability": 3.1e-5},
        {"tca_time_ns": TCA_NS + 11 * 10**9, "miss_distance_km": 1.5, "collision_probability": 3.1e-5},
        {"state_source_1": "fused_track", "miss_distance_km": 1.5, "tca_time_ns": TCA_NS + 11 * 10**9},
        {"collision_probability": 4e-6, "state_source_1": "fused_track", "miss_distance_km": 1.5},
        {"collision_probability": 1e-6},
        {"collision_probability": 4e-6},
        {"collision_probability": 2e-5},
        {"gone": True},
    ) == [
        "yellow: new",
        "",
        "yellow: probability",
        "red: risk_level",
        "",
        "yellow: risk_level,probability",
        "yellow: miss",
        "yellow: tca",
        "yellow: data_quality",
        "yellow: probability,tca",
        "withdrawn",
        "",
        "yellow: new",
        "withdrawn",
    ]


def test_an_alert_closes_once_after_its_tca_with_its_last_numbers_and_is_not_withdrawn_then() -> None:
    sent = alert(None, collision_probability=2e-4)
    closed = alert(sent, after(48 * HOUR_S + 5), collision_probability=8e-5)
    assert (closed["status"], closed["outcome"], closed["highest_risk"]) == ("closed", "passed_red", "red")
    assert (closed["change"], closed["collision_probability"], closed["rule"]) == ("closed", 8e-5, "hysteresis")
    later = after(60 * HOUR_S)
    assert alert(closed, later) == closed
    assert alert(closed, later, gone=True) == closed
    assert alert(None, later, collision_probability=1e-3) is None, "no news of the past"
    reopened = alert(closed, later, tca_time_ns=after(61 * HOUR_S), collision_probability=2e-4)
    assert (reopened["status"], reopened["change"]) == ("open", "reopened,tca")


def test_a_member_of_the_fleet_has_its_own_levels_and_commits_record_them(tmp_path: Any) -> None:
    fleet = tmp_path / "fleet.csv"
    fleet.write_text("norad_id,name,operator,yellow_pc,red_pc\n1,A,Us,1e-7,1e-5\n7,B,Us,,\n")
    resource = AlertingResource.model_validate({"fleet": str(fleet)})
    recorded = resource.recorded()
    assert recorded["members"] == {"1": [1e-7, 1e-5]}
    fleet.unlink()
    for policy in (AlertingResource().as_recorded(recorded).policy(), AlertPolicy(AlertSettings(), {1: (1e-7, 1e-5)})):
        assert alert(None, policy=policy)["risk"] == "red"
        assert alert(None, policy=policy, norad_id_1=2, norad_id_2=1, collision_probability=2e-7)["risk"] == "yellow"
        assert alert(None, policy=policy, norad_id_1=7, collision_probability=2e-7) is None
    with pytest.raises(NotReplayable, match="no setting depth"):
        AlertingResource().as_recorded({**recorded, "depth": 3})


def test_of_two_members_with_their_own_levels_the_lower_ones_apply() -> None:
    fleet = (POLICY.settings.yellow_pc, POLICY.settings.red_pc)
    policy = AlertPolicy(POLICY.settings, {1: fleet, 2: (1e-3, 1e-2)})
    assert alert(None, policy=policy)["risk"] == "yellow", "levels like those of the fleet are a member's own"
    assert alert(None, policy=policy, norad_id_1=3) is None


def test_where_a_manoeuvre_is_suspected_a_lower_pc_is_an_alert_until_it_is_known_better() -> None:
    faint: dict[str, Any] = {"collision_probability": 3e-6, "maximum_probability": 3e-6}
    assert alert(None, **faint) is None
    for side in (1, 2):
        suspected = faint | {f"manoeuvre_time_{side}_ns": START_NS}
        found = alert(None, **suspected)
        assert (found["risk"], found["rule"], found["change"]) == ("yellow", "suspected_manoeuvre", "new")
        assert alert(found, **suspected) == found
        assert alert(found, **faint | {"collision_probability": 1e-6}) is None, "its element set is newer now"
    moved: dict[str, Any] = {"manoeuvre_time_2_ns": START_NS}
    assert alert(None, **moved)["rule"] == "probability"
    assert alert(None, **moved, collision_probability=9e-7, maximum_probability=9e-7) is None
    assert alert(None, **moved, **faint, policy=AlertPolicy(AlertSettings(manoeuvre_decades=0.0))) is None
    assert alert(None, **moved, **faint, policy=AlertPolicy(POLICY.settings, {1: (1e-4, 1e-3)})) is None, "own levels"


@given(st.lists(st.floats(-8, -3), min_size=1, max_size=12))
def test_a_level_is_never_below_its_threshold_and_at_most_the_hysteresis_above(decades: list[float]) -> None:
    level = 0
    for value in decades:
        events = {name: np.array([EVENT.get(name)], dtype=object) for name in LEVEL_COLUMNS}
        pc = 10**value
        events |= {"collision_probability": np.array([pc]), "maximum_probability": np.array([pc])}
        events |= {name: events[name].astype(float) for name in ("mahalanobis_distance",)}
        events |= {name: events[name].astype(np.int64) for name in ("norad_id_1", "norad_id_2", "tca_time_ns")}
        level = int(POLICY.levels(events, [level], START_NS)[0])
        strict, relaxed = (int(pc >= y) + int(pc >= r) for y, r in ((1e-5, 1e-4), (1e-5 / 10**0.5, 1e-4 / 10**0.5)))
        assert strict <= level <= relaxed


@pytest.mark.parametrize(
    ("line", "is_refused"), [("1e-6,1e-5", False), ("1e-3,1e-5", True), ("1e-3,", True), (",1e-6", True)]
)
def test_a_member_that_is_yellow_above_its_red_is_refused(tmp_path: Path, line: str, is_refused: bool) -> None:
    fleet = tmp_path / "fleet.csv"
    fleet.write_text(f"norad_id,name,operator,yellow_pc,red_pc\n25544,ISS,NASA,{line}\n")
    alerting = AlertingResource(**AlertSettings(fleet=str(fleet)).model_dump())
    if is_refused:
        with pytest.raises(ListingError, match="satellite 25544 is yellow from Pc"):
            alerting.policy()
    else:
        assert alerting.policy().members == {25544: (1e-6, 1e-5)}


def test_every_rule_has_words_for_people() -> None:
    words = [why_level({"rule": rule, "stated_by": "CSpOC"}) for rule in RULES]
    assert len(set(words)) == len(RULES) and all(words)
    assert why_level({"rule": "stated_by_other", "stated_by": "CSpOC"}) == "by the message of CSpOC"
    assert why_level({"rule": None}) == ""
