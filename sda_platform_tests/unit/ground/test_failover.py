"""Failover of an uplink: promotion with a token, failback, both down, calls that fail; then seeded faults."""

import random
from itertools import count

import pytest

from sda_platform.formats.membership_events import ALIVE, DEAD, LEFT
from sda_platform.ground.failover import (
    BACKUP,
    BOTH_DOWN,
    CLEARED,
    DECLARED,
    FAILED_BACK,
    PRIMARY,
    PROMOTED,
    RECOVERED,
    SUSPECTED,
    Failover,
)
from sda_platform.ground.failure_detection import CROSS_REGION, INTRA_REGION, PathClass
from sda_platform_tests.models.uplink_model import DRAIN_PER_S, run

STEP_S = 0.05


class Link:
    """A failover whose paths send heartbeats until they are stopped."""

    def __init__(self, path: PathClass = INTRA_REGION, failback_after_s: float | None = 20.0) -> None:
        self.failover = Failover(path, count(1).__next__, failback_after_s)
        self.path, self.now_s = path, 0.0
        self.down: set[str] = set()
        self.failing: set[str] = set()

    def run(self, seconds: float) -> list[str]:
        """What happened in so many seconds, as ``uplink event``."""
        found, last_s = [], self.now_s + seconds
        while self.now_s < last_s:
            self.now_s += STEP_S
            for name, path in self.failover.paths.items():
                if name not in self.down and self.now_s % self.path.interval_s < STEP_S:
                    path.note_heartbeat(self.now_s)
                if name in self.failing:
                    path.note_call(True, began_s=self.now_s, now_s=self.now_s)
            found += self.failover.update(self.now_s)
        return [f"{each.uplink} {each.event}".strip() for each in found]


@pytest.mark.parametrize("path", [INTRA_REGION, CROSS_REGION])
def test_a_stopped_primary_is_suspected_declared_and_replaced_within_thirty_seconds__GF9_GF20(path: PathClass) -> None:
    link = Link(path)
    link.run(60)
    assert (link.failover.active, link.failover.token) == (PRIMARY, 1)
    link.down.add(PRIMARY)
    stopped_s = link.now_s
    seen = link.run(30)
    assert seen == [f"{PRIMARY} {SUSPECTED}", f"{PRIMARY} {DECLARED}", f"{BACKUP} {PROMOTED}"]
    assert (link.failover.active, link.failover.token) == (BACKUP, 2)
    assert link.failover.events[-1].time_s - stopped_s < 3 * path.fixed_timeout_s < 30


def test_the_primary_comes_back_after_it_was_healthy_for_long_enough__GF25() -> None:
    link = Link()
    link.run(30)
    link.down.add(PRIMARY)
    link.run(5)
    link.down.clear()
    assert link.run(15) == [f"{PRIMARY} {CLEARED}", f"{PRIMARY} {RECOVERED}"]
    assert link.failover.active == BACKUP
    assert link.run(10) == [f"{PRIMARY} {FAILED_BACK}"]
    assert (link.failover.active, link.failover.token) == (PRIMARY, 3)


def test_without_a_time_the_primary_comes_back_only_when_the_backup_fails__GF25() -> None:
    link = Link(failback_after_s=None)
    link.run(30)
    link.down.add(PRIMARY)
    link.run(5)
    link.down.clear()
    link.run(300)
    assert link.failover.active == BACKUP
    link.down.add(BACKUP)
    assert f"{PRIMARY} {PROMOTED}" in link.run(5)


def test_while_both_are_down_no_one_commands_and_the_first_to_recover_does__GF25() -> None:
    link = Link()
    link.run(30)
    link.down |= {PRIMARY, BACKUP}
    assert BOTH_DOWN in link.run(5)
    assert link.failover.active is None
    link.down.discard(BACKUP)
    assert f"{BACKUP} {PROMOTED}" in link.run(5)


def test_heartbeats_without_answers_and_answers_without_heartbeats_are_distinguished__GF26_GF27() -> None:
    link = Link()
    link.run(30)
    link.failing.add(PRIMARY)
    assert f"{BACKUP} {PROMOTED}" in link.run(2), "its heartbeats arrive, but each call fails"
    silent = Link()
    silent.run(30)
    silent.down.add(PRIMARY)
    for _ in range(100):
        silent.failover.paths[PRIMARY].note_call(False, began_s=silent.now_s, now_s=silent.now_s)
        assert f"{PRIMARY} {DECLARED}" not in silent.run(STEP_S), "its calls are answered"


def test_no_command_is_executed_twice_or_lost_over_seeded_faults__GF9_GF20_GF23_GF24() -> None:
    outcomes = [run(seed, seconds=60) for seed in range(60)]
    assert [each.seed for each in outcomes if each.executed_twice or each.executed_stale or each.unserved] == []
    assert sum(each.stale_refused for each in outcomes) > 100, "former uplinks must have tried"
    assert sum(each.promotions for each in outcomes) > 100
    assert max(each.slowest_promotion_s for each in outcomes) < 30
    assert max(each.fastest_drain_per_s for each in outcomes) < 1.5 * DRAIN_PER_S


def test_a_station_that_trusts_every_sender_is_found_out__GF24() -> None:
    # One schedule of some fifty has a late command that no successor has sent meanwhile.
    assert any(run(seed, seconds=60, is_fenced=False).executed_stale for seed in range(10, 20))


def test_a_primary_whose_agent_left_is_replaced_at_once_and_one_that_failed_when_it_is_suspected__GF26() -> None:
    link = Link(CROSS_REGION)
    link.run(60)
    primary = link.failover.paths[PRIMARY]
    primary.reported = DEAD
    assert link.run(10) == [], "heartbeats that arrive outweigh what other agents see"
    primary.reported = LEFT
    assert link.run(1) == [f"{PRIMARY} {DECLARED}", f"{BACKUP} {PROMOTED}"]
    primary.reported = ALIVE
    assert link.run(30) == [f"{PRIMARY} {RECOVERED}", f"{PRIMARY} {FAILED_BACK}"]


def test_a_suspicion_that_membership_confirms_is_declared_sooner__GF20() -> None:
    declared_s = []
    for reported in (ALIVE, DEAD):
        chance, path = random.Random(1), Failover(CROSS_REGION, lambda: 0).paths[PRIMARY]
        now_s = 0.0
        for _ in range(200):
            now_s += chance.uniform(0.1, 1.5)
            path.note_heartbeat(now_s)
            path.update(now_s)
        path.reported, stopped_s = reported, now_s
        while not path.is_declared:
            now_s += STEP_S
            path.update(now_s)
        declared_s.append(now_s - stopped_s)
    assert declared_s[1] < declared_s[0] < 30


def test_a_silence_that_late_answers_explain_is_none_and_a_longer_one_is() -> None:
    failover = Failover(CROSS_REGION, count(1).__next__)
    path = failover.paths[PRIMARY]
    for beat in range(20):
        path.note_heartbeat(0.5 * beat)
    last_s = 9.5
    path.delay_s = 0.6
    assert [event.event for event in path.update(last_s + 1.5)] == []
    assert [event.event for event in path.update(last_s + 1.7)] == [SUSPECTED, DECLARED]
    path.note_heartbeat(last_s + 1.8)
    path.update(last_s + 1.8)
    path.delay_s = 0.0
    assert DECLARED in [event.event for event in path.update(last_s + 3.3)]
