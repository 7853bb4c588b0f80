"""Game days: whose turn it is, what is red, and real rehearsals: a link that is cut, and a station that is down."""

from pathlib import Path
from typing import Any

import pytest

from sda_platform.formats.game_days import GameDay, encode_game_days, read_game_day
from sda_platform.formats.records import RawRecord
from sda_platform.ground import rehearsed_programs
from sda_platform.ground.etcd_fault import EtcdMinority
from sda_platform.ground.failure_detection import PathClass
from sda_platform.ground.game_day import FAULTS, MOST_DAYS_WITHOUT, fault_of, problems, rehearsed, silence
from sda_platform.ground.pictures import game_days_picture
from sda_platform.ground.replica_fault import ReplicaLag
from sda_platform.ground.uplink_faults import LINK_CUT, LINK_SLOW, UPLINK_STOPPED, SlowStation, UplinkFault
from sda_platform.units import DAY_NS
from sda_platform_tests.support.sampling import sampled

QUICK = PathClass("rehearsal", interval_s=0.1, fixed_timeout_s=1.0, acceptable_pause_s=0.5)
NOW_NS = 20_000 * DAY_NS


def night(day: int, fault: str = LINK_CUT, detected_s: float | None = 1.0, **more: Any) -> dict[str, Any]:
    facts = {"recovered_after_s": 2.0, "detect_within_s": 20.0, "recover_within_s": 30.0, "skipped": "", **more}
    return {"fault": fault, "started_time_ns": NOW_NS + day * DAY_NS, "detected_after_s": detected_s, **facts}


def test_each_fault_has_its_turn__GF26() -> None:
    turns = [fault_of(NOW_NS + day * DAY_NS).name for day in range(2 * len(FAULTS))]
    assert turns[: len(FAULTS)] == turns[len(FAULTS) :]
    assert sorted(turns[: len(FAULTS)]) == sorted(fault.name for fault in FAULTS)
    assert {"link cut", "station slow", "etcd minority", "replica lag"} <= set(turns)
    assert fault_of(NOW_NS) == fault_of(NOW_NS + DAY_NS - 1)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([], []),
        ([night(0)], []),
        ([night(0, detected_s=None)], ["link cut: not detected within 20 s"]),
        ([night(0, detected_s=21.0)], ["link cut: not detected within 20 s"]),
        ([night(0, recovered_after_s=None)], ["link cut: not recovered within 30 s"]),
        ([night(0, detected_s=None), night(3)], []),
        ([night(0, detected_s=None), night(1, "link slow")], ["link cut: not detected within 20 s"]),
        ([night(0), night(3, detected_s=None, skipped="no disk")], []),
        ([night(0, "station slow", None, detect_within_s=0.0)], []),
        ([night(0, "station slow", 3.0, detect_within_s=0.0)], ["station slow: taken for a failure"]),
    ],
)
def test_the_last_rehearsal_of_each_fault_counts(rows: list[dict[str, Any]], found: list[str]) -> None:
    assert problems(rows) == found


def test_a_fault_that_misses_two_turns_is_red_and_no_other() -> None:
    every = [night(day, fault.name) for day, fault in enumerate(FAULTS)]
    end_ns = NOW_NS + MOST_DAYS_WITHOUT * DAY_NS
    assert silence([], end_ns) == silence(every, end_ns) == []
    assert [line.partition(" was ")[0] for line in silence(every, end_ns + 1)] == [FAULTS[0].name]
    assert "the last was" in silence(every, end_ns + 1)[0]
    (etcd,) = (day for day, fault in enumerate(FAULTS) if fault.name == EtcdMinority().name)
    every[etcd] = {**every[etcd], "skipped": "no etcd", "detected_after_s": None}
    later = [night(day + MOST_DAYS_WITHOUT, fault.name) for day, fault in enumerate(FAULTS) if day != etcd]
    (line,) = silence([*every, *later], end_ns + (len(FAULTS)) * DAY_NS)
    assert line == f"etcd minority was not rehearsed for {MOST_DAYS_WITHOUT} days: it never was; no etcd"


def test_an_outcome_is_read_as_it_was_written_and_shown() -> None:
    outcome = GameDay(LINK_CUT, NOW_NS, None, 2.5, 20.0, 30.0)
    assert read_game_day(RawRecord(0, NOW_NS, encode_game_days([outcome]).strip())) == outcome
    rows = [night(0), night(1, detected_s=None), night(2, "station slow", None, detect_within_s=0.0)]
    assert "time to detect" in game_days_picture(rows)


@pytest.mark.parametrize("name", sampled((LINK_CUT, LINK_SLOW, UPLINK_STOPPED), LINK_CUT))
def test_a_rehearsed_fault_is_detected_and_recovered_from__GF26(name: str, tmp_path: Path) -> None:
    outcome = UplinkFault(name, QUICK).rehearse(tmp_path)
    assert outcome.detected_after_s is not None and outcome.recovered_after_s is not None
    assert 0.3 < outcome.detected_after_s <= outcome.recovered_after_s + 0.1 <= 30.0


def test_a_station_that_is_down_for_its_callers_is_seen_by_the_same_rehearsal(tmp_path: Path) -> None:
    fault = SlowStation(QUICK, latency_s=2.5, watched_s=8.0, recover_within_s=4.0, commands=1)
    assert fault.rehearse(tmp_path).detected_after_s is not None


@pytest.mark.parametrize("fault", [EtcdMinority(), ReplicaLag()])
def test_a_fault_whose_servers_are_not_installed_is_skipped_with_the_reason(
    fault: EtcdMinority | ReplicaLag, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(rehearsed_programs, "_POSTGRES", tmp_path)
    outcome = rehearsed(fault)
    assert "installed; on Debian: apt-get install" in outcome.skipped
    assert (outcome.fault, outcome.detected_after_s, outcome.recovered_after_s) == (fault.name, None, None)
    assert problems([vars(outcome)]) == []
