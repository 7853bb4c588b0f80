"""A webhook subscriber against a real HTTP server: every class of answer, every place where a connection can break."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import SubscriberAway, SubscriberUnavailable
from sda_platform.delivery.webhook_subscriber import DeliveryRetries, WebhookSubscriber
from sda_platform.orchestration.dispositions import Disposition, disposition_of
from sda_platform_tests.support.delivery_rounds import deliver, report
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.subscriber_contract import SubscriberContract, entry, standing
from sda_platform_tests.support.webhook_receiver import Fault, Receiver, receiving

RETRIES = DeliveryRetries(attempts=3, first_pause_s=0.001, longest_pause_s=0.002, answer_within_s=30.0)


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with receiving(SqliteSubscriber(tmp_path / "received.sqlite")) as running:
        yield running


@pytest.fixture
def subscriber(receiver: Receiver, request: pytest.FixtureRequest) -> WebhookSubscriber:
    """It waits briefly only for a receiver that is to hang: a busy machine answers late."""
    url = receiver.url.replace("//", "//user:secret@") + "?token=secret"
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    hangs = parameters.get("fault") == "apply and hang"
    return WebhookSubscriber(url, retries=replace(RETRIES, answer_within_s=0.5) if hangs else RETRIES)


def posts(receiver: Receiver) -> int:
    return sum(method == "POST" for method, _, _ in receiver.requests)


class TestWebhook(SubscriberContract):
    """The contract, kept by an HTTP service."""


def test_credentials_are_sent_and_never_shown(subscriber: WebhookSubscriber, receiver: Receiver) -> None:
    subscriber.apply("b1", [entry(0)])
    _, path, headers = receiver.requests[-1]
    assert headers["Authorization"].startswith("Basic ")
    assert "token=secret" in path
    assert headers["Idempotency-Key"] == "b1"
    receiver.faults.append(403)
    with pytest.raises(SubscriberUnavailable, match="answered 403") as refused:
        subscriber.apply("b2", [entry(1)])
    assert "secret" not in str(refused.value) + subscriber.name


@pytest.mark.parametrize("fault", [*get_args(Fault), 408, 425, 429, 500, 503, 599])
def test_whatever_breaks_once_each_alert_arrives_once__F_sink(
    subscriber: WebhookSubscriber, receiver: Receiver, fault: Fault | int
) -> None:
    receiver.faults.append(fault)
    assert subscriber.apply("b1", [entry(0), entry(0, "retract")]) == ["applied", "applied"]
    assert [receipt[:3] for receipt in receiver.store.receipts()] == [("x", 0, "insert"), ("x", 0, "retract")]


@pytest.mark.parametrize("fault", ["apply and hang up", "apply and hang", "apply and say conflict"])
def test_an_answer_that_was_lost_is_asked_for_and_nothing_is_sent_again__CP35(
    subscriber: WebhookSubscriber, receiver: Receiver, fault: Fault
) -> None:
    receiver.faults.append(fault)
    subscriber.apply("b1", [entry(0)])
    assert posts(receiver) == 1


def test_another_process_that_does_not_know_asks_first_as_well__CP35(
    subscriber: WebhookSubscriber, receiver: Receiver
) -> None:
    subscriber.apply("b1", [entry(0)])
    again = WebhookSubscriber(receiver.url, retries=RETRIES)
    assert again.apply("b1", [entry(0)]) == ["applied"]
    assert posts(receiver) == 1


def test_a_refused_entry_is_reported_and_holds_no_other_back(subscriber: WebhookSubscriber, receiver: Receiver) -> None:
    receiver.refused.add("y")
    batch = [entry(0), entry(0, alert_id="y"), entry(0, alert_id="z")]
    assert subscriber.apply("b1", batch) == ["applied", "refused", "applied"]
    assert subscriber.apply("b1", batch) == ["applied", "refused", "applied"], "and again so, after a crash"
    assert standing(subscriber) == [("x", 0), ("z", 0)]
    receiver.refused.clear()
    assert subscriber.apply("b2", [batch[1]]) == ["applied"]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refusal_of_the_content_is_an_answer(subscriber: WebhookSubscriber, receiver: Receiver, status: int) -> None:
    receiver.faults.append(status)
    assert subscriber.apply("b1", [entry(0)]) == ["refused"]
    assert (posts(receiver), receiver.store.receipts()) == (1, [])


@pytest.mark.parametrize("status", [301, 401, 403, 404, 405, 410])
def test_what_a_proxy_answers_is_left_to_a_later_run_and_ends_no_delivery__S9(
    subscriber: WebhookSubscriber, receiver: Receiver, status: int
) -> None:
    receiver.faults.append(status)
    with pytest.raises(SubscriberUnavailable, match=f"POST /alerts/batches answered {status}") as refused:
        subscriber.apply("b1", [entry(0)])
    assert posts(receiver) == 1
    assert not isinstance(refused.value, SubscriberAway)
    assert disposition_of(refused.value) is Disposition.TRANSIENT, "so a sensor starts another run"
    assert subscriber.apply("b1", [entry(0)]) == ["applied"]


def test_an_answer_outside_the_contract_is_not_taken_for_a_delivery(
    subscriber: WebhookSubscriber, receiver: Receiver
) -> None:
    receiver.faults.append(200)  # accepted, according to its status, without an answer
    with pytest.raises(SubscriberUnavailable, match="answered outside the contract"):
        subscriber.apply("b1", [entry(0)])


@pytest.mark.parametrize("ask", ["mark", "held"])
def test_a_question_is_asked_once_so_that_a_receiver_that_is_away_costs_a_run_one_request(
    subscriber: WebhookSubscriber, receiver: Receiver, ask: str
) -> None:
    receiver.is_away = True
    with pytest.raises(SubscriberUnavailable):
        getattr(subscriber, ask)()
    assert len(receiver.requests) == 1


def test_a_run_asks_before_it_sends_and_a_receiver_that_is_away_gets_no_delivery(
    subscriber: WebhookSubscriber, receiver: Receiver, tmp_path: Path
) -> None:
    lake = lake_at(tmp_path / "lake")
    report(lake, ("a", 0, "insert"))
    receiver.is_away = True
    with pytest.raises(SubscriberUnavailable, match="GET mark answered 503"):
        deliver(lake, subscriber)
    assert len(receiver.requests) == 1
    receiver.is_away = False
    assert deliver(lake, subscriber)["outcomes"] == {"applied": 1}


def test_a_delivery_is_tried_a_few_times_and_then_left_to_a_later_run(tmp_path: Path) -> None:
    with receiving(SqliteSubscriber(tmp_path / "received.sqlite")) as gone:
        url = gone.url
    with pytest.raises(SubscriberUnavailable, match="ConnectError"):
        WebhookSubscriber(url, retries=RETRIES).apply("b1", [entry(0)])


def test_pauses_are_jittered_bounded_and_no_shorter_than_asked(receiver: Receiver) -> None:
    pauses: list[float] = []
    retries = DeliveryRetries(attempts=4, first_pause_s=0.2, longest_pause_s=3.0)
    subscriber = WebhookSubscriber(receiver.url, retries=retries, sleep=pauses.append)
    receiver.faults.extend([503, 503, 429])
    subscriber.apply("b1", [entry(0)])
    assert len(pauses) == 3
    assert all(0.2 <= pause <= 3.0 for pause in pauses)
