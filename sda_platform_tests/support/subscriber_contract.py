"""What every subscriber promises, whatever it is: newer entries win, withdrawn alerts stay withdrawn, a repeated batch
changes nothing. A test module makes it run by a subclass of `SubscriberContract` and a fixture ``subscriber``."""

import pytest

from sda_platform.delivery.subscriber import AlertEntry, EntriesMark, Subscriber, mark_of


def entry(sequence: int, op: str = "insert", alert_id: str = "x", *, epoch: int = 0) -> AlertEntry:
    """An entry whose body states its sequence, and its epoch if that is not the first."""
    said = f'{{"said":{sequence}}}' if not epoch else f'{{"epoch":{epoch},"said":{sequence}}}'
    return AlertEntry(alert_id, sequence, op, said, epoch)


def standing(subscriber: Subscriber) -> list[tuple[str, int]]:
    """Alert and sequence of what holds."""
    return [(held.alert_id, held.sequence) for held in subscriber.held() if held.op == "insert"]


class SubscriberContract:
    """The rules; each test gets an empty subscriber."""

    def test_nothing_was_received_yet(self, subscriber: Subscriber) -> None:
        assert (subscriber.held(), subscriber.mark()) == ([], EntriesMark())

    def test_its_name_holds_no_secret(self, subscriber: Subscriber) -> None:
        assert "secret" not in subscriber.name

    def test_a_correction_replaces_what_it_corrects__DP3_F8_E14(self, subscriber: Subscriber) -> None:
        batch = [entry(0), entry(0, "retract"), entry(1)]
        assert subscriber.apply("b1", batch) == ["applied"] * 3
        assert subscriber.held() == [entry(1)]

    @pytest.mark.parametrize("stale", [entry(0), entry(0, "retract"), entry(1)])
    def test_only_a_strictly_greater_sequence_changes_anything__DP3_F8(
        self, subscriber: Subscriber, stale: AlertEntry
    ) -> None:
        subscriber.apply("b1", [entry(1)])
        assert subscriber.apply("b2", [stale]) == ["stale"]
        assert standing(subscriber) == [("x", 1)]

    def test_a_redelivered_insert_does_not_resurrect_a_withdrawn_alert__E21(self, subscriber: Subscriber) -> None:
        subscriber.apply("b1", [entry(0), entry(0, "retract")])
        assert subscriber.apply("b2", [entry(0)]) == ["stale"]
        assert standing(subscriber) == []
        assert subscriber.held() == [entry(0, "retract")], "the tombstone keeps the sequence"
        assert subscriber.apply("b3", [entry(1)]) == ["applied"], "but it may return with the next sequence"
        assert standing(subscriber) == [("x", 1)]

    def test_the_same_batch_again_gets_its_first_answer_and_changes_nothing__CP35(self, subscriber: Subscriber) -> None:
        subscriber.apply("b0", [entry(5, alert_id="y")])
        batch = [entry(0), entry(0, alert_id="y")]
        first = subscriber.apply("b1", batch)
        assert first == ["applied", "stale"]
        subscriber.apply("b2", [entry(1)])
        assert subscriber.apply("b1", batch) == first
        assert standing(subscriber) == [("x", 1), ("y", 5)]

    def test_the_same_alert_in_two_batches_is_one_alert__DP5_Q6(self, subscriber: Subscriber) -> None:
        assert subscriber.apply("b1", [entry(0)]) == ["applied"]
        assert subscriber.apply("b2", [entry(0)]) == ["stale"]
        assert subscriber.held() == [entry(0)]

    def test_its_mark_is_that_of_what_it_holds_tombstones_included(self, subscriber: Subscriber) -> None:
        subscriber.apply("b1", [entry(0, alert_id="ab"), entry(0, alert_id="ac"), entry(0, alert_id="d")])
        subscriber.apply("b2", [entry(0, "retract", alert_id="ac")])
        expected = [entry(0, alert_id="ab"), entry(0, "retract", alert_id="ac"), entry(0, alert_id="d")]
        assert subscriber.mark() == mark_of(each.stamp for each in expected)
        assert subscriber.mark("a") == mark_of(held.stamp for held in subscriber.held("a"))
        assert [held.alert_id for held in subscriber.held("a")] == ["ab", "ac"]

    @pytest.mark.parametrize("prefix", ["", "a", "ab", "abc", "abcd", "abcde", "b"])
    def test_a_prefix_selects_the_alerts_whose_id_begins_so(self, subscriber: Subscriber, prefix: str) -> None:
        ids = ["abc", "abcd", "abcde", "abd", "b"]
        subscriber.apply("b1", [entry(0, alert_id=each) for each in ids])
        chosen = [each for each in ids if each.startswith(prefix)]
        assert [held.alert_id for held in subscriber.held(prefix)] == chosen
        assert subscriber.mark(prefix) == mark_of(entry(0, alert_id=each).stamp for each in chosen)

    def test_an_entry_of_a_later_epoch_replaces_any_of_an_earlier_one__E14(self, subscriber: Subscriber) -> None:
        subscriber.apply("b1", [entry(7), entry(7, "retract")])
        assert subscriber.apply("b2", [entry(0, epoch=1)]) == ["applied"]
        assert subscriber.apply("b3", [entry(8), entry(0, epoch=1)]) == ["stale", "stale"]
        assert subscriber.held() == [entry(0, epoch=1)]
        assert subscriber.mark() == mark_of([entry(0, epoch=1).stamp])

    def test_equal_keys_with_other_content_have_another_mark(self, subscriber: Subscriber) -> None:
        subscriber.apply("b1", [entry(0)])
        assert subscriber.mark() != mark_of([AlertEntry("x", 0, "insert", '{"said":1}').stamp])
