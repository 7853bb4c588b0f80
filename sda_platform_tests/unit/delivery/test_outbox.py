"""The outbox: a batch's identity, the order in which it is sent, and its ledger."""

import json
from dataclasses import replace

import pyarrow as pa

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.outbox import batch_id, entries, ledger
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.checkpoint import GENESIS, TableWindow
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform_tests.delta_tables import rows_of

PLAN = Plan(ALERT_DELIVERIES, 3, GENESIS, 1, 10, "run", windows=(TableWindow(CONJUNCTION_ALERTS.name, 4, 6, 5, 7),))


def alerts(*turns: tuple[str, int, str]) -> pa.Table:
    rows = [{"event_id": e, "sequence": s, "op": op, "tca_time_ns": 100 + s} for e, s, op in turns]
    return rows_of(CONJUNCTION_ALERTS, rows)


def test_a_plan_carried_out_again_by_another_run_sends_the_same_batch() -> None:
    assert batch_id(PLAN, "sqlite:a") == "sqlite:a|3|conjunction_alerts:4-6"
    assert batch_id(replace(PLAN, run_id="another", as_of_ns=99), "sqlite:a") == batch_id(PLAN, "sqlite:a")


def test_another_window_sequence_or_subscriber_is_another_batch() -> None:
    wider = replace(PLAN, windows=(TableWindow(CONJUNCTION_ALERTS.name, 4, 7, 5, 8),))
    ids = {batch_id(PLAN, "a"), batch_id(wider, "a"), batch_id(replace(PLAN, sequence=4), "a"), batch_id(PLAN, "b")}
    assert len(ids) == 4


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
    rows = ledger(table, entries(table), ["applied", "stale"], batch="b", subscriber="s", as_of_ns=7)
    assert [(r["sequence"], r["op"], r["outcome"], r["tca_time_ns"]) for r in rows.to_pylist()] == [
        (0, "retract", "applied", 100),
        (1, "insert", "stale", 101),
    ]
    assert [f.name for f in rows.schema] == [c.name for c in ALERT_DELIVERIES.columns if c.name != COMMIT_SEQUENCE]


def test_no_alerts_are_an_empty_ledger_with_its_columns() -> None:
    rows = ledger(alerts(), [], [], batch="b", subscriber="s", as_of_ns=7)
    assert rows.num_rows == 0
    assert "outcome" in rows.column_names
