"""An alert that the subscriber refuses for its content rings until it is taken, and counts as not delivered."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.delivery.webhook_subscriber import WebhookSubscriber
from sda_platform.lake.lake import Lake
from sda_platform.observability.objectives import commit_events
from sda_platform.observability.vitals.delivery_facts import delivery_facts
from sda_platform.observability.vitals.evaluation import evaluate
from sda_platform.observability.vitals.facts import Facts
from sda_platform.setting_sections import VitalsSettings
from sda_platform.units import SECOND_NS
from sda_platform_tests.support.delivery_rounds import deliver
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.webhook_receiver import Receiver

DAY_NS = 86_400 * SECOND_NS


@contextmanager
def serving(receiver: Receiver) -> Iterator[Receiver]:
    Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield receiver
    finally:
        receiver.shutdown()
        receiver.server_close()


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with serving(Receiver(SqliteSubscriber(tmp_path / "s.sqlite"))) as made:
        yield made


def alert(lake: Lake, event_id: str, sequence: int = 0, op: str = "insert", risk: str = "red") -> None:
    facts = {"event_id": event_id, "sequence": sequence, "op": op, "risk": risk, "norad_id_1": 25544}
    tca_ns = lake.clock.now_ns() + DAY_NS
    commit(lake, CONJUNCTION_ALERTS, [{**facts, "norad_id_2": 43477, "tca_time_ns": tca_ns}])


def faults(lake: Lake, subscriber: Subscriber, later_ns: int = 0) -> list[str]:
    now_ns = lake.clock.now_ns() + later_ns
    found = delivery_facts(lake, None, now_ns, lambda: subscriber)
    readings = evaluate(Facts(now_ns, delivery=found), VitalsSettings())
    return [f"{each.subject} ({each.side}): {each.text}" for reading in readings for each in reading.faults]


def test_a_refused_red_alert_rings_until_the_subscriber_takes_it(tmp_path: Path, receiver: Receiver) -> None:
    lake, subscriber = lake_at(tmp_path / "lake"), WebhookSubscriber(receiver.url)
    receiver.refused.add("one")
    alert(lake, "one")
    alert(lake, "other", risk="yellow")
    deliver(lake, subscriber)
    (found,) = faults(lake, subscriber)
    assert found.startswith(
        "alert one (subscriber): the subscriber refuses a red alert of 25544 and 43477, TCA 2024-11-02"
    )
    receiver.refused.clear()
    deliver(lake, subscriber)
    assert faults(lake, subscriber) == [], "it was offered again, and taken"


def test_a_refused_alert_is_no_fault_once_it_is_past(tmp_path: Path, receiver: Receiver) -> None:
    lake, subscriber = lake_at(tmp_path / "lake"), WebhookSubscriber(receiver.url)
    receiver.refused.add("one")
    alert(lake, "one")
    deliver(lake, subscriber)
    assert faults(lake, subscriber, later_ns=DAY_NS) == []


def test_a_refused_withdrawal_is_named_as_one_and_a_later_entry_ends_the_fault(
    tmp_path: Path, receiver: Receiver
) -> None:
    lake, subscriber = lake_at(tmp_path / "lake"), WebhookSubscriber(receiver.url)
    alert(lake, "one")
    deliver(lake, subscriber)
    receiver.refused.add("one")
    alert(lake, "one", op="retract")
    deliver(lake, subscriber)
    assert "refuses the withdrawal of a red alert" in faults(lake, subscriber)[0]
    receiver.refused.clear()
    alert(lake, "one", 1)
    deliver(lake, subscriber)
    assert faults(lake, subscriber) == []


def test_a_subscriber_that_cannot_be_asked_is_taken_to_lack_it(tmp_path: Path, receiver: Receiver) -> None:
    lake, subscriber = lake_at(tmp_path / "lake"), WebhookSubscriber(receiver.url)
    receiver.refused.add("one")
    alert(lake, "one")
    deliver(lake, subscriber)
    away = WebhookSubscriber("http://127.0.0.1:1/alerts", sleep=lambda _s: None)
    assert len(faults(lake, away)) == 1


def test_a_refused_alert_spends_the_error_budget_of_the_latency(tmp_path: Path, receiver: Receiver) -> None:
    lake, subscriber = lake_at(tmp_path / "lake"), WebhookSubscriber(receiver.url)
    receiver.refused.add("one")
    alert(lake, "one")
    alert(lake, "other")
    deliver(lake, subscriber)
    newest = lake.log(ALERT_DELIVERIES).head().commit
    assert newest is not None
    (latency,) = [each for each in commit_events(newest, {}, 5.0) if each.objective == "alert_latency"]
    assert (latency.good, latency.total) == (1.0, 2.0)
