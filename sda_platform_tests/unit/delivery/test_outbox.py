"""The outbox: a batch's identity, the order in which it is sent, and its ledger."""

import json
from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.ledger import ledger
from sda_platform.delivery.outbox import GROUP_SIZE, DeliveryBatch, entries, marks_along, planned_batches
from sda_platform.delivery.subscriber import AlertEntry, EntriesMark, mark_of
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform_tests.support.delta_tables import rows_of


def alerts(*turns: tuple[str, int, str]) -> pa.Table:
    rows = [{"event_id": e, "sequence": s, "op": op, "tca_time_ns": 100 + s} for e, s, op in turns]
    return rows_of(CONJUNCTION_ALERTS, rows)


def in_commit(number: int, table: pa.Table) -> pa.Table:
    column = pa.repeat(pa.scalar(number, pa.int64()), table.num_rows)
    return table.set_column(table.schema.get_field_index(COMMIT_SEQUENCE), COMMIT_SEQUENCE, column)


def test_the_alerts_of_a_commit_are_one_batch_whatever_else_a_plan_sends__D17() -> None:
    first, second = in_commit(4, alerts(("x", 0, "insert"))), in_commit(5, alerts(("x", 0, "retract")))
    (alone,) = planned_batches("sqlite:a", first)
    assert alone.id.startswith("sqlite:a|alerts 4|")
    assert planned_batches("sqlite:a", pa.concat_tables([second, first])) == [
        alone,
        *planned_batches("sqlite:a", second),
    ]


def test_another_commit_subscriber_or_content_is_another_batch() -> None:
    one, other = alerts(("x", 0, "insert")), alerts(("y", 0, "insert"))
    chosen = [("a", in_commit(1, one)), ("a", in_commit(2, one)), ("b", in_commit(1, one)), ("a", in_commit(1, other))]
    assert len({batch.id for each in chosen for batch in planned_batches(*each)}) == 4


def test_a_large_batch_is_sent_in_groups_that_are_the_same_each_time__CP37() -> None:
    many = alerts(*((f"{n:04}", 0, "insert") for n in range(2 * GROUP_SIZE + 1)))
    (sent,) = planned_batches("a", many)
    groups = list(sent.groups())
    assert [(group_id, len(group)) for group_id, group in groups] == [
        (f"{sent.id}|1", GROUP_SIZE),
        (f"{sent.id}|2", GROUP_SIZE),
        (f"{sent.id}|3", 1),
    ]
    assert [entry for _, group in groups for entry in group] == sent.entries
    rows = ledger([sent], ["applied"] * len(sent.entries), subscriber="s", as_of_ns=7)
    assert rows.column("batch_id").to_pylist() == [group_id for group_id, group in groups for _ in group]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.data())
def test_the_mark_follows_from_the_entries_and_what_they_replace(lengths: list[int], data: st.DataObject) -> None:
    """Whatever way the journals of some alerts are cut into batches, the changes add up to the mark of their ends."""
    journals = [
        [AlertEntry(str(n), i // 2, ("insert", "retract")[i % 2], f"{n} {i}") for i in range(length)]
        for n, length in enumerate(lengths)
    ]
    cuts = [data.draw(st.integers(0, len(journal))) for journal in journals]
    first = [entry for journal, cut in zip(journals, cuts, strict=True) for entry in journal[:cut]]
    second = [entry for journal, cut in zip(journals, cuts, strict=True) for entry in journal[cut:]]
    held = {entry.alert_id: entry.stamp for entry in first}
    between = marks_along([DeliveryBatch("1", first)], EntriesMark(), {})[-1]
    assert between == mark_of(held.values())
    ends = mark_of(journal[-1].stamp for journal in journals if journal)
    assert marks_along([DeliveryBatch("2", second)], between, held)[-1] == ends


def test_a_retract_is_sent_before_the_insert_that_follows_it_whatever_order_the_table_has__DP3_I17() -> None:
    shuffled = alerts(("y", 0, "insert"), ("x", 1, "insert"), ("x", 0, "retract"), ("x", 0, "insert"))
    assert [(e.alert_id, e.sequence, e.op) for e in entries(shuffled)] == [
        ("x", 0, "insert"),
        ("x", 0, "retract"),
        ("x", 1, "insert"),
        ("y", 0, "insert"),
    ]


def test_the_body_is_the_alert_without_its_envelope() -> None:
    (sent,) = entries(alerts(("x", 0, "insert")))
    body = json.loads(sent.body)
    assert set(body) == {c.name for c in CONJUNCTION_ALERTS.columns} - {"event_id", "sequence", "op", COMMIT_SEQUENCE}
    assert body["tca_time_ns"] == 100


def test_the_ledger_has_a_row_per_entry_with_its_outcome() -> None:
    table = alerts(("x", 1, "insert"), ("x", 0, "retract"))
    rows = ledger([DeliveryBatch("b", entries(table))], ["applied", "stale"], subscriber="s", as_of_ns=7)
    assert [(r["sequence"], r["op"], r["outcome"], r["tca_time_ns"]) for r in rows.to_pylist()] == [
        (0, "retract", "applied", 100),
        (1, "insert", "stale", 101),
    ]
    assert {(r["subscriber"], r["as_of_ns"], r["batch_id"], r["cause"]) for r in rows.to_pylist()} == {
        ("s", 7, "b|1", "alert")
    }
    assert [f.name for f in rows.schema] == [c.name for c in ALERT_DELIVERIES.columns if c.name != COMMIT_SEQUENCE]


def test_each_row_of_the_ledger_names_the_group_and_the_cause_of_its_entry() -> None:
    sent = entries(alerts(*((f"{n:04}", 0, "insert") for n in range(GROUP_SIZE + 2))))
    batches = [DeliveryBatch("new", sent, withdrawals=GROUP_SIZE + 1), DeliveryBatch("old", sent[:1], "correction")]
    rows = ledger(batches, ["applied"] * (GROUP_SIZE + 3), subscriber="s", as_of_ns=7).to_pylist()
    assert Counter((row["batch_id"], row["cause"]) for row in rows) == {
        ("new|1", "withdrawal"): GROUP_SIZE,
        ("new|2", "withdrawal"): 1,
        ("new|2", "alert"): 1,
        ("old|1", "correction"): 1,
    }
    assert [row["alert_id"] for row in rows] == [*(entry.alert_id for entry in sent), sent[0].alert_id]


def test_no_alerts_are_an_empty_ledger_with_its_columns() -> None:
    rows = ledger([], [], subscriber="s", as_of_ns=7)
    assert rows.num_rows == 0
    assert "outcome" in rows.column_names
