"""Postgres as the subscriber: the real server, the contract, and kill -9 on either side of the connection.

Also a network that is cut at any byte of a delivery, and a leader that dies in the middle of one.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Barrier, Thread

import pytest

from sda_platform import failpoints
from sda_platform.delivery.postgres_subscriber import PostgresSubscriber
from sda_platform.delivery.subscriber import Outcome, SubscriberUnavailable
from sda_platform.orchestration.dispositions import Disposition, disposition_of
from sda_platform_tests.support.certificates import make_certificates
from sda_platform_tests.support.cutting_proxy import CuttingProxy
from sda_platform_tests.support.delivery_rounds import (
    ALERTS,
    DELIVERY_POINTS,
    deliver,
    empty,
    killed_delivery,
    report,
    undelivered_or_doubled,
)
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.postgres_replicas import moving_postgres
from sda_platform_tests.support.postgres_server import (
    PASSWORD,
    PostgresServer,
    postgres_with_empty_database,
    required_binaries,
    running_postgres,
)
from sda_platform_tests.support.subscriber_contract import SubscriberContract, entry, standing

_CUTS = 8


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


def test_a_refused_login_is_not_shown_and_passes_when_the_server_is_mended(server: PostgresServer) -> None:
    with pytest.raises(SubscriberUnavailable, match="password authentication failed") as refused:
        PostgresSubscriber(server.url.replace(PASSWORD, "wr0ng")).mark()
    assert "wr0ng" not in str(refused.value)
    assert disposition_of(refused.value) is Disposition.TRANSIENT


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


def test_a_connection_cut_at_any_byte_of_a_batch_costs_and_doubles_nothing__F_sink(
    server: PostgresServer, subscriber: PostgresSubscriber
) -> None:
    """Also between commit and answer: the sender cannot know, sends again, and gets the first answer."""
    port = port_of(server.url)
    with CuttingProxy(port) as network:
        through = PostgresSubscriber(server.url.replace(f":{port}/", f":{network.port}/"))
        assert through.apply("whole", [entry(0, alert_id=alert) for alert in ALERTS[:3]]) == ["applied"] * 3
        lengths = dict(network.passed)
        cuts = [(way, round(length * part / _CUTS)) for way, length in lengths.items() for part in range(_CUTS)]
        cuts += [("answer", lengths["answer"] - before) for before in range(1, 30, 7)]
        kept = 0
        for number, (way, at) in enumerate(cuts, start=1):
            batch = [entry(number, alert_id=alert) for alert in ALERTS[:3]]
            network.cut_next(way, at)
            with suppress(SubscriberUnavailable):
                through.apply(f"cut-{number}", batch)
            kept += subscriber.answer(f"cut-{number}") is not None
            assert through.apply(f"cut-{number}", batch) == ["applied"] * 3, (way, at)
        assert network.cuts == [at for _, at in cuts]
    assert 0 < kept < len(cuts), "some cuts came before the commit, some after it"
    received = Counter((alert, sequence) for alert, sequence, *_ in subscriber.receipts())
    assert received == Counter((alert, sequence) for alert in ALERTS[:3] for sequence in range(len(cuts) + 1))


def test_a_leader_that_dies_during_a_delivery_is_followed_by_its_standby_and_nothing_is_lost_or_doubled__F_sink(
    tmp_path: Path,
) -> None:
    """It dies in the transaction of the second group, after it has committed the first. The standby is synchronous, and
    an address that moves with the leader stands before the two.
    """
    lake, written = lake_at(tmp_path / "lake"), list[str]()
    struck: list[str] = []
    with ExitStack() as stack:
        servers = stack.enter_context(moving_postgres())
        subscriber = PostgresSubscriber(servers.url)
        report(lake, (ALERTS[0], 0, "insert"))
        deliver(lake, subscriber)
        report(lake, (ALERTS[0], 0, "retract"), *((alert, 0, "insert") for alert in ALERTS[1:]))

        def fail_over(reached: str) -> None:
            written.extend([reached] if reached == "delivery.written" else [])
            if len(written) == 2 and not struck:
                struck.append(reached)
                servers.lose_leader()
                with pytest.raises(SubscriberUnavailable) as refused:
                    subscriber.apply("too-early", [entry(0)])
                assert disposition_of(refused.value) is Disposition.TRANSIENT, "a standby takes no writes yet"
                servers.promote()

        stack.callback(failpoints.watch, None)
        failpoints.watch(fail_over)
        with suppress(SubscriberUnavailable):
            deliver(lake, subscriber)
        deliver(lake, subscriber)
        assert struck == ["delivery.written"]
        received = [(alert, sequence, op) for alert, sequence, op, *_ in subscriber.receipts()]
        assert undelivered_or_doubled(lake, subscriber, received) == []


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2].partition("/")[0])


@pytest.fixture(scope="module")
def certified() -> Iterator[tuple[PostgresServer, Path]]:
    """A server with TLS and the directory of its certificates: of its own authority, of another, and an expired one."""
    with tempfile.TemporaryDirectory(prefix="sda-postgres-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        make_certificates(directory, "db.example.org")
        with running_postgres(required_binaries(), directory, certificate=directory / "right") as started:
            yield started, directory


@pytest.mark.parametrize(
    ("served", "host", "query", "reason"),
    [
        ("right", "127.0.0.1", "sslmode=verify-full&sslrootcert={right}.crt", ""),
        ("right", "127.0.0.1", "sslmode=require&sslrootcert={right}.crt", ""),
        ("right", "127.0.0.1", "sslmode=disable", ""),
        ("right", "127.0.0.1", "", ""),
        ("right", "localhost", "sslmode=verify-full&sslrootcert={right}.crt", "mismatch"),
        ("right", "localhost", "sslmode=verify-ca&sslrootcert={right}.crt", ""),
        ("right", "127.0.0.1", "sslmode=verify-full", "certificate verify failed"),
        ("right", "127.0.0.1", "sslmode=verify-full&sslrootcert={other}.crt", "certificate verify failed"),
        ("right", "127.0.0.1", "sslmode=verify-ca&sslrootcert={other}.crt", "certificate verify failed"),
        ("expired", "127.0.0.1", "sslmode=verify-full&sslrootcert={expired}.crt", "expired"),
    ],
)
def test_the_server_is_verified_as_the_address_demands__S8(
    certified: tuple[PostgresServer, Path], served: str, host: str, query: str, reason: str
) -> None:
    server, directory = certified
    server.present(directory / served)
    files = {name: directory / name for name in ("right", "other", "expired")}
    subscriber = PostgresSubscriber(server.url.replace("127.0.0.1", host) + f"?{query.format(**files)}")
    if not reason:
        subscriber.held()
        return
    with pytest.raises(SubscriberUnavailable, match=reason):
        subscriber.held()
