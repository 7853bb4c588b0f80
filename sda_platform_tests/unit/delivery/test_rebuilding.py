"""A lake that was built anew, while the subscriber holds the alerts of the lost one: no event twice, and none lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sda_platform import failpoints
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.checks import deliveries_balance, disagreements
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.lake import Lake
from sda_platform_tests.support.delivery_rounds import deliver
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS

SECOND_NS = 10**9
SAME, OLD, NEW, GONE, FRESH = (f"{n:x}" * 8 for n in range(10, 15))
# Event: pair, TCA. OLD and NEW are one encounter, whose TCA crossed the border of a slot.
EVENTS = {
    SAME: (1, 2, START_NS + 60 * SECOND_NS),
    OLD: (3, 4, START_NS + 90 * SECOND_NS),
    NEW: (4, 3, START_NS + 95 * SECOND_NS),
    GONE: (5, 6, START_NS - 60 * SECOND_NS),
    FRESH: (3, 4, START_NS + 6_000 * SECOND_NS),
}
Step = tuple[str, int, str]


class Died(Exception):
    """A delivery ended in the middle."""


class Watched(SqliteSubscriber):
    """LinesOfSight at every state that it reaches."""

    def open_events(self) -> set[str]:
        return {held.alert_id for held in self.held() if held.op == "insert"}


def alerts(lake: Lake, *steps: Step) -> None:
    rows: list[dict[str, Any]] = []
    for event, sequence, op in steps:
        one, other, tca_ns = EVENTS[event]
        key = {"event_id": event, "sequence": sequence, "op": op}
        rows.append({**key, "norad_id_1": one, "norad_id_2": other, "tca_time_ns": tca_ns})
    commit(lake, CONJUNCTION_ALERTS, rows)


@pytest.fixture
def subscriber(tmp_path: Path) -> Watched:
    """It got the alerts of a lake that is lost."""
    lost, subscriber = lake_at(tmp_path / "lost"), Watched(tmp_path / "subscriber.sqlite")
    alerts(lost, (SAME, 0, "insert"), (OLD, 0, "insert"), (GONE, 0, "insert"))
    alerts(lost, (SAME, 0, "retract"), (SAME, 1, "insert"))
    deliver(lost, subscriber)
    return subscriber


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """The lake that was built anew; it has two commits of alerts."""
    lake = lake_at(tmp_path / "anew")
    alerts(lake, (SAME, 0, "insert"))
    alerts(lake, (NEW, 0, "insert"), (FRESH, 0, "insert"))
    return lake


def killed(lake: Lake, subscriber: Watched, point: str, visit: int) -> bool:
    """Whether a delivery reached the ``visit`` of ``point``, where it ended; two names of one encounter never hold."""
    left = [visit]

    def strike(reached: str) -> None:
        assert not {OLD, NEW} <= subscriber.open_events()
        if reached == point:
            left[0] -= 1
            if not left[0]:
                raise Died

    return ended(strike, lambda: deliver(lake, subscriber))


def ended(strike: Callable[[str], None], delivery: Callable[[], object]) -> bool:
    failpoints.watch(strike)
    try:
        delivery()
    except Died:
        return True
    finally:
        failpoints.watch(None)
    return False


POINTS = [
    ("nowhere", 1),
    ("delivery.adopted", 1),
    ("delivery.planned", 1),
    ("delivery.committed", 1),
    ("delivery.committed", 2),
    ("delivery.group_answered", 1),
    ("delivery.answered", 1),
]


@pytest.mark.parametrize(("point", "visit"), POINTS)
def test_no_event_is_open_twice_and_none_is_lost_wherever_the_first_delivery_ends__E14(
    lake: Lake, subscriber: Watched, point: str, visit: int
) -> None:
    before = len(subscriber.receipts())
    assert killed(lake, subscriber, point, visit) == (point != "nowhere")
    assert not killed(lake, subscriber, "nowhere", 1)
    assert subscriber.open_events() == {SAME, NEW, FRESH, GONE}, (
        "the old name was withdrawn, what is past was left alone"
    )
    received = [receipt[:4] for receipt in subscriber.receipts()[before:]]
    assert sorted(received) == [
        (SAME, 0, "insert", "applied"),
        (OLD, 0, "retract", "applied"),
        (NEW, 0, "insert", "applied"),
        (FRESH, 0, "insert", "applied"),
    ]
    assert {receipt[5] for receipt in subscriber.receipts()[before:]} == {1}
    columns = ["alert_id", "sequence", "op", "outcome"]
    ledger = [tuple(row.values()) for row in lake.log(ALERT_DELIVERIES).rows(columns).to_pylist()]
    assert sorted(row for row in ledger if row[3] != "inherited") == sorted(received)
    assert list(disagreements(lake, subscriber)) == []
    log = lake.log(ALERT_DELIVERIES)
    assert deliveries_balance(lake, log, log.commits()) == []


def test_what_follows_is_taken_and_costs_no_comparison__E14(lake: Lake, subscriber: Watched) -> None:
    deliver(lake, subscriber)
    alerts(lake, (SAME, 0, "retract"), (NEW, 0, "retract"), (NEW, 1, "insert"))
    facts = deliver(lake, subscriber)
    assert facts == {
        "subscriber": subscriber.name,
        "outcomes": {"applied": 3},
        "resent_lost_entries": 0,
        "refused_again": 0,
    }
    assert subscriber.open_events() == {NEW, FRESH, GONE}, "the new lake withdraws what the lost one had said"
    assert list(disagreements(lake, subscriber)) == []


def test_an_open_alert_that_the_new_lake_does_not_have_is_reported_and_left_alone__E14(
    lake: Lake, subscriber: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EVENTS, NEW, (7, 8, START_NS + 95 * SECOND_NS))
    other = lake_at(Path(lake.uri).parent / "other")
    alerts(other, (NEW, 0, "insert"))
    deliver(other, subscriber)
    assert OLD in subscriber.open_events()
    (problem,) = disagreements(other, subscriber)
    assert problem.startswith("2 open alerts of an earlier history are not known to this lake")


def test_an_own_delivery_that_was_killed_is_not_taken_for_an_earlier_lakes__E14(tmp_path: Path, lake: Lake) -> None:
    subscriber = Watched(tmp_path / "empty.sqlite")
    assert killed(lake, subscriber, "delivery.answered", 1)
    assert deliver(lake, subscriber)["outcomes"] == {"applied": 3}
    assert len(subscriber.receipts()) == 3
    assert lake.head(ALERT_DELIVERIES).sequence == 1
