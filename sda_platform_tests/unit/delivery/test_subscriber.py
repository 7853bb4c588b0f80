"""The default subscriber, and the order of entries that all subscribers share."""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.delivery import sql_subscriber
from sda_platform.delivery.configured import subscriber_of
from sda_platform.delivery.sql_subscriber import Transaction
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber, require_durable
from sda_platform.delivery.subscriber import AlertEntry, EntriesMark, EntryStamp, SubscriberUnavailable, mark_of
from sda_platform.lake.errors import Misconfigured
from sda_platform.lake.retention import Retention
from sda_platform.retention_settings import RetentionSettings
from sda_platform.settings import Settings
from sda_platform.units import DAY_NS
from sda_platform_tests.support.subscriber_contract import SubscriberContract, entry, standing

entries = st.builds(
    AlertEntry, st.sampled_from("xy"), st.integers(0, 3), st.sampled_from(["insert", "retract"]), st.just("{}")
)
alert_ids = st.sampled_from(["aaa1", "aaa2", "b"])
by_hand = st.sampled_from(["DELETE FROM alerts WHERE alert_id = 'aaa1'", "DELETE FROM alerts WHERE op = 'retract'"])
stamps = st.builds(
    EntryStamp,
    st.uuids().map(str),
    st.integers(0, 3),
    st.integers(0, 9),
    st.sampled_from(["insert", "retract"]),
    st.text(),
)


@pytest.fixture
def subscriber(tmp_path: Path) -> SqliteSubscriber:
    return SqliteSubscriber(tmp_path / "new" / "subscriber.sqlite")


class TestSqlite(SubscriberContract):
    """The contract, kept by SQLite."""


def test_reading_an_absent_file_does_not_make_it(subscriber: SqliteSubscriber) -> None:
    assert (subscriber.held(), subscriber.receipts(), subscriber.answer("b")) == ([], [], None)
    assert not subscriber.path.exists()


def test_the_default_subscriber_keeps_what_it_answered_over_a_power_loss_hole_40(subscriber: SqliteSubscriber) -> None:
    with closing(subscriber._connect()) as database:
        found = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert found == ["wal", 2]
    with closing(sqlite3.connect(":memory:")) as database, pytest.raises(Misconfigured, match="journal_mode memory"):
        require_durable(database, "sqlite:memory")


def test_a_repeated_batch_leaves_no_second_receipt(subscriber: SqliteSubscriber) -> None:
    subscriber.apply("b1", [entry(0)])
    before = subscriber.receipts()
    subscriber.apply("b1", [entry(0)])
    assert subscriber.receipts() == before


def test_a_known_batch_with_other_entries_is_refused(subscriber: SqliteSubscriber) -> None:
    subscriber.apply("b1", [entry(0)])
    with pytest.raises(ValueError, match="batch b1 was received without x 0 1 insert"):
        subscriber.apply("b1", [entry(1)])


def test_a_batch_that_fails_half_way_leaves_nothing(subscriber: SqliteSubscriber) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        subscriber.apply("b1", [entry(0), AlertEntry("y", 0, None, "{}")])  # type: ignore[arg-type]
    assert (subscriber.held(), subscriber.receipts()) == ([], [])
    assert subscriber.apply("b1", [entry(0)]) == ["applied"]


def test_a_file_that_cannot_be_written_is_a_subscriber_that_is_away(tmp_path: Path) -> None:
    directory = tmp_path / "subscriber.sqlite"
    directory.mkdir()
    with pytest.raises(SubscriberUnavailable, match=r"sqlite:subscriber\.sqlite: unable to open"):
        SqliteSubscriber(directory).apply("b1", [entry(0)])


@given(st.lists(stamps, unique_by=lambda stamp: stamp.alert_id), st.randoms())
def test_a_mark_depends_on_no_order_and_adds_up(held: list[EntryStamp], random: st.DataObject) -> None:
    cut = len(held) // 2
    whole = mark_of(held)
    assert mark_of(held[:cut]) + mark_of(held[cut:]) == whole
    assert whole - mark_of(held[:cut]) == mark_of(held[cut:])
    assert mark_of(sorted(held)) == whole
    assert whole - whole == EntriesMark()


@settings(max_examples=25)  # each writes and syncs a dozen files
@given(st.lists(st.lists(entries, max_size=4, unique=True), max_size=4), st.data())
def test_any_repetition_of_batches_ends_where_one_delivery_does(
    tmp_path_factory: pytest.TempPathFactory, batches: Sequence[list[AlertEntry]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("subscribers")
    once, often = SqliteSubscriber(folder / "once.sqlite"), SqliteSubscriber(folder / "often.sqlite")
    answers = [once.apply(f"b{n}", batch) for n, batch in enumerate(batches)]
    for n in range(len(batches)):
        for again in [n, *data.draw(st.lists(st.integers(0, n), max_size=2))]:
            assert often.apply(f"b{again}", batches[again]) == answers[again]
    assert standing(often) == standing(once)
    assert often.mark() == once.mark()


class Counted(SqliteSubscriber):
    """Counts the rows that its statements return, and keeps how SQLite finds them."""

    rows = 0
    plans: list[str]

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[Transaction]:
        with super()._transaction(writes=writes) as inner:
            self.plans = []

            yield Counting(self, inner)


@dataclass
class Counting:
    """The transaction of `Counted`."""

    counted: Counted
    inner: Transaction

    def run(self, statement: str, **values: Any) -> Sequence[Sequence[Any]]:
        """The rows, counted."""
        self.counted.plans += [row[-1] for row in self.inner.run(f"EXPLAIN QUERY PLAN {statement}", **values)]
        found = self.inner.run(statement, **values)
        self.counted.rows += len(found)
        return found


def test_a_mark_reads_a_row_a_leaf_however_many_alerts_are_held__83(tmp_path: Path) -> None:
    subscriber = Counted(tmp_path / "subscriber.sqlite")
    held = [AlertEntry(f"{n % 16:x}00{n:05}", 0, "insert", "{}") for n in range(8_000)]
    subscriber.apply("all", held)
    for prefix, most_rows in (("", 16), ("3", 1), ("300", 1), ("30000", 500)):
        subscriber.rows = 0
        assert subscriber.mark(prefix) == mark_of(e.stamp for e in held if e.alert_id.startswith(prefix))
        assert subscriber.rows <= most_rows
    assert subscriber.plans == ["SEARCH alerts USING INDEX alerts_by_leaf (<expr>=?)"], "not a scan of all alerts"


@settings(max_examples=25)
@given(st.lists(st.tuples(alert_ids, st.integers(0, 4), st.sampled_from(["insert", "retract"]))), st.lists(by_hand))
def test_the_mark_is_that_of_what_is_held_whoever_wrote_it__83(
    tmp_path_factory: pytest.TempPathFactory, sent: list[tuple[str, int, str]], statements: list[str]
) -> None:
    subscriber = SqliteSubscriber(tmp_path_factory.mktemp("s") / "subscriber.sqlite")
    for number, (alert_id, sequence, op) in enumerate(sent):
        subscriber.apply(str(number), [AlertEntry(alert_id, sequence, op, "{}")])
        with sqlite3.connect(subscriber.path) as database:
            for statement in statements[number : number + 1]:
                database.execute(statement)
        for prefix in ("", "a", "aaa", "aaa1"):
            assert subscriber.mark(prefix) == mark_of(held.stamp for held in subscriber.held(prefix))


@pytest.mark.parametrize("change", ["sequence = 4", "op = 'retract'", "epoch = 1", """body = '{"said":6}'"""])
def test_an_alert_that_was_altered_by_hand_changes_the_mark(subscriber: SqliteSubscriber, change: str) -> None:
    subscriber.apply("b1", [entry(5)])
    before = subscriber.mark()
    with sqlite3.connect(subscriber.path) as database:
        database.execute(f"UPDATE alerts SET {change}")
    assert subscriber.mark() != before


WITHOUT_MARKS = """CREATE TABLE alerts (alert_id TEXT PRIMARY KEY, sequence BIGINT NOT NULL, op TEXT NOT NULL,
        body TEXT NOT NULL, batch_id TEXT NOT NULL, received_time_ns BIGINT NOT NULL);"""
WITH_MARKS = """CREATE TABLE alerts (alert_id TEXT PRIMARY KEY, sequence BIGINT NOT NULL, op TEXT NOT NULL,
        body TEXT NOT NULL, batch_id TEXT NOT NULL, received_time_ns BIGINT NOT NULL, digest BIGINT NOT NULL DEFAULT 3);
    CREATE INDEX alerts_by_leaf ON alerts ((substr(alert_id, 1, 3)));
    CREATE TABLE marks (leaf TEXT PRIMARY KEY, count BIGINT NOT NULL, digest BIGINT NOT NULL);
    CREATE TRIGGER alert_inserted AFTER INSERT ON alerts BEGIN INSERT INTO marks VALUES (NEW.alert_id, 1, 3); END;"""


@pytest.mark.parametrize("earlier", [WITHOUT_MARKS, WITH_MARKS])
def test_alerts_of_an_earlier_version_are_taken_over_with_their_receipts__83(tmp_path: Path, earlier: str) -> None:
    path = tmp_path / "subscriber.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(
            f"""{earlier}
               CREATE TABLE receipts (batch_id TEXT NOT NULL, alert_id TEXT NOT NULL, sequence BIGINT NOT NULL,
                   op TEXT NOT NULL, outcome TEXT NOT NULL, received_time_ns BIGINT NOT NULL,
                   PRIMARY KEY (batch_id, alert_id, sequence, op));
               CREATE TABLE batches (batch_id TEXT PRIMARY KEY, received_time_ns BIGINT NOT NULL);
               INSERT INTO alerts (alert_id, sequence, op, body, batch_id, received_time_ns)
                   VALUES ('x', 1, 'insert', '{{"said":1}}', 'b1', 7);
               INSERT INTO receipts VALUES ('b1', 'x', 1, 'insert', 'applied', 7);
               INSERT INTO batches VALUES ('b1', 7);"""
        )
    subscriber = SqliteSubscriber(path)
    assert subscriber.apply("b1", [entry(1)]) == ["applied"]
    assert subscriber.held() == [entry(1)]
    assert subscriber.mark() == mark_of([entry(1).stamp])
    assert subscriber.apply("b2", [entry(2)]) == ["applied"]
    assert subscriber.mark("x") == mark_of([entry(2).stamp])


@pytest.fixture
def few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_subscriber, "RETENTION", Retention(receipt_batches=3))


def received_long_ago(subscriber: SqliteSubscriber, batch_id: str, time_ns: int = 1) -> None:
    with sqlite3.connect(subscriber.path) as database:
        for table in ("batches", "receipts"):
            database.execute(f"UPDATE {table} SET received_time_ns = ? WHERE batch_id = ?", (time_ns, batch_id))


@pytest.mark.usefixtures("few_are_kept")
def test_receipts_are_kept_for_their_time_and_the_newest_batches_for_ever__83(subscriber: SqliteSubscriber) -> None:
    for number in range(3):
        subscriber.apply(f"b{number}", [entry(number)])
    received_long_ago(subscriber, "b0")
    received_long_ago(subscriber, "b1", time_ns=2)
    subscriber.apply("b2", [entry(2)])
    assert subscriber.answer("b0") == {("x", 0, 0, "insert"): "applied"}, "a batch that is repeated makes nobody forget"
    subscriber.apply("b3", [entry(3)])
    assert subscriber.answer("b0") is None
    assert subscriber.answer("b1") is not None, "it is old, and one of the newest three"
    assert len(subscriber.receipts()) == 3


@pytest.mark.usefixtures("few_are_kept")
def test_receipts_are_kept_for_as_many_days_as_a_setting_states__48_6(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, retention=RetentionSettings(operations_days=2))
    subscriber = cast(SqliteSubscriber, subscriber_of(settings))
    now_ns = time.time_ns()
    for number in range(5):
        subscriber.apply(f"b{number}", [entry(number)])
    received_long_ago(subscriber, "b0", now_ns - 3 * DAY_NS)
    received_long_ago(subscriber, "b1", now_ns - 1 * DAY_NS)
    subscriber.apply("b5", [entry(5)])
    assert [subscriber.answer(each) is None for each in ("b0", "b1")] == [True, False]


@pytest.mark.usefixtures("few_are_kept")
def test_a_batch_that_was_forgotten_changes_nothing_when_it_comes_again__83(subscriber: SqliteSubscriber) -> None:
    subscriber.apply("b0", [entry(0), entry(0, alert_id="y")])
    received_long_ago(subscriber, "b0")
    for number in range(1, 4):
        subscriber.apply(f"b{number}", [entry(number)])
    before = subscriber.held()
    assert subscriber.answer("b0") is None
    assert subscriber.apply("b0", [entry(0), entry(0, alert_id="y")]) == ["stale", "stale"]
    assert subscriber.held() == before
