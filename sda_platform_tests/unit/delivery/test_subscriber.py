"""The default subscriber: newer entries win, withdrawn alerts stay withdrawn, a repeated batch changes nothing."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.delivery.subscriber import AlertEntry, SqliteSubscriber

entries = st.builds(
    AlertEntry, st.sampled_from("xy"), st.integers(0, 3), st.sampled_from(["insert", "retract"]), st.just("{}")
)


@pytest.fixture
def subscriber(tmp_path: Path) -> SqliteSubscriber:
    return SqliteSubscriber(tmp_path / "new" / "subscriber.sqlite")


def entry(sequence: int, op: str = "insert", alert_id: str = "x") -> AlertEntry:
    return AlertEntry(alert_id, sequence, op, f'{{"said":{sequence}}}')


def standing(subscriber: SqliteSubscriber) -> list[tuple[str, int]]:
    return [(alert_id, sequence) for alert_id, sequence, _ in subscriber.standing()]


def test_nothing_was_received_yet(subscriber: SqliteSubscriber) -> None:
    assert (subscriber.standing(), subscriber.receipts()) == ([], [])
    assert not subscriber.path.exists()


def test_a_correction_replaces_what_it_corrects__DP3_F8(subscriber: SqliteSubscriber) -> None:
    batch = [entry(0), entry(0, "retract"), entry(1)]
    assert subscriber.apply("b1", batch) == ["applied"] * 3
    assert subscriber.standing() == [("x", 1, '{"said":1}')]


@pytest.mark.parametrize("stale", [entry(0), entry(0, "retract"), entry(1)])
def test_only_a_strictly_greater_sequence_changes_anything__DP3_F8(
    subscriber: SqliteSubscriber, stale: AlertEntry
) -> None:
    subscriber.apply("b1", [entry(1)])
    assert subscriber.apply("b2", [stale]) == ["stale"]
    assert standing(subscriber) == [("x", 1)]


def test_a_redelivered_insert_does_not_resurrect_a_withdrawn_alert__E21(subscriber: SqliteSubscriber) -> None:
    subscriber.apply("b1", [entry(0), entry(0, "retract")])
    assert subscriber.apply("b2", [entry(0)]) == ["stale"]
    assert standing(subscriber) == []
    assert subscriber.apply("b3", [entry(1)]) == ["applied"], "but it may return with the next sequence"
    assert standing(subscriber) == [("x", 1)]


def test_the_same_batch_again_gets_its_first_answer_and_changes_nothing(subscriber: SqliteSubscriber) -> None:
    batch = [entry(0), entry(0), entry(0, alert_id="y")]
    subscriber.apply("b0", [entry(5, alert_id="y")])
    unique = [batch[0], batch[2]]
    first = subscriber.apply("b1", unique)
    assert first == ["applied", "stale"]
    subscriber.apply("b2", [entry(1)])
    before = subscriber.receipts()
    assert subscriber.apply("b1", unique) == first
    assert subscriber.receipts() == before
    assert standing(subscriber) == [("x", 1), ("y", 5)]


def test_a_known_batch_with_other_entries_is_refused(subscriber: SqliteSubscriber) -> None:
    subscriber.apply("b1", [entry(0)])
    with pytest.raises(ValueError, match="batch b1 was received without x 1 insert"):
        subscriber.apply("b1", [entry(1)])


def test_an_empty_batch_is_known_too(subscriber: SqliteSubscriber) -> None:
    assert subscriber.apply("b1", []) == []
    assert subscriber.apply("b1", []) == []


def test_a_batch_that_fails_half_way_leaves_nothing(subscriber: SqliteSubscriber) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        subscriber.apply("b1", [entry(0), AlertEntry("y", 0, "insert", None)])  # type: ignore[arg-type]
    assert (subscriber.standing(), subscriber.receipts()) == ([], [])
    assert subscriber.apply("b1", [entry(0)]) == ["applied"]


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
