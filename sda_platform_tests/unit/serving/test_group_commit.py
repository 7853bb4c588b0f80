"""Puts are acknowledged when they are durable and shown, many of them by one micro-segment."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Event

import pytest

from sda_platform import failpoints
from sda_platform.formats.element_set import ElementSet
from sda_platform.serving.group_commit import Busy, GroupCommit
from sda_platform_tests.support.crashes import crash_at


def element_set(norad_id: int) -> ElementSet:
    return ElementSet(norad_id, "X", None, 0, 15.0, 0.001, 51.6, 0.0, 0.0, 0.0, 0.0)


class Zone:
    """Records in which order groups are made durable and shown."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.is_open = Event()
        self.is_sealing = Event()

    def seal(self, sets: Sequence[ElementSet]) -> Callable[[], None]:
        self.is_sealing.set()
        self.is_open.wait(10)
        numbers = [each.norad_id for each in sets]
        self.events.append(f"sealed {numbers}")
        return lambda: self.events.append(f"shown {numbers}")


def acknowledged(zone: Zone, future: Future[None]) -> Future[None]:
    future.add_done_callback(lambda _: zone.events.append("acknowledged"))
    return future


def test_a_put_is_sealed_then_shown_then_acknowledged__WL8_WL23() -> None:
    zone = Zone()
    zone.is_open.set()
    group = GroupCommit(zone.seal)
    acknowledged(zone, group.put([element_set(1)])).result(10)
    group.close()
    assert zone.events == ["sealed [1]", "shown [1]", "acknowledged"]


def test_puts_that_wait_share_one_sync__WL10() -> None:
    zone = Zone()
    group = GroupCommit(zone.seal)
    futures = [group.put([element_set(0)])]
    zone.is_sealing.wait(10)
    futures += [group.put([element_set(number)]) for number in range(1, 101)]
    zone.is_open.set()
    for future in futures:
        future.result(10)
    group.close()
    assert [event for event in zone.events if event.startswith("sealed")] == [
        "sealed [0]",
        f"sealed {list(range(1, 101))}",
    ]


def test_what_waits_is_sealed_before_the_end() -> None:
    zone = Zone()
    group = GroupCommit(zone.seal)
    first = group.put([element_set(1)])
    zone.is_sealing.wait(10)
    second = group.put([element_set(2)])
    zone.is_open.set()
    group.close()
    assert first.done() and second.done()


def test_a_put_that_cannot_be_sealed_is_not_acknowledged__WL8() -> None:
    def seal(sets: Sequence[ElementSet]) -> Callable[[], None]:
        raise OSError(28, "No space left on device")

    group = GroupCommit(seal)
    with pytest.raises(OSError, match="No space"):
        group.put([element_set(1)]).result(10)
    group.close()


@pytest.mark.parametrize("point", ["serving.gathered", "serving.sealed", "serving.shown"])
def test_a_put_is_not_acknowledged_after_a_failure_at_any_point__WL9(point: str) -> None:
    zone = Zone()
    zone.is_open.set()
    group = GroupCommit(zone.seal)
    with crash_at(point), pytest.raises(failpoints.InjectedFault):
        group.put([element_set(1)]).result(10)
    group.put([element_set(2)]).result(10)
    group.close()


def test_a_sender_that_goes_away_does_not_end_the_puts_of_others() -> None:
    zone = Zone()
    group = GroupCommit(zone.seal)
    left = group.put([element_set(1)])
    zone.is_sealing.wait(10)
    assert not left.cancel(), "what may be durable already cannot be withdrawn"
    zone.is_open.set()
    group.put([element_set(2)]).result(10)
    group.close()
    assert zone.events == ["sealed [1]", "shown [1]", "sealed [2]", "shown [2]"]


def test_more_puts_than_may_wait_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sda_platform.serving.group_commit.MOST_WAITING", 2)
    zone = Zone()
    group = GroupCommit(zone.seal)
    group.put([element_set(0)])
    zone.is_sealing.wait(10)
    group.put([element_set(1)])
    group.put([element_set(2)])
    with pytest.raises(Busy, match="2 puts wait"):
        group.put([element_set(3)])
    zone.is_open.set()
    group.close()
