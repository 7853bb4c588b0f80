"""The ledger of deliveries: its rows, and the last entry of each alert that a subscriber was sent."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, SAME_EVENT_NS
from sda_platform.delivery.outbox import DeliveryBatch, entries
from sda_platform.delivery.subscriber import AlertEntry, EntryStamp, Outcome
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE

INHERITED = "inherited"
_COLUMNS = ["alert_id", "epoch", "sequence", "op", "content", "cause", "outcome", "tca_time_ns", COMMIT_SEQUENCE]
# Of one key, the later row is an inherited one: the subscriber had other content under it.
_ORDER = ("alert_id", "epoch", "sequence", "op", COMMIT_SEQUENCE)


@dataclass(frozen=True)
class Delivered:
    """The last entry of an alert according to the ledger."""

    stamp: EntryStamp
    cause: str
    tca_time_ns: int

    @property
    def is_ours(self) -> bool:
        """Whether the correction log of alerts has the entry."""
        return self.cause in ("alert", "correction")


def ledger(sent: Sequence[DeliveryBatch], outcomes: Sequence[Outcome], *, subscriber: str, as_of_ns: int) -> pa.Table:
    """Make one row per entry sent, in the columns of `alert_deliveries`."""
    rows = []
    for entry, outcome, (batch_id, cause) in zip(_all(sent), outcomes, _circumstances(sent), strict=True):
        rows.append(ledger_row(entry, outcome, batch_id, cause, subscriber=subscriber, as_of_ns=as_of_ns))
    return pa.Table.from_pylist(rows, schema=ALERT_DELIVERIES.content_schema)


def ledger_row(
    entry: AlertEntry, outcome: str, batch_id: str, cause: str, *, subscriber: str, as_of_ns: int
) -> dict[str, object]:
    """Return the row of `alert_deliveries` for one entry; an alert of another system may have no TCA (0)."""
    return {
        **entry.stamp._asdict(),
        "subscriber": subscriber,
        "outcome": outcome,
        "batch_id": batch_id,
        "cause": cause,
        "tca_time_ns": json.loads(entry.body).get("tca_time_ns", 0),
        "as_of_ns": as_of_ns,
    }


def last_delivered(store: Lake, plan: Plan | None = None, where: ds.Expression | None = None) -> dict[str, Delivered]:
    """Return the last entry of each alert in the ledger as ``plan``, one of its own, found it; without a plan, as it is
    now.

    ``where`` restricts the rows; it must select all rows of an alert that are later than those that it leaves out.
    """
    rows = (
        store.log(ALERT_DELIVERIES).rows(_COLUMNS, where) if plan is None else store.earlier_rows(plan, _COLUMNS, where)
    )
    epoch = pc.fill_null(rows.column("epoch"), 0)
    rows = rows.set_column(rows.schema.get_field_index("epoch"), "epoch", epoch)
    rows = rows.sort_by([(name, "ascending") for name in _ORDER])
    ids = rows.column("alert_id").to_numpy()
    last = rows.filter(np.append(ids[1:] != ids[:-1], True)[: len(ids)])
    found = {row["alert_id"]: row for row in last.to_pylist()}
    contents = _contents(store, [row["alert_id"] for row in found.values() if row["content"] is None])
    return {alert_id: _delivered(row, contents) for alert_id, row in found.items()}


def replaced_by(store: Lake, plan: Plan, sent: Sequence[AlertEntry]) -> dict[str, EntryStamp]:
    """Return the last delivered entry of each alert of ``sent`` that had one."""
    first: dict[str, AlertEntry] = {}
    for entry in sent:
        first.setdefault(entry.alert_id, entry)
    earlier = {name: entry for name, entry in first.items() if entry.order != (0, 0, INSERT)}
    if not earlier:
        return {}
    times = [json.loads(entry.body).get("tca_time_ns", 0) for entry in earlier.values()]
    found = last_delivered(store, plan, _named(earlier) & near(min(times), max(times)))
    beyond = [
        name for name, entry in earlier.items() if name not in found and (entry.sequence, entry.op) != (0, INSERT)
    ]
    if beyond:
        found |= last_delivered(store, plan, _named(beyond))
    return {name: delivered.stamp for name, delivered in found.items()}


def near(first_ns: int, last_ns: int) -> ds.Expression:
    """Return rows of encounters that may be one with an encounter whose TCA is between these times."""
    tca = ds.field("tca_time_ns")
    return (tca > first_ns - SAME_EVENT_NS) & (tca < last_ns + SAME_EVENT_NS)


def stamps(delivered: Mapping[str, Delivered]) -> dict[str, EntryStamp]:
    """Return the stamps of delivered entries, by alert."""
    return {name: each.stamp for name, each in delivered.items()}


def entries_of(store: Lake, wanted: Iterable[EntryStamp]) -> list[AlertEntry]:
    """Select the entries of the alerts' correction log that have the keys of these stamps."""
    keys = {stamp.key for stamp in wanted}
    epochs = {(name, sequence, op): epoch for name, epoch, sequence, op in sorted(keys)}
    if not keys:
        return []
    rows = store.log(CONJUNCTION_ALERTS).rows(where=ds.field("event_id").isin(sorted({key[0] for key in keys})))
    numbered = (
        AlertEntry(e.alert_id, e.sequence, e.op, e.body, epochs.get((e.alert_id, e.sequence, e.op), -1))
        for e in entries(rows)
    )
    return [entry for entry in numbered if entry.key in keys]


def _named(names: Iterable[str]) -> ds.Expression:
    return ds.field("alert_id").isin(pa.array(sorted(names), pa.string()))


def _all(sent: Iterable[DeliveryBatch]) -> Iterable[AlertEntry]:
    return (entry for batch in sent for entry in batch.entries)


def _circumstances(sent: Iterable[DeliveryBatch]) -> Iterable[tuple[str, str]]:
    """Yield the group id and the cause of each entry, in the order of `_all`."""
    for batch in sent:
        causes = iter(batch.causes())
        for group_id, group in batch.groups():
            yield from ((group_id, next(causes)) for _ in group)


def _delivered(row: Mapping[str, Any], contents: Mapping[tuple[str, int, str], str]) -> Delivered:
    content = row["content"] or contents.get((row["alert_id"], row["sequence"], row["op"]), "")
    cause = row["cause"] or (INHERITED if row["outcome"] == INHERITED else "alert")
    stamp = EntryStamp(row["alert_id"], row["epoch"], row["sequence"], row["op"], content)
    return Delivered(stamp, cause, row["tca_time_ns"])


def _contents(store: Lake, names: Sequence[str]) -> dict[tuple[str, int, str], str]:
    """Return the content hashes of entries that an earlier version of the platform recorded without."""
    if not names:
        return {}
    rows = store.log(CONJUNCTION_ALERTS).rows(where=ds.field("event_id").isin(pa.array(sorted(names), pa.string())))
    return {(e.alert_id, e.sequence, e.op): e.stamp.content for e in entries(rows)}
