"""Alerts as they are against alerts as they would be: one verdict each, by the newest revision on either side."""

from pathlib import Path
from typing import Any

import pytest

from sda_platform.cli.lake.impact import recomputed_lines
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.history.impact import Impact
from sda_platform.history.recomputed_alerts import RecomputedImpact, _later, compare_alerts, recompute_impact
from sda_platform.lake.errors import InvalidRequest
from sda_platform.lake.lake import Lake
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.unit.history.lakes import TABLES, approach

BOTH: dict[str, Any] = {"risk": "yellow", "collision_probability": 1e-6, "miss_distance_km": 1.0, "status": "open"}
HIGHER: dict[str, Any] = {**BOTH, "risk": "red", "collision_probability": 2e-4, "miss_distance_km": 0.25}


def alerts(lake: Lake, *commits: list[dict[str, Any]]) -> None:
    for rows in commits:
        commit(lake, CONJUNCTION_ALERTS, rows)


def test_each_alert_is_unchanged_changed_vanished_or_new__DL6_I14(tmp_path: Path) -> None:
    """An alert before the first commit that read the input, and one that is equal and unrelated, are not mentioned."""
    live, apart = lake_at(tmp_path / "live"), lake_at(tmp_path / "apart")
    before = [approach("before", **BOTH)]
    alerts(
        live,
        before,
        [approach(name, **BOTH) for name in ("same", "higher", "gone", "withdrawn", "unrelated")],
        [approach("same", 0, "retract", **BOTH), approach("same", 1, **BOTH)],
        [approach("withdrawn", 0, "retract", **BOTH)],
        [approach("after the last that was made again", **BOTH)],
    )
    alerts(
        apart,
        before,
        [approach(name, **BOTH) for name in ("same", "withdrawn", "unrelated", "new")],
        [approach("higher", **HIGHER)],
        [],
    )
    logs = live.log(CONJUNCTION_ALERTS), apart.log(CONJUNCTION_ALERTS)
    found = {each.event_id: each for each in compare_alerts(*logs, 2, {"same", "higher", "gone"})}
    assert {name: (each.verdict, each.rests_on_it) for name, each in found.items()} == {
        "gone": ("vanished", True),
        "higher": ("changed", True),
        "new": ("new", False),
        "same": ("unchanged", True),
        "withdrawn": ("changed", False),
    }
    told = RecomputedImpact(tuple(found.values()), {"conjunction_alerts": 3}).to_dict()
    assert told["counts"] == {"unchanged": 1, "changed": 2, "vanished": 1, "new": 1}
    higher = next(each for each in told["alerts"] if each["event_id"] == "higher")
    seen = [(side["risk"], side["collision_probability"], side["miss_distance_km"]) for side in sides(higher)]
    assert seen == [("yellow", 1e-6, 1.0), ("red", 2e-4, 0.25)]
    withdrawn = next(each for each in told["alerts"] if each["event_id"] == "withdrawn")
    assert [side["status"] for side in sides(withdrawn)] == ["withdrawn", "open"]


def sides(alert: dict[str, Any]) -> list[dict[str, Any]]:
    return [alert["before"], alert["after"]]


def test_only_a_segment_can_be_corrected_and_a_name_must_be_safe_in_sql(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    for kind, name, corrected, reason in (
        ("sensor", "radar-7", b"", "only a segment can be corrected"),
        ("segment", "it's", None, "write the SHA-256"),
    ):
        impact = Impact(kind, name, {}, {}, [], [])  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest, match=reason):
            recompute_impact(lake, TABLES, impact, str(tmp_path / "shadow"), {}, corrected=corrected)


def test_a_sensor_may_be_left_out_from_a_time_on_and_no_other_input__48(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    for at_ns in (10, 20, 30):
        commit(lake, CONJUNCTION_ALERTS, [approach(f"at {at_ns}", **BOTH)], as_of_ns=at_ns)
    first = [[at for _, at in _later(lake, [(CONJUNCTION_ALERTS, 2)], since_ns)] for since_ns in (5, 20, 25, 31)]
    assert first == [[2], [2], [3], []]
    segment = Impact("segment", "a.kvn", {}, {}, [], [])
    with pytest.raises(InvalidRequest, match="only a sensor can be left out from a time on"):
        recompute_impact(lake, TABLES, segment, str(tmp_path / "shadow"), {}, since_ns=5)
    told = list(recomputed_lines(RecomputedImpact((), {"tracks": 2}, 0), is_corrected=False))
    assert told[0].startswith("without it from 1970-01-01T00:00:00.000Z on (--since all: from its begin), 2 commits")


def test_the_command_line_shows_both_sides_of_an_alert(tmp_path: Path) -> None:
    live, apart = lake_at(tmp_path / "live"), lake_at(tmp_path / "apart")
    alerts(live, [approach("abcdef12-3456", **{**BOTH, "tca_time_ns": 0})])
    alerts(apart, [])
    logs = live.log(CONJUNCTION_ALERTS), apart.log(CONJUNCTION_ALERTS)
    found = RecomputedImpact(tuple(compare_alerts(*logs, 1, set())), {"tracks": 2, "conjunction_alerts": 1})
    assert list(recomputed_lines(found, is_corrected=False)) == [
        "without it, 3 commits made again: 0 unchanged, 0 changed, 1 vanished, 0 new",
        "  abcdef12  7 – 8  vanished",
        "    before  yellow, Pc 1e-06, miss 1.000 km, TCA 1970-01-01T00:00:00.000Z, open, revision 0",
        "    after   no alert",
    ]
