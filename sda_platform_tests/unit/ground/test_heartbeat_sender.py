"""Heartbeats: no answer is no answer, and an error that ends them is raised where the answers are taken."""

from typing import Any

import httpx
import pytest

from sda_platform.ground.heartbeat_sender import HeartbeatSender


def sender(outcome: Exception | dict[str, Any]) -> HeartbeatSender:
    def send() -> dict[str, Any]:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return HeartbeatSender(1.0, send, lambda: 5.0)


@pytest.mark.parametrize("failure", [httpx.ConnectError("away"), ValueError("no JSON")], ids=str)
def test_a_station_that_does_not_answer_ends_nothing(failure: Exception) -> None:
    heartbeats = sender(failure)
    heartbeats.beat()
    assert list(heartbeats.take_answers()) == []


def test_an_error_of_another_kind_reaches_the_uplink() -> None:
    heartbeats = sender(RuntimeError("cannot open a socket"))
    with pytest.raises(RuntimeError):
        heartbeats.beat()
    with pytest.raises(RuntimeError, match="cannot open a socket"):
        list(heartbeats.take_answers())


def test_an_answer_is_as_late_as_the_last_was_and_as_long_as_one_is_waited_for() -> None:
    now_s, seen_s = [0.0], list[float]()

    def send() -> dict[str, Any]:
        now_s[0] += 0.7
        seen_s.append(heartbeats.delay_s(now_s[0]))
        if len(seen_s) == 2:
            raise httpx.ReadTimeout("late")
        return {}

    heartbeats = HeartbeatSender(0.5, send, lambda: now_s[0])
    assert heartbeats.delay_s(9.0) == 0.0
    heartbeats.beat()
    assert heartbeats.delay_s(9.0) == 0.7
    now_s[0] = 1.0
    heartbeats.beat()
    assert seen_s == [pytest.approx(0.7)] * 2
    assert heartbeats.delay_s(9.0) == pytest.approx(0.7), "no answer came, after as long"
