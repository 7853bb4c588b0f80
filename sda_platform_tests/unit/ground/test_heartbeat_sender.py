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
