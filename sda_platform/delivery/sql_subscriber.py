"""Subscribers that are databases: SQLite and Postgres take the same statements.

One transaction per batch: the batch id is claimed first, so that of two senders of one batch the second waits, and
then reads the first one's answer.
"""

import time
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

from sda_platform import faults
from sda_platform.delivery.subscriber import AlertEntry, EntryKey, Mark, Outcome, Subscriber

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS alerts (
        alert_id TEXT PRIMARY KEY, sequence BIGINT NOT NULL, op TEXT NOT NULL, body TEXT NOT NULL,
        batch_id TEXT NOT NULL, received_time_ns BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS receipts (
        batch_id TEXT NOT NULL, alert_id TEXT NOT NULL, sequence BIGINT NOT NULL, op TEXT NOT NULL,
        outcome TEXT NOT NULL, received_time_ns BIGINT NOT NULL, PRIMARY KEY (batch_id, alert_id, sequence, op))""",
    "CREATE TABLE IF NOT EXISTS batches (batch_id TEXT PRIMARY KEY, received_time_ns BIGINT NOT NULL)",
)
_CLAIM = "INSERT INTO batches VALUES (:batch_id, :received) ON CONFLICT DO NOTHING RETURNING 1"
# An entry is newer when its sequence is; of one sequence, the retract follows the insert.
_APPLY = """
INSERT INTO alerts VALUES (:alert_id, :sequence, :op, :body, :batch_id, :received)
ON CONFLICT (alert_id) DO UPDATE SET sequence = excluded.sequence, op = excluded.op, body = excluded.body,
    batch_id = excluded.batch_id, received_time_ns = excluded.received_time_ns
WHERE (excluded.sequence, excluded.op) > (alerts.sequence, alerts.op)
RETURNING 1
"""
_RECEIPT = "INSERT INTO receipts VALUES (:batch_id, :alert_id, :sequence, :op, :outcome, :received)"
_KNOWN = "SELECT 1 FROM batches WHERE batch_id = :batch_id"
_ANSWER = "SELECT alert_id, sequence, op, outcome FROM receipts WHERE batch_id = :batch_id"
_PREFIXED = "FROM alerts WHERE substr(alert_id, 1, :length) = :prefix"
_HELD = f"SELECT alert_id, sequence, op, body {_PREFIXED} ORDER BY alert_id"
_RECEIPTS = "SELECT alert_id, sequence, op, outcome, received_time_ns FROM receipts ORDER BY received_time_ns"


class Transaction(Protocol):
    """An open transaction; it commits when its context is left without an error."""

    def run(self, statement: str, **values: Any) -> Sequence[Sequence[Any]]:
        """The rows that ``statement``, with its ``:names`` bound to ``values``, returns."""
        ...


class SqlSubscriber(Subscriber):
    """A database that holds the alerts, the batches it has seen, and what it answered to each entry."""

    idempotency: ClassVar[str] = "the batch id is the primary key of a row written in the batch's transaction"
    _mark_columns: ClassVar[str]
    """What SELECT returns of a set of alerts: their count, and the sum of their keys' digests."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Transaction]:
        """A transaction on a database that has the schema."""

    @abstractmethod
    def _exists(self) -> bool:
        """False when nothing was ever delivered here, so that reading creates nothing."""

    def apply(self, batch_id: str, entries: Sequence[AlertEntry]) -> list[Outcome]:
        """See `Subscriber.apply`; all of the batch or nothing. Raises ValueError for other entries under its id."""
        with self._transaction() as transaction:
            received = time.time_ns()
            if transaction.run(_CLAIM, batch_id=batch_id, received=received):
                outcomes = [_apply(transaction, batch_id, entry, received) for entry in entries]
                faults.reach("delivery.written")
            else:
                outcomes = _first_answer(batch_id, _answer(transaction, batch_id), entries)
        faults.reach("delivery.committed")
        return outcomes

    def answer(self, batch_id: str) -> dict[EntryKey, Outcome] | None:
        """What was answered to each entry of a batch; None for a batch that never arrived."""
        if not self._exists():
            return None
        with self._transaction() as transaction:
            return _answer(transaction, batch_id) if transaction.run(_KNOWN, batch_id=batch_id) else None

    def mark(self, prefix: str = "") -> Mark:
        """See `Subscriber.mark`; computed by the database from what is stored."""
        if not self._exists():
            return Mark()
        with self._transaction() as transaction:
            ((count, digests),) = transaction.run(
                f"SELECT {self._mark_columns} {_PREFIXED}", length=len(prefix), prefix=prefix
            )
            return Mark(int(count), 0) + Mark(0, int(digests or 0))

    def held(self, prefix: str = "") -> list[AlertEntry]:
        """See `Subscriber.held`."""
        if not self._exists():
            return []
        with self._transaction() as transaction:
            return [AlertEntry(*row) for row in transaction.run(_HELD, length=len(prefix), prefix=prefix)]

    def receipts(self) -> list[tuple[str, int, str, str, int]]:
        """``(alert_id, sequence, op, outcome, received wall time in ns)`` of every entry ever received."""
        if not self._exists():
            return []
        with self._transaction() as transaction:
            return [(a, s, op, outcome, at) for a, s, op, outcome, at in transaction.run(_RECEIPTS)]


def _apply(transaction: Transaction, batch_id: str, entry: AlertEntry, received: int) -> Outcome:
    stamp = {"alert_id": entry.alert_id, "sequence": entry.sequence, "op": entry.op}
    stamp |= {"batch_id": batch_id, "received": received}
    outcome: Outcome = "applied" if transaction.run(_APPLY, **stamp, body=entry.body) else "stale"
    transaction.run(_RECEIPT, **stamp, outcome=outcome)
    return outcome


def _answer(transaction: Transaction, batch_id: str) -> dict[EntryKey, Outcome]:
    rows = transaction.run(_ANSWER, batch_id=batch_id)
    return {(alert_id, sequence, op): outcome for alert_id, sequence, op, outcome in rows}


def _first_answer(batch_id: str, answered: dict[EntryKey, Outcome], entries: Sequence[AlertEntry]) -> list[Outcome]:
    for entry in entries:
        if entry.key not in answered:
            raise ValueError(f"batch {batch_id} was received without {entry.alert_id} {entry.sequence} {entry.op}")
    return [answered[entry.key] for entry in entries]
