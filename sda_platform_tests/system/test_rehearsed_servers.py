"""Game days with real servers, and a slow station on the path that they rehearse."""

from pathlib import Path

import pytest

from sda_platform.formats.game_days import GameDay
from sda_platform.ground.etcd_fault import EtcdMinority
from sda_platform.ground.failure_detection import PathClass
from sda_platform.ground.game_day import problems, rehearsed
from sda_platform.ground.replica_fault import ReplicaLag
from sda_platform.ground.uplink_faults import SlowStation
from sda_platform_tests.support.sampling import number

QUICK = PathClass("rehearsal", interval_s=0.1, fixed_timeout_s=1.0, acceptable_pause_s=0.5)


def rehearsed_here(fault: EtcdMinority | ReplicaLag) -> GameDay:
    """The outcome; skips the test where the machine has no such server."""
    outcome = rehearsed(fault)
    if "not installed" in outcome.skipped or "is installed" in outcome.skipped:
        pytest.skip(outcome.skipped)
    assert outcome.skipped == ""
    return outcome


def test_without_a_majority_of_etcd_no_uplink_commands_until_the_members_return__GF26() -> None:
    outcome = rehearsed_here(EtcdMinority(QUICK, ttl_s=3, watched_s=0.5))
    assert problems([vars(outcome)]) == []
    assert outcome.detected_after_s is not None and outcome.recovered_after_s is not None
    assert 1.0 < outcome.detected_after_s < outcome.recovered_after_s


def test_a_follower_that_lags_is_seen_and_read_no_more_until_it_follows__RT13() -> None:
    outcome = rehearsed_here(ReplicaLag())
    assert problems([vars(outcome)]) == []
    assert outcome.detected_after_s is not None and outcome.recovered_after_s is not None
    assert outcome.detected_after_s <= outcome.recovered_after_s


def test_a_station_that_is_slow_is_taken_for_no_failure_and_executes(tmp_path: Path) -> None:
    """Late by 0.6 s, and 1.5 s for a command: that is beyond the timeout of other calls."""
    fault = SlowStation(watched_s=3.0, commands=number(in_soak=6, in_suite=1))
    outcome = fault.rehearse(tmp_path)
    assert outcome.detected_after_s is None
    assert outcome.recovered_after_s is not None and outcome.recovered_after_s >= 2.1
