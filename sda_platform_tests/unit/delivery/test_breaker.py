"""The circuit breaker: opens after failures in a row, probes after a pause, and is never stuck (E23)."""

from pathlib import Path

import pytest

from sda_platform.delivery.breaker import Breaker, CircuitOpen


class Process:
    """What one process sees: each look at the breaker is a new object on the same file."""

    def __init__(self, path: Path) -> None:
        self.path, self.now_s = path, 1000.0

    @property
    def breaker(self) -> Breaker:
        return Breaker(self.path, "hook", failures_to_open=3, pause_s=30, probe_lease_s=20, now_s=lambda: self.now_s)

    def fail(self, times: int = 1) -> None:
        for _ in range(times):
            self.breaker.record(self.breaker.admit(), succeeded=False)

    def is_open(self) -> bool:
        try:
            self.breaker.record(self.breaker.admit(), succeeded=True)
        except CircuitOpen:
            return True
        return False


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(tmp_path / "home" / "breakers.sqlite")


def test_it_opens_after_failures_in_a_row_and_the_next_process_knows(process: Process) -> None:
    process.fail(2)
    assert not process.is_open(), "the success that this was begins the count anew"
    process.fail(3)
    with pytest.raises(CircuitOpen, match="hook: it did not answer lately; the next attempt is due in 30 s"):
        process.breaker.admit()


def test_after_the_pause_one_probe_decides(process: Process) -> None:
    process.fail(3)
    process.now_s += 30
    probe = process.breaker.admit()
    assert process.is_open(), "a second one is not admitted beside it"
    process.breaker.record(probe, succeeded=False)
    process.now_s += 29
    assert process.is_open()
    process.now_s += 1
    process.breaker.record(process.breaker.admit(), succeeded=True)
    assert not process.is_open()


def test_a_probe_whose_process_died_blocks_nobody_for_longer_than_its_lease__E23(process: Process) -> None:
    process.fail(3)
    process.now_s += 30
    process.breaker.admit()
    process.now_s += 19
    assert process.is_open()
    process.now_s += 1
    assert not process.is_open()


def test_the_late_outcome_of_an_earlier_attempt_changes_nothing__E23(process: Process) -> None:
    before = process.breaker.admit()
    process.fail(3)
    process.breaker.record(before, succeeded=True)
    assert process.is_open(), "a success from before the failures does not close it"
    process.now_s += 30
    lost = process.breaker.admit()
    process.now_s += 20
    current = process.breaker.admit()
    process.breaker.record(lost, succeeded=True)
    assert process.is_open(), "nor does a probe that was given up"
    process.breaker.record(current, succeeded=True)
    process.breaker.record(before, succeeded=False)
    process.fail(2)
    assert not process.is_open(), "nor does a failure from then count now"


def test_a_clock_that_was_set_back_does_not_keep_it_open(process: Process) -> None:
    process.fail(3)
    process.now_s -= 86_400
    assert not process.is_open()


def test_two_receivers_have_two_breakers(process: Process) -> None:
    process.fail(3)
    Breaker(process.path, "other").admit()
