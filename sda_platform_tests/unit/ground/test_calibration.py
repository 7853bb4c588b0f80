"""Recorded heartbeats and what they say of the detector: false alarms, suspicion, time to detection, advice."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from sda_platform.formats.errors import RecordError
from sda_platform.formats.ground_events import HEARTBEATS, GroundEvent, heartbeat_gaps
from sda_platform.ground.calibration import Calibration, calibrations
from sda_platform.ground.calibration_asset import calibration_of
from sda_platform.ground.failure_detection import INTRA_REGION, deviations_at, phi
from sda_platform.ground.heartbeats import (
    EVERY_S,
    MOST_GAPS,
    HeartbeatRecord,
    HeartbeatRecorder,
    HeartbeatRecorders,
)
from sda_platform.ground.tables import GROUND_EVENTS
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS


def gaps(count: int, *, sigma_s: float = 0.01, late: Sequence[float] = (), seed: int = 1) -> tuple[float, ...]:
    """Gaps of an intra-region path; ``late`` ones are spread over the second half."""
    chance = random.Random(seed)
    found = [max(0.001, chance.gauss(INTRA_REGION.interval_s, sigma_s)) for _ in range(count)]
    for number, each in enumerate(late):
        found[count // 2 + number * (count // 2 // len(late))] = each
    return tuple(found)


def calibrated(*records: tuple[float, ...]) -> Calibration:
    (found,) = calibrations(HeartbeatRecord("atlantic", "primary", "intra-region", each) for each in records)
    return found


def test_steady_heartbeats_give_no_false_alarm_and_a_short_detection__GF4_GF20_GF21() -> None:
    found = calibrated(gaps(20_000))
    assert found.hours == pytest.approx(20_000 * 0.05 / 3600, rel=0.02)
    assert found.gap_s[0] == pytest.approx(0.05, abs=0.001)
    # The detector sees its own estimate of the spread, so phi of the 98th percentile is near 1.7, that of a normal.
    assert 1.5 < found.phi[1] < 2.1
    assert found.false_declarations == 0.0
    # phi 8 is reached 5.6 sigmas after the mean.
    assert found.detection_s[0] == pytest.approx(0.05 + deviations_at(8.0) * 0.01, rel=0.05)
    assert found.advised_phi is not None and found.advised_phi <= INTRA_REGION.declare_phi


def test_late_heartbeats_are_false_declarations_and_an_outage_is_none__GF17_GF21() -> None:
    # In 20,000 beats, about 1,000 s, four are late by a third of a second: 350 a day.
    found = calibrated(gaps(20_000, late=[0.4] * 4))
    assert found.false_declarations == pytest.approx(4 / (20_000 * 0.05 / 86_400), rel=0.02)
    assert found.advised_phi is None, "phi of such a beat is beyond every threshold"
    stopped = calibrated(gaps(20_000, late=[120.0]))
    assert stopped.false_declarations == 0.0, "a silence of two minutes is a stop"
    assert stopped.gap_s[3] == 120.0


def test_a_declared_gap_spoils_no_later_estimate__GF19() -> None:
    clean, struck = calibrated(gaps(4_000)), calibrated(gaps(4_000, late=[5.0]))
    assert struck.detection_s[1] == pytest.approx(clean.detection_s[1], rel=0.02)


def test_several_records_of_a_path_are_one_calibration_and_paths_stay_apart() -> None:
    records = [
        HeartbeatRecord(station, heard, "intra-region", gaps(500, seed=seed))
        for seed, (station, heard) in enumerate([("b", "primary"), ("a", "backup"), ("a", "primary"), ("a", "primary")])
    ]
    found = calibrations([*records, HeartbeatRecord("a", "primary", "of-yesterday", gaps(500))])
    assert [each.name for each in found] == ["a backup", "a primary", "b primary"]
    assert found[1].hours == pytest.approx(2 * found[0].hours, rel=0.05)
    assert calibrations([HeartbeatRecord("a", "primary", "intra-region", gaps(INTRA_REGION.warm_up))]) == []


@pytest.mark.parametrize("threshold", [1.0, 3.0, 8.0, 48.0, 300.0])
def test_the_deviations_at_a_threshold_are_where_phi_reaches_it__GF22(threshold: float) -> None:
    assert phi(deviations_at(threshold)) == pytest.approx(threshold, rel=1e-6)


def test_a_record_has_bounded_gaps_and_the_next_begins_in_time() -> None:
    recorder, found = HeartbeatRecorder("primary", "intra-region"), []
    for number in range(round(2.5 * EVERY_S / 0.05)):
        recorder.beat(number * 0.05)
        text = recorder.complete(number * 0.05)
        found += [(number * 0.05, heartbeat_gaps(text))] if text else []
    assert [round(at_s) for at_s, _ in found] == [60, 660, 1260]
    assert all(facts[:2] == ("primary", "intra-region") for _, facts in found)
    assert all(facts[2] == [50] * MOST_GAPS for _, facts in found)


def test_a_record_of_an_uplink_that_fell_silent_is_given_after_its_time() -> None:
    recorder = HeartbeatRecorder("primary", "cross-region")
    assert recorder.complete(1e6) is None, "nothing was heard yet"
    for at_s in (0.0, 0.5, 0.5, 1.2):
        recorder.beat(at_s)
    assert recorder.complete(EVERY_S - 1) is None
    assert heartbeat_gaps(recorder.complete(EVERY_S) or "") == ("primary", "cross-region", [500, 700])
    assert recorder.complete(EVERY_S) is None, "once"


@pytest.mark.parametrize(
    "detail", ["", "[]", '{"heard": "a", "path": "b"}', '{"heard": "a", "path": "b", "gaps_ms": [1.5]}']
)
def test_a_record_that_is_damaged_is_refused(detail: str) -> None:
    with pytest.raises(RecordError):
        heartbeat_gaps(detail)


def test_heartbeats_between_two_answers_of_the_station_are_no_long_gap__GF13_GF21() -> None:
    recorders = HeartbeatRecorders("intra-region", ["primary"])
    assert recorders.times_s("primary", 1, 10.0) == [10.0]
    assert recorders.times_s("primary", 1, 10.001) == [], "the same, read a little later"
    assert recorders.times_s("primary", 2, 10.05) == [10.05]
    assert recorders.times_s("primary", 4, 10.15) == pytest.approx([10.1, 10.15]), "one more came in between"
    assert recorders.times_s("primary", 1, 11.0) == [11.0], "the station was started again"


def test_the_asset_shows_each_path_and_warns_of_false_declarations__GF17(tmp_path: Path) -> None:
    lake = lake_at(tmp_path / "lake")

    def events(heard: str, **how: Sequence[float]) -> list[dict[str, object]]:
        found = []
        for seed in range(8):
            recorder = HeartbeatRecorder(heard, "intra-region")
            at_s = 0.0
            recorder.beat(at_s)
            for gap_s in gaps(MOST_GAPS, sigma_s=0.008, seed=seed, **how):
                at_s += gap_s
                recorder.beat(at_s)
            event = GroundEvent("atlantic", HEARTBEATS, START_NS, "backup", detail=recorder.complete(at_s) or "")
            found.append(vars(event))
        return found

    rows = [*events("primary"), *events("backup", late=[0.4])]
    commit(lake, GROUND_EVENTS, [{**row, "record_number": n} for n, row in enumerate(rows)])
    result = calibration_of(lake)
    shown = dict(result.metadata or {})
    assert shown["recorded_paths"] == 2
    assert "| atlantic backup |" in str(shown["paths"]) and "| atlantic primary |" in str(shown["paths"])
    outcomes = {each.check_name: each for each in result.check_results or ()}
    assert {name: each.passed for name, each in outcomes.items()} == {
        "false_declarations_are_rare": False,
        "failures_are_found_in_time": True,
        "steady_heartbeats_raise_no_suspicion": True,
    }
    assert (outcomes["false_declarations_are_rare"].description or "").startswith("atlantic backup: ")
