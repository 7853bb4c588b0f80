"""The outbox: which alert entries a batch sends, under which identity, and what the subscriber answered.

The journal of alerts is the outbox: an entry waits there until the ledger of deliveries has consumed its commit.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform import failpoints
from sda_platform.delivery.subscriber import AlertEntry, EntriesMark, EntryKey, Outcome, Subscriber, canonical, mark_of
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.correction_log import INSERT, RETRACT
from sda_platform.lake.table import COMMIT_SEQUENCE

# Bounds a request to about half a megabyte, and the time for which a subscriber is locked to a second.
GROUP_SIZE = 500
_ENVELOPE = ("event_id", "sequence", "op", "commit_sequence")


@dataclass(frozen=True)
class DeliveryBatch:
    """Entries in the order in which they apply, and the id by which a subscriber recognises them."""

    id: str
    entries: Sequence[AlertEntry]

    def groups(self) -> Iterable[tuple[str, Sequence[AlertEntry]]]:
        """How the batch is sent: ``(group id, entries)``; equal batches are grouped equally."""
        for begin in range(0, len(self.entries), GROUP_SIZE):
            yield f"{self.id}|{begin // GROUP_SIZE + 1}", self.entries[begin : begin + GROUP_SIZE]

    def send(self, subscriber: Subscriber) -> list[Outcome]:
        """Send it to ``subscriber``. A batch of an earlier attempt gets the answer of that attempt."""
        outcomes: list[Outcome] = []
        for group_id, group in self.groups():
            outcomes += subscriber.apply(group_id, group)
            failpoints.hit("delivery.group_answered")
        return outcomes


def planned_batches(
    subscriber: str,
    alerts: pa.Table,
    first: int = 0,
    before: Callable[[Sequence[AlertEntry], int], Sequence[AlertEntry]] = lambda _sent, _commit: (),
) -> list[DeliveryBatch]:
    """The batches to send of ``alerts``: one for each commit that has entries, in the order of the commits.

    A batch depends on its commit only, not on the plan that sends it. An interrupted delivery is therefore repeated
    with the same batches, even after later commits, and each entry gets its first outcome. The id ends with a hash of
    the content, because a rebuilt lake has other entries at the same commit. ``before(entries, commit)`` returns the
    entries to send before those of a commit; for ``first`` see `entries`.
    """
    by_commit, begin, batches = alerts.sort_by(COMMIT_SEQUENCE), 0, []
    for each in pc.value_counts(by_commit.column(COMMIT_SEQUENCE)).to_pylist():
        commit, rows = each["values"], each["counts"]
        sent = entries(by_commit.slice(begin, rows), first)
        batches.append(_batch(f"{subscriber}|alerts {commit}", [*before(sent, commit), *sent]))
        begin += rows
    return batches


def _batch(name: str, sent: Sequence[AlertEntry]) -> DeliveryBatch:
    content = hashlib.sha256("\n".join(f"{e.key}{e.body}" for e in sent).encode()).hexdigest()[:16]
    return DeliveryBatch(f"{name}|{content}", sent)


def entries(alerts: pa.Table, first: int = 0) -> list[AlertEntry]:
    """The journal's entries in the order that a subscriber must apply them: a retract before the insert after it.

    ``first`` is the sequence at the subscriber of a journal's first entry.
    """
    ordered = alerts.sort_by([("event_id", "ascending"), ("sequence", "ascending"), ("op", "ascending")])
    return [AlertEntry(row["event_id"], first + row["sequence"], row["op"], _body(row)) for row in ordered.to_pylist()]


def mark_change(sent: Iterable[AlertEntry], first: int = 0, held: Mapping[str, EntryKey] | None = None) -> EntriesMark:
    """By how much these entries change the mark of a subscriber that had all entries before them.

    A journal alternates (insert 0, retract 0, insert 1, …), so each entry replaces one that is known without looking;
    the first of an alert, at sequence ``first``, replaces what was ``held`` of it before, if anything was.
    """
    keys = [entry.key for entry in sent]
    replaced = ((held or {}).get(key[0]) if key[1:] == (first, INSERT) else _replaced(key) for key in keys)
    return mark_of(keys) - mark_of(key for key in replaced if key)


def ledger(sent: Sequence[DeliveryBatch], outcomes: Sequence[Outcome], *, subscriber: str, as_of_ns: int) -> pa.Table:
    """One row per entry sent, in the columns of `alert_deliveries`."""
    grouped = [(entry, group_id) for batch in sent for group_id, group in batch.groups() for entry in group]
    rows = [
        ledger_row(entry, outcome, batch_id, subscriber=subscriber, as_of_ns=as_of_ns)
        for (entry, batch_id), outcome in zip(grouped, outcomes, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=ALERT_DELIVERIES.content_schema)


def ledger_row(entry: AlertEntry, outcome: str, batch_id: str, *, subscriber: str, as_of_ns: int) -> dict[str, object]:
    """The row of `alert_deliveries` for one entry."""
    return {
        "subscriber": subscriber,
        "alert_id": entry.alert_id,
        "sequence": entry.sequence,
        "op": entry.op,
        "outcome": outcome,
        "batch_id": batch_id,
        "tca_time_ns": json.loads(entry.body)["tca_time_ns"],
        "as_of_ns": as_of_ns,
    }


def _body(row: dict[str, object]) -> str:
    return canonical({name: value for name, value in row.items() if name not in _ENVELOPE})


def _replaced(key: EntryKey) -> EntryKey:
    """The entry of the same alert that comes before the one with ``key``, which is not the first."""
    alert_id, sequence, op = key
    return (alert_id, sequence, INSERT) if op == RETRACT else (alert_id, sequence - 1, RETRACT)
