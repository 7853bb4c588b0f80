"""The default subscriber, and the order of entries that all subscribers share."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import AlertEntry, Mark, SubscriberUnavailable, mark_of
from sda_platform_tests.subscriber_contract import SubscriberContract, entry, standing

entries = st.builds(
    AlertEntry, st.sampled_from("xy"), st.integers(0, 3), st.sampled_from(["insert", "retract"]), st.just("{}")
)
keys = st.tuples(st.uuids().map(str), st.integers(0, 9), st.sampled_from(["insert", "retract"]))


@pytest.fixture
def subscriber(tmp_path: Path) -> SqliteSubscriber:
    return SqliteSubscriber(tmp_path / "new" / "subscriber.sqlite")


class TestSqlite(SubscriberContract):
    """The contract, kept by SQLite."""


def test_reading_an_absent_file_does_not_make_it(subscriber: SqliteSubscriber) -> None:
    assert (subscriber.held(), subscriber.receipts(), subscriber.answer("b")) == ([], [], None)
    assert not subscriber.path.exists()


def test_a_repeated_batch_leaves_no_second_receipt(subscriber: SqliteSubscriber) -> None:
    subscriber.apply("b1", [entry(0)])
    before = subscriber.receipts()
    subscriber.apply("b1", [entry(0)])
    assert subscriber.receipts() == before


def test_a_known_batch_with_other_entries_is_refused(subscriber: SqliteSubscriber) -> None:
    subscriber.apply("b1", [entry(0)])
    with pytest.raises(ValueError, match="batch b1 was received without x 1 insert"):
        subscriber.apply("b1", [entry(1)])


def test_a_batch_that_fails_half_way_leaves_nothing(subscriber: SqliteSubscriber) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        subscriber.apply("b1", [entry(0), AlertEntry("y", 0, "insert", None)])  # type: ignore[arg-type]
    assert (subscriber.held(), subscriber.receipts()) == ([], [])
    assert subscriber.apply("b1", [entry(0)]) == ["applied"]


def test_a_file_that_cannot_be_written_is_a_subscriber_that_is_away(tmp_path: Path) -> None:
    directory = tmp_path / "subscriber.sqlite"
    directory.mkdir()
    with pytest.raises(SubscriberUnavailable, match=r"sqlite:subscriber\.sqlite: unable to open"):
        SqliteSubscriber(directory).apply("b1", [entry(0)])


@given(st.lists(keys, unique_by=lambda key: key[0]), st.randoms())
def test_a_mark_depends_on_no_order_and_adds_up(held: list[tuple[str, int, str]], random: st.DataObject) -> None:
    cut = len(held) // 2
    whole = mark_of(held)
    assert mark_of(held[:cut]) + mark_of(held[cut:]) == whole
    assert whole - mark_of(held[:cut]) == mark_of(held[cut:])
    assert mark_of(sorted(held)) == whole
    assert whole - whole == Mark()


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
