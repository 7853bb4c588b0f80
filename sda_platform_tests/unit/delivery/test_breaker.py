"""The breaker before a subscriber: one that is away is asked less and less often, by all processes together."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from sda_platform.delivery.breaker import GuardedSubscriber, guarded
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import SubscriberUnavailable
from sda_platform.delivery.webhook_subscriber import WebhookSubscriber
from sda_platform_tests.support.webhook_receiver import Receiver


class Clock:
    """Wall time that a test moves."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with Receiver(SqliteSubscriber(tmp_path / "s.sqlite")) as made:
        Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield made
        made.shutdown()


def away(receiver: Receiver) -> None:
    receiver.is_away = True


def subscriber(receiver: Receiver, home: Path, clock: Clock) -> GuardedSubscriber:
    """As another process makes it."""
    return GuardedSubscriber(WebhookSubscriber(receiver.url, sleep=lambda _s: None), home, clock)


def test_a_subscriber_that_is_away_is_asked_less_and_less_often(receiver: Receiver, tmp_path: Path) -> None:
    clock, asked = Clock(), []
    away(receiver)
    for second in range(120):
        clock.now_s = 1000.0 + second
        before = len(receiver.requests)
        with pytest.raises(SubscriberUnavailable, match="answered 503"):
            subscriber(receiver, tmp_path, clock).mark()
        asked += [second] if len(receiver.requests) > before else []
    assert asked == [0, 1, 2, 7, 17, 37, 67, 97]


def test_the_first_answer_closes_it(receiver: Receiver, tmp_path: Path) -> None:
    clock = Clock()
    away(receiver)
    for _ in range(3):
        with pytest.raises(SubscriberUnavailable):
            subscriber(receiver, tmp_path, clock).held()
    receiver.is_away = False
    with pytest.raises(SubscriberUnavailable):
        subscriber(receiver, tmp_path, clock).apply("b", [])
    clock.now_s += 5.0
    assert subscriber(receiver, tmp_path, clock).mark().count == 0
    assert list(tmp_path.glob("*.json")) == []


def test_a_refused_login_opens_it_as_well_and_ends_by_itself(receiver: Receiver, tmp_path: Path) -> None:
    receiver.password, clock = "asked", Clock()
    for _ in range(4):
        with pytest.raises(SubscriberUnavailable, match="answered 401"):
            subscriber(receiver, tmp_path, clock).mark()
    assert len(receiver.requests) == 3
    receiver.password = None
    clock.now_s += 5.0
    assert subscriber(receiver, tmp_path, clock).mark().count == 0


def test_a_damaged_or_unwritable_file_opens_nothing(receiver: Receiver, tmp_path: Path) -> None:
    (tmp_path / "subscriber_breaker.json").write_text("no json")
    assert subscriber(receiver, tmp_path, Clock()).mark().count == 0
    away(receiver)
    for _ in range(4):
        with pytest.raises(SubscriberUnavailable):
            subscriber(receiver, tmp_path / "absent", Clock()).mark()
    assert len(receiver.requests) >= 5


def test_a_file_of_this_machine_needs_none(tmp_path: Path) -> None:
    local = SqliteSubscriber(tmp_path / "s.sqlite")
    assert guarded(local, tmp_path) is local
    remote = guarded(WebhookSubscriber("http://127.0.0.1:1/alerts"), tmp_path)
    assert (remote.name, bool(remote.idempotency)) == ("http://127.0.0.1:1/alerts", True)
