"""A sensor's tick looks again until it finds work, and ends before Dagster's loop comes round."""

import dagster as dg
import pytest
from dagster._daemon import sensor
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.orchestration.long_polling import LOOP_S, until_found

REASON = dg.SkipReason("nothing is pending")


class Clock:
    """Time that passes only while the code sleeps or looks."""

    def __init__(self, look_s: float = 0.0) -> None:
        self.now, self.look_s, self.looks = 0.0, look_s, 0

    def look(self, found_at_s: float) -> str | dg.SkipReason:
        self.looks += 1
        self.now += self.look_s
        return "work" if self.now >= found_at_s else REASON

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def tick(clock: Clock, every_s: float, found_at_s: float) -> str | dg.SkipReason:
    return until_found(lambda: clock.look(found_at_s), every_s, now_s=lambda: clock.now, sleep=clock.sleep)


def test_work_that_comes_during_the_tick_is_found_at_the_next_look() -> None:
    clock = Clock()
    assert tick(clock, 1.0, found_at_s=2.5) == "work"
    assert clock.now == 3.0


def test_without_work_the_tick_skips_with_the_last_reason_after_four_seconds() -> None:
    clock = Clock()
    assert tick(clock, 1.0, found_at_s=99.0) is REASON
    assert (clock.looks, clock.now) == (5, 4.0)


def test_a_tick_of_a_platform_that_stops_ends_with_its_next_look() -> None:
    clock = Clock()
    stopping = until_found(
        lambda: clock.look(99.0), 1.0, is_over=lambda: clock.now >= 2.0, now_s=lambda: clock.now, sleep=clock.sleep
    )
    assert (stopping, clock.now) == (REASON, 2.0)


@given(every_s=st.floats(0.1, 60.0), look_s=st.floats(0.0, 0.9))
def test_a_tick_ends_before_the_next_begins_however_slow_a_look_is(every_s: float, look_s: float) -> None:
    clock = Clock(look_s)
    tick(clock, every_s, found_at_s=1e9)
    assert clock.looks >= 1
    assert clock.now <= LOOP_S


def test_dagsters_loop_has_the_period_that_a_tick_reckons_with() -> None:
    assert pytest.approx(LOOP_S) == sensor.MIN_INTERVAL_LOOP_TIME
