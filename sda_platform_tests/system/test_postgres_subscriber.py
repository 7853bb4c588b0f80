"""Postgres as the subscriber: the real server, the contract, and kill -9 on either side of the connection."""

from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread

import pytest

from sda_platform.delivery.postgres_subscriber import PostgresSubscriber
from sda_platform.delivery.subscriber import Outcome, SubscriberMisconfigured, SubscriberUnavailable
from sda_platform_tests.support.delivery_rounds import ALERTS, DELIVERY_POINTS, deliver, empty, killed_delivery, report
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.postgres_server import PASSWORD, PostgresServer, postgres_with_empty_database
from sda_platform_tests.support.subscriber_contract import SubscriberContract, entry, standing


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_with_empty_database() as started:
        yield started


@pytest.fixture
def subscriber(server: PostgresServer) -> PostgresSubscriber:
    subscriber = PostgresSubscriber(server.url)
    empty(subscriber)
    return subscriber


class TestPostgres(SubscriberContract):
    """The contract, kept by Postgres."""


def test_first_contact_of_several_senders_creates_the_tables_once__D18(server: PostgresServer) -> None:
    subscriber = PostgresSubscriber(server.url)
    for attempt in range(6):
        with subscriber._transaction(writes=True) as transaction:
            transaction.run("DROP TABLE alerts, marks, receipts, batches")
        outcomes: list[object] = []

        def deliver_first(sender: int, begin: Barrier, outcomes: list[object] = outcomes) -> None:
            begin.wait()
            try:
                outcomes.extend(PostgresSubscriber(server.url).apply(f"b{sender}", [entry(0, alert_id=str(sender))]))
            except Exception as error:
                outcomes.append(error)

        begin = Barrier(4)
        senders = [Thread(target=deliver_first, args=(sender, begin)) for sender in range(4)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert outcomes == ["applied"] * 4, f"in round {attempt}"


def test_a_wrong_password_is_permanent_and_not_shown(server: PostgresServer) -> None:
    with pytest.raises(SubscriberMisconfigured, match="password authentication failed") as refused:
        PostgresSubscriber(server.url.replace(PASSWORD, "wr0ng")).mark()
    assert "wr0ng" not in str(refused.value)


def test_two_senders_of_one_batch_apply_it_once(subscriber: PostgresSubscriber) -> None:
    answers: list[list[Outcome]] = []
    batch = [entry(0, alert_id=alert) for alert in ALERTS[:50]]
    senders = [Thread(target=lambda: answers.append(subscriber.apply("b1", batch))) for _ in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert answers == [["applied"] * 50] * 4
    assert len(subscriber.receipts()) == 50


@pytest.mark.parametrize(("point", "visit"), DELIVERY_POINTS)
def test_a_process_killed_at_any_step_of_a_delivery_costs_and_doubles_nothing__CP34_CP35_CP36_CP37(
    server: PostgresServer, subscriber: PostgresSubscriber, tmp_path: Path, point: str, visit: int
) -> None:
    problems, _ = killed_delivery(tmp_path, server.url, subscriber, (point, visit))
    assert problems == []


def test_a_server_that_is_down_and_back_gets_what_waited_once__F_sink(
    server: PostgresServer, subscriber: PostgresSubscriber, tmp_path: Path
) -> None:
    lake = lake_at(tmp_path / "lake")
    report(lake, (ALERTS[0], 0, "insert"))
    deliver(lake, subscriber)
    server.stop("immediate")
    report(lake, (ALERTS[0], 0, "retract"), (ALERTS[1], 0, "insert"))
    try:
        with pytest.raises(SubscriberUnavailable, match=r"postgresql://127\.0\.0\.1"):
            deliver(lake, subscriber)
    finally:
        server.start()
    assert deliver(lake, subscriber)["outcomes"] == {"applied": 2}
    assert standing(subscriber) == [(ALERTS[1], 0)]
