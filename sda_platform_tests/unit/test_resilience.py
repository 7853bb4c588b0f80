"""Retries, Retry-After, restart budgets and the circuit breaker, on a clock that the test moves."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count

import pytest

from sda_platform.resilience import (
    Breaker,
    BreakerState,
    RestartBudget,
    RetryBudget,
    RetryPolicy,
    Transient,
    doubling_s,
    retry_after_s,
)

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("7", 7.0),
        ("900", 120.0),
        ("Sun, 22 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 22 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", 0.0),
        ("", 0.0),
        (None, 0.0),
        ("-5", 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_is_capped__F4_41(header: str | None, expected: float) -> None:
    assert retry_after_s(header, now=NOW, cap_s=120.0) == expected


def test_pauses_double_up_to_the_cap__F4_2() -> None:
    assert [doubling_s(attempt, base_s=1.0, cap_s=30.0) for attempt in range(1, 9)] == [1, 2, 4, 8, 16, 30, 30, 30]
    assert doubling_s(10_000, base_s=1.0, cap_s=30.0) == 30.0


def failing(times: int, *, retry_after_s: float = 0.0) -> Callable[[], int]:
    """Fails so often with a transient error, and then answers with the number of its calls."""
    calls = count(1)

    def attempt() -> int:
        made = next(calls)
        if made > times:
            return made
        error = Transient(f"attempt {made}")
        error.retry_after_s = retry_after_s
        raise error

    return attempt


def test_a_call_is_retried_with_jitter_within_its_bounds__DP2_F6() -> None:
    policy, pauses = RetryPolicy(4, 1.0, 2.5), list[float]()
    assert policy.call(failing(3), seed="a", sleep=pauses.append) == 4
    assert len(pauses) == 3 and all(1.0 <= pause <= 2.5 for pause in pauses)
    other = list[float]()
    policy.call(failing(3), seed="b", sleep=other.append)
    assert other != pauses, "clients that failed together do not return together"
    with pytest.raises(Transient, match="attempt 4"):
        policy.call(failing(4), seed="a", sleep=pauses.append)


def test_the_pause_that_was_requested_is_kept_up_to_the_bound__F4_41() -> None:
    pauses = list[float]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def answer(attempt: Callable[[], int]) -> int:
        async def call() -> int:
            return attempt()

        return await RetryPolicy(2, 0.1, 30.0).call_async(call, seed="a", sleep=sleep)

    assert [asyncio.run(answer(failing(1, retry_after_s=asked))) for asked in (7.0, 90.0)] == [2, 2]
    assert pauses == [7.0, 30.0]


def test_an_error_that_does_not_pass_is_not_retried__DP2_F6() -> None:
    def refused() -> int:
        raise ValueError("never")

    with pytest.raises(ValueError, match="never"):
        RetryPolicy().call(refused, seed="a", sleep=lambda _pause_s: pytest.fail("it was retried"))


def test_a_budget_allows_five_restarts_in_a_minute_and_recovers__DP2_F5() -> None:
    budget = RestartBudget(5, 60.0)
    assert [budget.spend(second) for second in range(6)] == [True] * 5 + [False]
    assert budget.spend(60.0)
    assert not budget.spend(60.5)


def test_a_breaker_opens_probes_once_and_closes__DP2_F7() -> None:
    breaker = Breaker()
    for second in range(4):
        breaker.record(True, began_s=second, now_s=second)
    assert breaker.allows(4)
    breaker.record(True, began_s=4, now_s=4)
    assert breaker.state(5) is BreakerState.OPEN
    assert not breaker.allows(33)
    assert breaker.allows(34)
    assert not breaker.allows(34.5)
    breaker.record(False, began_s=34, now_s=35)
    assert breaker.state(35) is BreakerState.CLOSED


def test_half_of_the_calls_within_the_window_count() -> None:
    breaker = Breaker()
    for second in range(10):
        breaker.record(second % 2 == 1, began_s=second, now_s=second)
    assert breaker.state(10) is BreakerState.OPEN
    calm = Breaker()
    for second in range(20):
        calm.record(second % 3 == 0 and second > 0, began_s=second * 10, now_s=second * 10)
    assert calm.state(200) is BreakerState.CLOSED


def test_a_probe_whose_outcome_is_never_recorded_is_forgotten__E23() -> None:
    breaker = Breaker()
    for _ in range(5):
        breaker.record(True, began_s=0, now_s=0)
    assert breaker.allows(30)
    breaker.record(False, began_s=1, now_s=31)  # a call from before it opened
    assert breaker.state(31) is BreakerState.HALF_OPEN
    assert breaker.allows(60)
    breaker.record(True, began_s=60, now_s=61)
    assert breaker.state(62) is BreakerState.OPEN


def test_retries_are_a_tenth_of_the_calls_of_the_last_seconds__GF10_GF14_GF16() -> None:
    budget, retries = RetryBudget(), 0
    for call in range(1000):
        now_s = call / 100
        budget.called(now_s)
        if call % 2:
            retries += budget.allows_retry(now_s)
    assert 90 <= retries <= 100
    assert budget.allows_retry(1000.0), "an old attempt counts no more, and one retry is always allowed"
    assert not budget.allows_retry(1000.1)


def test_few_calls_do_not_hide_a_dependency_that_fails__GF7_GF27() -> None:
    breaker = Breaker(least_calls=20)
    for call in range(19):
        breaker.record(True, began_s=call * 60.0, now_s=call * 60.0)
    assert breaker.state(19 * 60.0) is BreakerState.CLOSED
    breaker.record(True, began_s=19 * 60.0, now_s=19 * 60.0)
    assert breaker.state(19 * 60.0) is BreakerState.OPEN
