"""A subscriber that lost something, was restored or is ahead: the difference is sent, and nothing is rolled back."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import dagster as dg
import pytest

from sda_platform import failpoints
from sda_platform.delivery.checks import disagreements, subscriber_agrees
from sda_platform.delivery.configured import chosen_subscriber
from sda_platform.delivery.reconciliation import compare
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import AlertEntry, EntriesMark, Revision, Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.resources import LakeResource
from sda_platform.spark.session import SparkResource
from sda_platform_tests.support.delivery_rounds import deliver, report
from sda_platform_tests.support.delta_tables import lake_at

IDS = [str(UUID(int=n << 96)) for n in range(6)]


class Watched(SqliteSubscriber):
    """Counts what a reconciliation reads."""

    read = 0

    def held(self, prefix: str = "") -> list[AlertEntry]:
        found = super().held(prefix)
        self.read += len(found)
        return found


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three alerts were reported, one of them corrected, one withdrawn."""
    lake = lake_at(tmp_path / "lake")
    report(lake, *((alert, 0, "insert") for alert in IDS[:3]))
    report(lake, (IDS[0], 0, "retract"), (IDS[0], 1, "insert"), (IDS[1], 0, "retract"))
    return lake


@pytest.fixture
def subscriber(lake: Lake, tmp_path: Path) -> Watched:
    subscriber = Watched(tmp_path / "subscriber.sqlite")
    facts = deliver(lake, subscriber)
    assert facts["outcomes"] == {"applied": 6}
    return subscriber


class Died(Exception):
    """A delivery ended in the middle."""


def dies_at(where: str) -> Callable[[str], None]:
    def strike(point: str) -> None:
        if point == where:
            raise Died

    return strike


def lose(subscriber: SqliteSubscriber, statement: str) -> None:
    with sqlite3.connect(subscriber.path) as database:
        database.execute(statement)


def resent(lake: Lake, subscriber: SqliteSubscriber) -> object:
    """How many entries the next round sends again; afterwards all is well, and the ledger has no second row."""
    before = lake.log(ALERT_DELIVERIES).version()
    facts = deliver(lake, subscriber)
    assert list(disagreements(lake, subscriber)) == []
    assert lake.log(ALERT_DELIVERIES).version() == before
    return facts["resent_lost_entries"]


def test_where_nothing_was_lost_one_question_shows_it(lake: Lake, subscriber: Watched) -> None:
    assert resent(lake, subscriber) == 0
    subscriber.read = 0
    report(lake, (IDS[3], 0, "insert"))
    deliver(lake, subscriber)
    assert subscriber.read == 0


@pytest.mark.parametrize(
    "following",
    [
        [(IDS[3], 0, "insert")],
        [(IDS[2], 0, "retract")],
        [(IDS[1], 1, "insert")],  # it was withdrawn by an earlier commit
        [(IDS[0], 1, "retract"), (IDS[0], 2, "insert"), (IDS[3], 0, "insert")],
    ],
)
@pytest.mark.parametrize("step", ["delivery.group_answered", "delivery.answered"])
def test_an_attempt_that_ended_after_its_batch_is_no_loss(
    lake: Lake, subscriber: Watched, following: list[Revision], step: str
) -> None:
    report(lake, *following)
    failpoints.watch(dies_at(step))
    with pytest.raises(Died):
        deliver(lake, subscriber)
    failpoints.watch(None)
    subscriber.read = 0
    facts = deliver(lake, subscriber)
    assert (facts["resent_lost_entries"], subscriber.read) == (0, 0)
    assert list(disagreements(lake, subscriber)) == []


def test_a_subscriber_that_lost_everything_gets_the_last_entry_of_each_alert(lake: Lake, subscriber: Watched) -> None:
    held = subscriber.held()
    subscriber.path.unlink()
    assert resent(lake, subscriber) == 3
    assert subscriber.held() == held


def test_a_lost_row_is_sent_again_even_where_its_batch_is_known(lake: Lake, subscriber: Watched) -> None:
    lose(subscriber, f"DELETE FROM alerts WHERE alert_id = '{IDS[0]}'")
    problem = f"1 alerts missing or behind at the subscriber, such as {(IDS[0], 0, 1, 'insert')}"
    assert list(disagreements(lake, subscriber)) == [problem]
    assert resent(lake, subscriber) == 1


def test_a_lost_tombstone_is_sent_again__E21(lake: Lake, subscriber: Watched) -> None:
    lose(subscriber, "DELETE FROM alerts WHERE op = 'retract'")
    assert resent(lake, subscriber) == 1
    assert subscriber.apply("late", [AlertEntry(IDS[1], 0, "insert", "{}")]) == ["stale"]


def test_a_subscriber_restored_from_a_backup_gets_what_came_after_it(
    lake: Lake, subscriber: Watched, tmp_path: Path
) -> None:
    shutil.copy(subscriber.path, tmp_path / "backup")
    report(lake, (IDS[2], 0, "retract"), (IDS[2], 1, "insert"), (IDS[3], 0, "insert"))
    deliver(lake, subscriber)
    shutil.copy(tmp_path / "backup", subscriber.path)
    assert resent(lake, subscriber) == 2


def test_a_loss_and_new_alerts_are_distinguished(lake: Lake, subscriber: Watched) -> None:
    lose(subscriber, f"DELETE FROM alerts WHERE alert_id = '{IDS[2]}'")
    report(lake, (IDS[4], 0, "insert"))
    facts = deliver(lake, subscriber)
    assert (facts["resent_lost_entries"], facts["outcomes"]) == (1, {"applied": 1})
    assert list(disagreements(lake, subscriber)) == []


@pytest.mark.parametrize("unknown", [AlertEntry(IDS[5], 0, "insert", "{}"), AlertEntry(IDS[2], 7, "insert", "{}")])
def test_what_it_holds_beyond_the_journal_is_reported_and_begins_an_epoch__E14(
    lake: Lake, subscriber: Watched, unknown: AlertEntry
) -> None:
    subscriber.apply("an earlier history's", [unknown])
    problem = f"1 alerts ahead, unknown or different at the subscriber, such as {unknown.key}"
    assert list(disagreements(lake, subscriber)) == [problem]
    ours = unknown.alert_id in IDS[:3]
    assert deliver(lake, subscriber)["outcomes"] == ({"applied": 1} if ours else {})
    assert (unknown in subscriber.held()) == (not ours), "what this history has is corrected, the rest is left"
    assert list(disagreements(lake, subscriber)) == ([] if ours else [*_open_alerts(1)])
    assert deliver(lake, subscriber)["outcomes"] == {}


def _open_alerts(count: int) -> list[str]:
    known = f"{count} open alerts of an earlier history are not known to this lake"
    return [f"{known}; they are withdrawn after the next full screening unless it finds them"]


@pytest.mark.parametrize("alert", [IDS[0], IDS[2]])
def test_an_altered_text_is_reported_and_corrected_however_old_the_alert(
    lake: Lake, subscriber: Watched, alert: str
) -> None:
    held = {entry.alert_id: entry.body for entry in subscriber.held()}
    lose(subscriber, f"UPDATE alerts SET body = '{{}}' WHERE alert_id = '{alert}'")
    (problem,) = disagreements(lake, subscriber)
    assert f"different at the subscriber, such as ('{alert}', 0" in problem
    assert deliver(lake, subscriber)["outcomes"] == {"applied": 1}
    assert {entry.alert_id: entry.body for entry in subscriber.held()} == held
    assert list(disagreements(lake, subscriber)) == []


def test_an_altered_sequence_is_reported(lake: Lake, subscriber: Watched) -> None:
    lose(subscriber, f"UPDATE alerts SET sequence = 0 WHERE alert_id = '{IDS[0]}'")
    assert any("1 alerts missing or behind" in problem for problem in disagreements(lake, subscriber))


def outcome(resource: LakeResource, subscriber: Subscriber) -> dg.AssetCheckResult:
    found = subscriber_agrees(resource, subscriber)
    assert isinstance(found, dg.AssetCheckResult)
    return found


def test_the_check_is_red_with_the_reason_and_green_when_it_is_repaired(
    lake: Lake, subscriber: Watched, tmp_path: Path
) -> None:
    resource = LakeResource(uri=lake.uri, home=str(tmp_path), spark=SparkResource(remote="local"))
    assert outcome(resource, subscriber).passed
    lose(subscriber, "DELETE FROM alerts WHERE op = 'retract'")
    red = outcome(resource, subscriber)
    assert not red.passed
    assert str(red.description).startswith("1 alerts missing or behind at the subscriber")
    deliver(lake, subscriber)
    assert outcome(resource, subscriber).passed
    away = outcome(resource, chosen_subscriber("http://127.0.0.1:1/alerts", tmp_path))
    assert not away.passed
    assert str(away.description).startswith("the subscriber did not answer: http")


def test_a_new_subscriber_gets_what_stands_before_what_is_new(lake: Lake, subscriber: Watched, tmp_path: Path) -> None:
    report(lake, (IDS[3], 0, "insert"))
    other = SqliteSubscriber(tmp_path / "other.sqlite")
    facts = deliver(lake, other)
    assert (facts["resent_lost_entries"], facts["outcomes"]) == (3, {"applied": 1})
    assert [held.alert_id for held in other.held()] == IDS[:4]


def test_of_many_alerts_only_the_part_with_the_difference_is_read__83(tmp_path: Path) -> None:
    ids = [str(UUID(int=(n * 0x9E3779B97F4A7C15) % 2**64 << 64)) for n in range(20_000)]
    entries = [AlertEntry(alert, 0, "insert", "{}") for alert in ids]
    delivered = {entry.alert_id: entry.stamp for entry in entries}
    subscriber = Watched(tmp_path / "subscriber.sqlite")
    subscriber.apply("all", entries)
    assert compare(subscriber, delivered).missing == []
    assert subscriber.read == 0
    lose(subscriber, f"DELETE FROM alerts WHERE alert_id = '{ids[77]}'")
    found = compare(subscriber, delivered)
    assert (found.missing, found.foreign) == ([delivered[ids[77]]], [])
    assert subscriber.read < len(ids) * 0.02


def test_of_many_alerts_one_whose_id_is_no_uuid_is_found_too(tmp_path: Path) -> None:
    subscriber = SqliteSubscriber(tmp_path / "subscriber.sqlite")
    subscriber.apply("all", [AlertEntry(f"ghost {n}", 0, "insert", "{}") for n in range(1001)])
    assert len(compare(subscriber, {}).foreign) == 1001
    assert subscriber.mark() != EntriesMark()


def test_the_ledger_has_the_outcome_of_the_receipts_though_more_alerts_came_meanwhile__D17(tmp_path: Path) -> None:
    lake, subscriber = lake_at(tmp_path / "lake"), SqliteSubscriber(tmp_path / "subscriber.sqlite")
    report(lake, (IDS[0], 0, "insert"))
    failpoints.watch(dies_at("delivery.answered"))
    try:
        with pytest.raises(Died):
            deliver(lake, subscriber)
    finally:
        failpoints.watch(None)
    report(lake, (IDS[1], 0, "insert"), (IDS[0], 0, "retract"))
    deliver(lake, subscriber)
    columns = ["alert_id", "sequence", "op", "outcome"]
    recorded = [tuple(row.values()) for row in lake.log(ALERT_DELIVERIES).rows(columns).to_pylist()]
    receipts = [receipt[:4] for receipt in subscriber.receipts()]
    assert sorted(recorded) == sorted(receipts)
    assert {outcome for *_, outcome in recorded} == {"applied"}
    assert len(receipts) == 3
