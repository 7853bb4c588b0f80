"""A lake that was restored from a backup, while the subscriber holds what the lost commits had delivered (A1)."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sda_platform import failpoints
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    SCREENED_FROM,
)
from sda_platform.delivery.checks import deliveries_balance, disagreements
from sda_platform.delivery.epochs import _open
from sda_platform.delivery.ledger import Delivered
from sda_platform.delivery.reconciliation import counts_of
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import AlertEntry, EntryStamp, Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.delivery.webhook_subscriber import WebhookSubscriber
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform_tests.support.delivery_rounds import deliver
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS
from sda_platform_tests.support.webhook_receiver import receiving

HOUR_NS = 3_600 * 10**9
CORRECTED, WITHDRAWN, LOST = (f"{n:x}" * 8 for n in range(10, 13))
Step = tuple[str, int, str, float]


class Died(Exception):
    """A delivery ended in the middle."""


def alerts(lake: Lake, *steps: Step, windows: tuple[Any, ...] = ()) -> None:
    """Commit ``(alert, sequence, op, collision probability)`` to the journal."""
    rows = [
        {
            "event_id": alert,
            "sequence": sequence,
            "op": op,
            "collision_probability": probability,
            "tca_time_ns": START_NS + HOUR_NS,
        }
        for alert, sequence, op, probability in steps
    ]
    commit(lake, CONJUNCTION_ALERTS, rows, windows=windows)


def differing(lake: Lake, subscriber: Subscriber) -> list[str]:
    """Alerts whose last content in the lake differs from that at the subscriber, or that only one of them has open.

    The reader's own reading of both, without marks, stamps and ledger.
    """
    last: dict[str, tuple[int, str, float]] = {}
    for row in lake.log(CONJUNCTION_ALERTS).rows().to_pylist():
        entry = (row["sequence"], row["op"], row["collision_probability"])
        last[row["event_id"]] = max(entry, last.get(row["event_id"], entry), key=lambda e: e[:2])
    ours = {alert: probability for alert, (_, op, probability) in last.items() if op == "insert"}
    held = {e.alert_id: json.loads(e.body)["collision_probability"] for e in subscriber.held() if e.op == "insert"}
    return sorted(alert for alert in {*ours, *held} if ours.get(alert) != held.get(alert))


@pytest.fixture(params=["sqlite", "webhook"])
def subscriber(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    store = SqliteSubscriber(tmp_path / "subscriber.sqlite")
    if request.param == "sqlite":
        yield store
        return
    with receiving(store) as receiver:
        yield WebhookSubscriber(receiver.url)


@pytest.fixture
def lake(tmp_path: Path, subscriber: Subscriber) -> Lake:
    """Restored to the state before its second commit of alerts; two of the lost commits had been delivered."""
    lake = lake_at(tmp_path / "lake")
    alerts(lake, (CORRECTED, 0, "insert", 1e-5), (WITHDRAWN, 0, "insert", 1e-5))
    deliver(lake, subscriber)
    shutil.copytree(tmp_path / "lake", tmp_path / "backup")
    alerts(lake, (CORRECTED, 0, "retract", 1e-5), (CORRECTED, 1, "insert", 1.34e-4), (LOST, 0, "insert", 8.4e-5))
    alerts(lake, (CORRECTED, 1, "retract", 1.34e-4), (CORRECTED, 2, "insert", 1.4e-4))
    deliver(lake, subscriber)
    shutil.rmtree(tmp_path / "lake")
    (tmp_path / "backup").rename(tmp_path / "lake")
    return lake_at(tmp_path / "lake")


def again(lake: Lake) -> None:
    """The restored lake decides anew, from another batch of observations: equal keys, other content."""
    alerts(lake, (CORRECTED, 0, "retract", 1e-5), (CORRECTED, 1, "insert", 1.47e-4), (WITHDRAWN, 0, "retract", 1e-5))


def test_no_alert_keeps_old_content_under_an_equal_key_A1(lake: Lake, subscriber: Subscriber) -> None:
    again(lake)
    assert deliver(lake, subscriber)["outcomes"] == {"applied": 4}, "a correction, and what is new; none is stale"
    assert differing(lake, subscriber) == [LOST]
    log = lake.log(ALERT_DELIVERIES)
    assert deliveries_balance(lake, log, log.commits()) == []
    assert {(e.alert_id, e.epoch) for e in subscriber.held()} == {(CORRECTED, 1), (WITHDRAWN, 1), (LOST, 0)}


def test_the_ledger_states_how_an_epoch_begins_goes_on_and_what_is_open_A1(lake: Lake, subscriber: Subscriber) -> None:
    before = subscriber.mark()
    again(lake)
    deliver(lake, subscriber)
    screened(lake, START_NS + 1)
    after = subscriber.mark()
    deliver(lake, subscriber)
    closed, went_on, began = (commit.manifest.counts for commit in lake.log(ALERT_DELIVERIES).commits()[:3])
    epoch = {"epoch": 1, "epoch_began_ns": START_NS}
    assert began == epoch | {"to_correct": 2, "inherited_open": 2} | counts_of(before)
    assert went_on == epoch | {"sent": 3, "refused": 0, "inherited_open": 1} | counts_of(after)
    assert closed == epoch | {"sent": 0, "refused": 0} | counts_of(subscriber.mark())

    rows = lake.log(ALERT_DELIVERIES).rows().to_pylist()
    assert {row["subscriber"] for row in rows} == {subscriber.name}
    assert Counter((row["alert_id"], row["epoch"], row["op"], row["cause"]) for row in rows) == {
        (CORRECTED, 0, "insert", "alert"): 1,
        (WITHDRAWN, 0, "insert", "alert"): 1,
        (CORRECTED, 0, "insert", "inherited"): 1,
        (LOST, 0, "insert", "inherited"): 1,
        (CORRECTED, 1, "insert", "correction"): 1,
        (CORRECTED, 1, "retract", "alert"): 1,
        (CORRECTED, 1, "insert", "alert"): 1,
        (WITHDRAWN, 1, "retract", "alert"): 1,
        (LOST, 1, "retract", "withdrawal"): 1,
    }
    batches = {(row["cause"], row["batch_id"].removeprefix(f"{subscriber.name}|").split("|")[0]) for row in rows}
    assert batches == {
        ("alert", "alerts 1"), ("alert", "alerts 2"), ("inherited", "inherited"),
        ("correction", "corrections of epoch 1"), ("withdrawal", "closed in epoch 1"),
    }  # fmt: skip


def test_the_difference_is_corrected_also_where_nothing_new_waits_A1(lake: Lake, subscriber: Subscriber) -> None:
    assert "ahead, unknown or different" in "; ".join(disagreements(lake, subscriber))
    assert deliver(lake, subscriber)["outcomes"] == {"applied": 1}
    assert differing(lake, subscriber) == [LOST]
    assert deliver(lake, subscriber)["outcomes"] == {}
    alerts(lake, (CORRECTED, 0, "retract", 1e-5), (CORRECTED, 1, "insert", 1.47e-4))
    assert deliver(lake, subscriber)["outcomes"] == {"applied": 2}
    assert differing(lake, subscriber) == [LOST]


@pytest.mark.parametrize(
    ("point", "visit"),
    [
        ("delivery.adopted", 1),
        ("delivery.planned", 1),
        ("delivery.group_answered", 1),
        ("delivery.group_answered", 2),
        ("delivery.answered", 1),
    ],
)
def test_the_first_delivery_of_an_epoch_may_end_anywhere_A1(
    lake: Lake, subscriber: Subscriber, point: str, visit: int
) -> None:
    again(lake)
    left = [visit]

    def strike(reached: str) -> None:
        left[0] -= reached == point
        if not left[0]:
            raise Died

    failpoints.watch(strike)
    try:
        with pytest.raises(Died):
            deliver(lake, subscriber)
    finally:
        failpoints.watch(None)
    deliver(lake, subscriber)
    assert differing(lake, subscriber) == [LOST]
    rows = lake.log(ALERT_DELIVERIES).rows(["outcome", "epoch"]).to_pylist()
    assert sorted(row["epoch"] for row in rows if row["outcome"] == "applied") == [0, 0, 1, 1, 1, 1]
    assert not [row for row in rows if row["outcome"] == "stale"]


def test_an_alert_that_only_the_lost_history_had_is_withdrawn_after_a_full_screening_A1(
    lake: Lake, subscriber: Subscriber
) -> None:
    deliver(lake, subscriber)
    screened(lake, START_NS - HOUR_NS)
    assert deliver(lake, subscriber)["outcomes"] == {}, "that screening was before the restore"
    screened(lake, START_NS + 1)
    assert deliver(lake, subscriber)["outcomes"] == {"applied": 1}
    assert differing(lake, subscriber) == []
    assert list(disagreements(lake, subscriber)) == []
    log = lake.log(ALERT_DELIVERIES)
    assert deliveries_balance(lake, log, log.commits()) == []


def test_an_alert_that_this_history_finds_again_is_not_withdrawn_A1(lake: Lake, subscriber: Subscriber) -> None:
    deliver(lake, subscriber)
    alerts(lake, (LOST, 0, "insert", 9e-5))
    assert deliver(lake, subscriber)["outcomes"] == {"applied": 1}
    screened(lake, START_NS + 1)
    assert deliver(lake, subscriber)["outcomes"] == {}
    assert (differing(lake, subscriber), list(disagreements(lake, subscriber))) == ([], [])


def test_a_second_restore_begins_a_third_history_A1(lake: Lake, subscriber: Subscriber, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "lake", tmp_path / "backup")
    again(lake)
    deliver(lake, subscriber)
    shutil.rmtree(tmp_path / "lake")
    (tmp_path / "backup").rename(tmp_path / "lake")
    restored = lake_at(tmp_path / "lake")
    alerts(restored, (CORRECTED, 0, "retract", 1e-5), (CORRECTED, 1, "insert", 3e-4))
    deliver(restored, subscriber)
    assert differing(restored, subscriber) == [LOST]
    assert {e.epoch for e in subscriber.held() if e.alert_id != LOST} == {2}


def test_a_stale_first_delivery_is_red_A1(lake: Lake, tmp_path: Path) -> None:
    """As when another platform delivers to the same subscriber between the comparison and the batch."""

    class Overtaken(SqliteSubscriber):
        def apply(self, batch_id: str, entries: Any) -> Any:
            super().apply("another", [AlertEntry(e.alert_id, 9, "retract", e.body, 9) for e in entries])
            return super().apply(batch_id, entries)

    other = lake_at(tmp_path / "other")
    alerts(other, (CORRECTED, 0, "insert", 1e-5))
    deliver(other, Overtaken(tmp_path / "other.sqlite"))
    log = other.log(ALERT_DELIVERIES)
    (problem,) = deliveries_balance(other, log, log.commits())
    assert problem.startswith(f"1 entries, such as {CORRECTED}, were stale at their first delivery")


def screened(lake: Lake, start_ns: int) -> None:
    """A full screening that began at ``start_ns`` and changed nothing went through to the alerts."""
    commit(lake, CONJUNCTION_CANDIDATES, watermarks={SCREENED_FROM: start_ns})
    commit(lake, CONJUNCTION_ASSESSMENTS, windows=lake.plan(CONJUNCTION_ASSESSMENTS).windows)
    alerts(lake, windows=lake.plan(CONJUNCTION_ALERTS).windows)
    assert _is_level(lake, CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS)


def _is_level(lake: Lake, table: Table, source: Table) -> bool:
    window = lake.plan(table).window(source)
    return window.after_sequence == window.upto_sequence


def test_only_inherited_alerts_that_hold_are_open() -> None:
    delivered = {
        f"{cause}-{op}": Delivered(EntryStamp(f"{cause}-{op}", 1, 0, op, ""), cause, 0)
        for cause in ("inherited", "alert", "correction", "withdrawal") for op in ("insert", "retract")
    }  # fmt: skip
    assert [each.stamp.alert_id for each in _open(delivered)] == ["inherited-insert"]
