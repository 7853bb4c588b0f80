"""What is worth observing: the expected gain of a pass, and the requests that follow from what the platform has."""

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.fusion.tables import TRACKS, lower_triangles
from sda_platform.orbits.long_tails import Tails, widening
from sda_platform.orbits.risk.gaussian_parts import straight_probability
from sda_platform.orbits.risk.validity import Encounters
from sda_platform.orbits.two_body import two_body_state, two_body_stm
from sda_platform.tasking import demand
from sda_platform.tasking.antennas import Antenna
from sda_platform.tasking.demand import DemandRules, requests
from sda_platform.tasking.information import (
    DWELLS_S,
    FIX_POSITION_SIGMA_KM,
    after_fix,
    expected_pass,
    fix_information,
    position_gain,
    shortest_pass,
)
from sda_platform.tasking.planning import planned
from sda_platform.tasking.scheduling import Rules
from sda_platform_tests.support.delta_tables import rows_of
from sda_platform_tests.support.segments import START_NS

HOUR_NS = 3_600_000_000_000
STATE = np.array([[7000.0, 0.0, 0.0, 0.0, 5.0, 5.6]])
OTHER = np.array([[7000.2, 0.1, 0.0, 0.0, -5.0, 5.6]])
WIDE = np.diag([0.5**2, 3.0**2, 0.3**2, 1e-6, 1e-7, 1e-7])[None]


def meeting(scale: float, other_scale: float, degrees: tuple[float, float] = (np.inf, np.inf)) -> Encounters:
    (one, other), radius_km = (STATE, OTHER), np.array([0.01])
    sides = one[:, :3], one[:, 3:], scale * WIDE, other[:, :3], other[:, 3:], other_scale * WIDE
    tails = Tails(np.array([degrees[0]]), np.zeros((1, 6, 6))), Tails(np.array([degrees[1]]), np.zeros((1, 6, 6)))
    return Encounters(*sides, radius_km, tails=tails)


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
        told = expected_pass(meeting(scale, 0.01), np.array([lead_s]))
        return float(told.gain[0])

    assert gain(1.0, 3600.0) > gain(0.01, 3600.0) > 0
    assert gain(1.0, 600.0) > gain(1.0, 6 * 3600.0)
    assert position_gain(0.0) == 0.0


@pytest.mark.parametrize("degrees", [(1.5, np.inf), (np.inf, 3.0), (2.0, 4.0)])
def test_the_expected_probability_is_that_of_errors_of_all_sizes(degrees: tuple[float, float]) -> None:
    """The judge draws the sizes: that of Student's t is a chi-square variable."""
    rng, count, lead_s = np.random.default_rng(5), 40_000, 3600.0
    encounter = meeting(1.0, 0.05, degrees)
    drawn = [
        np.ones(count) if np.isinf(each) else each / rng.chisquare(each, count) / widening(np.array([each]))
        for each in degrees
    ]
    many = meeting(1.0, 0.05).take(np.zeros(count, dtype=np.int64))
    prior = drawn[0][:, None, None] * many.covariance_1
    after = after_fix(np.hstack([many.r1_km, many.v1_km_s]), prior, np.full(count, lead_s))
    other = drawn[1][:, None, None] * many.covariance_2
    judged = straight_probability(dataclasses.replace(many, covariance_1=after, covariance_2=other))[0].mean()
    expected = expected_pass(encounter, np.array([lead_s])).probability[0]
    assert expected == pytest.approx(judged, rel=0.05)
    gaussian = expected_pass(meeting(1.0, 0.05), np.array([lead_s])).probability[0]
    assert abs(gaussian / judged - 1) > 0.1, "the tails matter here"


@pytest.mark.parametrize("scale", [1e-5, 1e-3, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("other_scale", [1e-5, 0.01, 1.0])
@pytest.mark.parametrize("lead_s", [600.0, 6 * 3600.0])
def test_the_dwell_is_the_shortest_that_is_enough(scale: float, other_scale: float, lead_s: float) -> None:
    given = meeting(scale, other_scale), np.array([lead_s])
    found = shortest_pass(*given, wanted_sigma_km=0.1)
    tried = {dwell_s: expected_pass(*given, dwell_s) for dwell_s in DWELLS_S}
    enough = [
        dwell_s
        for dwell_s, each in tried.items()
        if each.sigma_km[0] <= 0.1 or each.gain[0] >= tried[DWELLS_S[-1]].gain[0] - 0.1
    ]
    assert found.dwell_s[0] == enough[0]
    assert found.gain[0] == tried[enough[0]].gain[0] and found.probability[0] == tried[enough[0]].probability[0]
    gains = [float(each.gain[0]) for each in tried.values()]
    assert gains == sorted(gains), "a longer observation brings no less"


def test_dwells_differ_with_what_is_wanted_and_what_the_other_object_leaves() -> None:
    def dwell_s(scale: float, other_scale: float, wanted_km: float) -> float:
        return float(shortest_pass(meeting(scale, other_scale), np.array([600.0]), wanted_km).dwell_s[0])

    assert dwell_s(1.0, 1e-6, 100.0) == DWELLS_S[0], "any fix is good enough"
    assert dwell_s(1.0, 1e-6, 1e-6) == DWELLS_S[-1], "none is, and each is better than the one before"
    assert dwell_s(1.0, 1e4, 1e-6) == DWELLS_S[0], "the other object decides, whatever is observed of this one"


def test_measurements_at_a_steady_rate_determine_a_line_as_the_fix_says() -> None:
    """A straight line through positions with equal noise: variances of its middle and slope by the time they span."""
    for axis_noise_km, rate_hz in [(0.05, 1.0), (0.2, 5.0)]:
        variances = []
        for dwell_s in (120.0, 240.0):
            times_s = np.arange(0.0, dwell_s, 1 / rate_hz) - dwell_s / 2
            design = np.stack([np.ones_like(times_s), times_s], axis=1)
            variances.append(np.diag(np.linalg.inv(design.T @ design / axis_noise_km**2)))
        ratio = np.diag(fix_information(240.0))[[0, 3]] / np.diag(fix_information(120.0))[[0, 3]]
        np.testing.assert_allclose(variances[0] / variances[1], ratio, rtol=0.02)


def test_a_request_states_the_dwell_of_a_conjunction_and_of_nothing_else() -> None:
    found = asked([assessment("red")], [track(7, state="lost", last_seen_ns=START_NS - 30 * HOUR_NS)])
    assert {each["reason"]: each["dwell_s"] in DWELLS_S for each in found} == {"conjunction": True, "lost_track": False}


@pytest.mark.parametrize(
    ("stated_s", "window_s", "planned_s"), [(240.0, 300, 240), (240.0, 130, 120), (60.0, 300, 60), (None, 300, 90)]
)
def test_an_observation_is_as_long_as_its_request_states_and_its_windows_permit(
    stated_s: float | None, window_s: int, planned_s: int
) -> None:
    second = 10**9
    times = {"aos_time_ns": START_NS, "tca_time_ns": START_NS + window_s * second // 2}
    directions = {f"azimuth_{name}_deg": 90.0 for name in ("aos", "tca", "los")} | {"max_elevation_deg": 45.0}
    window = {"pass_id": "p", "norad_id": 1, "source_id": "a", "los_time_ns": START_NS + window_s * second}
    request = {
        "request_id": "r", "norad_id": 1, "reason": "conjunction", "priority_class": 0, "owner": "x",
        "information_gain": 1.0, "requested_time_ns": START_NS, "deadline_time_ns": START_NS + HOUR_NS,
        "dwell_s": stated_s,
    }  # fmt: skip
    how: dict[str, Any] = {"as_of_ns": START_NS, "observation_ns": 90 * second, "rules": Rules()}
    antennas = {"a": Antenna("a", 10.0, 5.0)}
    _, (row,) = planned([request], [{**window, **times, **directions}], [], antennas, {}, **how)
    assert row["end_time_ns"] - row["start_time_ns"] == planned_s * second


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
