"""T1 of the campaign, sampled: real processes, killed, stopped and failed, and a disk and a clock that misbehave."""

import pytest

from sda_platform_tests.campaign import resends, small_disk, ticks
from sda_platform_tests.campaign.processes import cases, run
from sda_platform_tests.support.sampling import IS_SOAK, number, sampled


def test_a_disturbed_process_is_followed_by_one_that_ends_with_every_record_and_alert_once() -> None:
    report = run(1, seed=1, stride=number(10, 20))
    assert report.is_green, str(report)
    assert report.cases >= number(10, 5)


@pytest.mark.skipif(not IS_SOAK, reason="the campaign's sample has it, see `make soak SAMPLE=1`")
def test_what_was_acknowledged_is_kept_where_it_is_sent_again_around_a_seal_and_a_kill() -> None:
    report = resends.run(1, seed=1, chosen=(resends.Resend("telemetry", "during"),))
    assert report.is_green, str(report)


def test_every_point_is_disturbed_in_every_way() -> None:
    tried = list(cases(1, seed=1))
    assert {c.disturbance for c in tried} == {"kill", "stop", "fail", "full", "clock"} | (
        {"read-only"} if small_disk.is_allowed() else set()
    )
    assert len({c.point for c in tried if c.point}) >= 30


def test_whatever_dagster_forgets_a_batch_has_one_key_and_each_record_lands_once__F_tick() -> None:
    wiped, killed, killed_later_and_wiped = (ticks.CASES[place] for place in (1, 2, 5))
    chosen = sampled(ticks.CASES, wiped, killed, killed_later_and_wiped)
    report = ticks.run(1, seed=1, cases=chosen)
    assert report.is_green, str(report)
    assert report.cases == len(chosen)
