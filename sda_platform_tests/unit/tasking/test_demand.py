"""What is worth observing: the expected gain of a pass, and the requests that follow from what the platform has."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.fusion.tables import TRACKS, lower_triangles
from sda_platform.orbits.two_body import two_body_state, two_body_stm
from sda_platform.tasking import demand
from sda_platform.tasking.demand import DemandRules, requests
from sda_platform.tasking.information import FIX_POSITION_SIGMA_KM, after_fix, expected_pass, position_gain
from sda_platform_tests.support.delta_tables import rows_of
from sda_platform_tests.support.segments import START_NS

HOUR_NS = 3_600_000_000_000
STATE = np.array([[7000.0, 0.0, 0.0, 0.0, 5.0, 5.6]])
OTHER = np.array([[7000.2, 0.1, 0.0, 0.0, -5.0, 5.6]])
WIDE = np.diag([0.5**2, 3.0**2, 0.3**2, 1e-6, 1e-7, 1e-7])[None]


def assessment(risk: str, tca_h: float = 12.0, event_id: str = "e1") -> dict[str, Any]:
    return {
        "event_id": event_id, "op": "insert", "norad_id_1": 25544, "norad_id_2": 5, "risk": risk,
        "tca_time_ns": START_NS + round(tca_h * HOUR_NS), "hard_body_radius_m": 10.0, "maximum_probability": 1e-4,
        "state_1": STATE[0].tolist(), "state_2": OTHER[0].tolist(),
        "covariance_1": lower_triangles(WIDE)[0].tolist(), "covariance_2": lower_triangles(WIDE)[0].tolist(),
    }  # fmt: skip


def track(norad_id: int, **facts: Any) -> dict[str, Any]:
    quiet = {
        "state": "confirmed", "last_seen_ns": START_NS, "epoch_time_ns": START_NS, "windows": 50, "innovation": 4.0,
        "innovation_size": 6, "manoeuvre_time_ns": None, "position_sigma_m": 100.0,
    }  # fmt: skip
    return {"norad_id": norad_id, **quiet, **facts}


def asked(
    assessments: list[dict[str, Any]], tracks: list[dict[str, Any]] = [], provisional: list[int] = [],  # noqa: B006
    known: dict[str, int] | None = None, as_of_ns: int = START_NS,
) -> list[dict[str, Any]]:  # fmt: skip
    return requests(
        rows_of(CONJUNCTION_ASSESSMENTS, assessments).select(["event_id", *demand.ASSESSMENT_COLUMNS]),
        rows_of(TRACKS, tracks).select(demand.TRACK_COLUMNS),
        pa.table({"norad_id": pa.array(provisional, pa.int64())}),
        {25544: "NASA"},
        known or {},
        as_of_ns,
        DemandRules(),
    )


def test_a_fix_reduces_the_covariance_as_a_weighted_least_squares_does() -> None:
    lead_s = 3600.0
    back = two_body_stm(STATE[:, :3], STATE[:, 3:], -lead_s)[0]
    fix = np.diag([FIX_POSITION_SIGMA_KM**-2] * 3 + [5e-5**-2] * 3)
    expected = np.linalg.inv(np.linalg.inv(WIDE[0]) + back.T @ fix @ back)
    np.testing.assert_allclose(after_fix(STATE, WIDE, [lead_s])[0], expected, rtol=1e-4, atol=1e-9)
    moved = two_body_state(STATE[:, :3], STATE[:, 3:], -lead_s)
    assert np.isfinite(moved[0]).all()


def test_a_pass_shows_more_the_less_is_known_and_the_nearer_it_is() -> None:
    def gain(scale: float, lead_s: float) -> float:
        told = expected_pass(STATE, scale * WIDE, OTHER, 0.01 * WIDE, np.array([10.0]), np.array([lead_s]))
        return float(told.gain[0])

    assert gain(1.0, 3600.0) > gain(0.01, 3600.0) > 0
    assert gain(1.0, 600.0) > gain(1.0, 6 * 3600.0)
    assert position_gain(0.0) == 0.0


def test_both_objects_of_a_red_conjunction_are_asked_for_before_the_decision() -> None:
    found = asked([assessment("red")])
    assert {(each["norad_id"], each["priority_class"], each["owner"]) for each in found} == {
        (25544, 0, "NASA"),
        (5, 0, "NASA"),
    }
    assert {each["deadline_time_ns"] for each in found} == {START_NS + 10 * HOUR_NS}
    assert all(each["information_gain"] > 0.1 and 0 <= each["expected_probability"] <= 1 for each in found)


def test_within_the_lead_an_observation_still_helps_until_the_encounter() -> None:
    assert {each["deadline_time_ns"] for each in asked([assessment("red", tca_h=1.0)])} == {START_NS + HOUR_NS}


@pytest.mark.parametrize("gone", [assessment("green"), assessment("red", tca_h=-1.0)])
def test_what_is_harmless_or_past_asks_for_nothing(gone: dict[str, Any]) -> None:
    assert asked([gone]) == []


@pytest.mark.parametrize(
    ("facts", "reason", "priority_class"),
    [
        ({"last_seen_ns": START_NS - 13 * HOUR_NS, "state": "coasting"}, "stale_track", 2),
        ({"state": "lost", "last_seen_ns": START_NS - 30 * HOUR_NS}, "lost_track", 2),
        ({"innovation": 60.0}, "residual", 1),
        ({"manoeuvre_time_ns": START_NS}, "manoeuvre", 1),
    ],
)
def test_a_track_that_is_stale_lost_or_doubtful_is_asked_for(
    facts: dict[str, Any], reason: str, priority_class: int
) -> None:
    (found,) = asked([], [track(7, **facts), track(8)])
    assert (found["norad_id"], found["reason"], found["priority_class"]) == (7, reason, priority_class)


def test_a_new_analyst_satellite_is_asked_for_until_it_is_followed() -> None:
    found = asked([], [track(80_001, windows=2), track(80_002, windows=20)], [80_001, 80_002, 80_003])
    assert [(each["norad_id"], each["reason"]) for each in sorted(found, key=lambda e: e["norad_id"])] == [
        (80_001, "analyst_satellite"),
        (80_003, "analyst_satellite"),
    ]


def test_a_request_keeps_its_instant_and_is_asked_for_again_after_its_deadline() -> None:
    facts = [track(7, innovation=60.0)]
    (first,) = asked([], facts)
    later = START_NS + 7 * HOUR_NS
    (again,) = asked([], facts, known={first["request_id"]: START_NS}, as_of_ns=later)
    assert again["request_id"] == first["request_id"]
    assert again["requested_time_ns"] == START_NS
    assert (first["deadline_time_ns"], again["deadline_time_ns"]) == (START_NS + 6 * HOUR_NS, START_NS + 12 * HOUR_NS)
