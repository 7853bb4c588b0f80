"""Whatever is killed between outbox and ledger, the subscriber has each alert once (CP-34..37, F-sink, O6, DP5-Q1c)."""

import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sda_platform.delivery.configured import chosen_subscriber
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import Revision, SubscriberUnavailable
from sda_platform.delivery.webhook_subscriber import DeliveryRetries, WebhookSubscriber
from sda_platform.lake.lake import Lake
from sda_platform_tests.support.cutting_proxy import CuttingProxy, Direction
from sda_platform_tests.support.delivery_rounds import (
    ALERTS,
    DELIVERY_POINTS,
    IN_THE_DATABASE,
    deliver,
    deliver_elsewhere,
    killed_delivery,
    report,
    undelivered_or_doubled,
)
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.subscriber_contract import entry
from sda_platform_tests.support.webhook_receiver import Receiver, receiving

RETRIES = DeliveryRetries(attempts=4, first_pause_s=0.001, longest_pause_s=0.002, answer_within_s=2.0)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_at(tmp_path / "lake")


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with receiving(SqliteSubscriber(tmp_path / "received.sqlite")) as running:
        yield running


def keys(store: SqliteSubscriber) -> list[Revision]:
    """Every entry that was ever taken; what was sent again after a loss counts once more."""
    return [(alert_id, sequence, op) for alert_id, sequence, op, *_ in store.receipts()]


@pytest.mark.parametrize(
    ("kind", "point", "visit"),
    [("sqlite", *step) for step in DELIVERY_POINTS]
    + [("webhook", *step) for step in DELIVERY_POINTS if step != IN_THE_DATABASE],
)
def test_a_process_killed_at_any_step_of_a_delivery_costs_and_doubles_nothing__CP34_CP35_CP36_CP37(
    tmp_path: Path, receiver: Receiver, kind: str, point: str, visit: int
) -> None:
    setting = receiver.url if kind == "webhook" else str(receiver.store.path)
    problems, _ = killed_delivery(tmp_path, setting, receiver.store, (point, visit))
    assert problems == []


def test_a_subscriber_that_is_down_and_back_gets_what_waited_once__F_sink(tmp_path: Path, lake: Lake) -> None:
    store = SqliteSubscriber(tmp_path / "received.sqlite")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/alerts"
    report(lake, (ALERTS[0], 0, "insert"))
    assert deliver_elsewhere(tmp_path, url) == 1
    report(lake, (ALERTS[0], 0, "retract"), (ALERTS[1], 0, "insert"))
    with receiving(store, port):
        assert deliver_elsewhere(tmp_path, url) == 0
        assert undelivered_or_doubled(lake, chosen_subscriber(url, tmp_path), keys(store)) == []


def test_runs_that_find_no_one_lose_no_alert(tmp_path: Path, lake: Lake) -> None:
    report(lake, (ALERTS[0], 0, "insert"))
    for _ in range(2):
        assert deliver_elsewhere(tmp_path, "http://127.0.0.1:1/alerts") == 1
    with pytest.raises(SubscriberUnavailable):
        deliver(lake, chosen_subscriber("http://127.0.0.1:1/alerts", tmp_path))
    healthy = SqliteSubscriber(tmp_path / "received.sqlite")
    deliver(lake, healthy)
    assert undelivered_or_doubled(lake, healthy, keys(healthy)) == []


@pytest.mark.parametrize("direction", ["request", "answer"])
def test_a_connection_lost_at_any_byte_of_a_request_or_an_answer_doubles_nothing__F_sink(
    tmp_path: Path, receiver: Receiver, direction: Direction
) -> None:
    with CuttingProxy(receiver.server_address[1]) as proxy:
        subscriber = WebhookSubscriber(proxy.url, retries=RETRIES)
        subscriber.apply("whole", [entry(0, alert_id="whole")])  # as long as each of those that follow
        length = proxy.passed[direction]
        chosen = sorted({0, 1, length - 1, *random.Random(11).sample(range(length), 25)})
        for at in chosen:
            proxy.cut_next(direction, at)
            assert subscriber.apply(f"{at:05}", [entry(0, alert_id=f"{at:05}")]) == ["applied"], f"cut at byte {at}"
            assert proxy.cuts.pop() == at
    assert sorted(alert for alert, *_ in keys(receiver.store)) == [*(f"{at:05}" for at in chosen), "whole"]
