"""What a sender may use in a minute: it pays afterwards, and waits until a minute's use at most is unpaid."""

from random import Random

import pytest

from sda_platform.resilience import OverQuota, Quotas


class Time:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def wait_s(quotas: Quotas, sender: str) -> float:
    try:
        quotas.require(sender)
    except OverQuota as error:
        return error.wait_s
    return 0.0


def test_a_large_request_is_served_and_the_next_one_waits() -> None:
    time = Time()
    quotas = Quotas({"bytes": 600.0, "records": 60.0}, time)
    quotas.spend("a", bytes=3000, records=10)
    with pytest.raises(OverQuota, match="a uses more than 600 bytes a minute") as refused:
        quotas.require("a")
    assert refused.value.wait_s == pytest.approx(240.0)
    quotas.require("b")
    time.now_s += 240.0
    quotas.require("a")


def test_an_hour_without_requests_saves_no_more_than_a_minute() -> None:
    time = Time()
    quotas = Quotas({"bytes": 600.0}, time)
    time.now_s += 3600.0
    quotas.spend("a", bytes=1200)
    assert wait_s(quotas, "a") == pytest.approx(60.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_sender_that_always_sends_gets_its_quota(seed: int) -> None:
    chance, time = Random(seed), Time()
    quotas, used = Quotas({"bytes": 600.0}, time), 0
    began_s = time.now_s
    while time.now_s < began_s + 6000.0:
        time.now_s += wait_s(quotas, "a")
        size = chance.randrange(1, 900)
        quotas.spend("a", bytes=size)
        used += size
        time.now_s += 0.01
    assert used / (time.now_s - began_s) * 60 == pytest.approx(600.0, rel=0.03)
