"""The outbox: which alert entries a batch sends, under which identity, and what the subscriber answered."""

import json
from collections.abc import Sequence

import pyarrow as pa

from sda_platform.delivery.subscriber import AlertEntry, Outcome
from sda_platform.lake.planning import Plan

_ENVELOPE = ("event_id", "sequence", "op", "commit_sequence")


def batch_id(plan: Plan, subscriber: str) -> str:
    """Identity of a batch: equal whenever the same plan is carried out again, in whatever process."""
    spans = ",".join(f"{w.table}:{w.after_sequence}-{w.upto_sequence}" for w in plan.windows)
    return f"{subscriber}|{plan.sequence}|{spans}"


def entries(alerts: pa.Table) -> list[AlertEntry]:
    """The journal's entries in the order that a subscriber must apply them: a retract before the insert after it."""
    ordered = alerts.sort_by([("event_id", "ascending"), ("sequence", "ascending"), ("op", "ascending")])
    return [
        AlertEntry(row["event_id"], row["sequence"], row["op"], _body({k: row[k] for k in row if k not in _ENVELOPE}))
        for row in ordered.to_pylist()
    ]


def ledger(
    alerts: pa.Table,
    sent: Sequence[AlertEntry],
    outcomes: Sequence[Outcome],
    *,
    batch: str,
    subscriber: str,
    as_of_ns: int,
) -> pa.Table:
    """One row per entry sent, in the columns of `alert_deliveries`."""
    tca = {(r["event_id"], r["sequence"], r["op"]): r["tca_time_ns"] for r in alerts.to_pylist()}
    rows = [
        {
            "subscriber": subscriber,
            "alert_id": entry.alert_id,
            "sequence": entry.sequence,
            "op": entry.op,
            "outcome": outcome,
            "batch_id": batch,
            "tca_time_ns": tca[entry.alert_id, entry.sequence, entry.op],
            "as_of_ns": as_of_ns,
        }
        for entry, outcome in zip(sent, outcomes, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=_LEDGER_SCHEMA)


def _body(facts: dict[str, object]) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


_LEDGER_SCHEMA = pa.schema(
    [
        ("subscriber", pa.string()),
        ("alert_id", pa.string()),
        ("sequence", pa.int64()),
        ("op", pa.string()),
        ("outcome", pa.string()),
        ("batch_id", pa.string()),
        ("tca_time_ns", pa.int64()),
        ("as_of_ns", pa.int64()),
    ]
)
