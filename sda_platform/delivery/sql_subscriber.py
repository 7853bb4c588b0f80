"""Subscribers that are databases: SQLite and Postgres execute the same statements.

Each batch is one transaction that first inserts the batch id. If two senders send one batch, the second waits, then
reads the answer to the first.

Receipts answer a batch that is sent again. Only a batch that the ledger has not recorded is sent again. After its
receipts are deleted, a repeated batch still changes nothing: none of its entries is newer than those held (`stale`).
"""

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

from sda_platform import failpoints
from sda_platform.delivery.subscriber import AlertEntry, EntriesMark, EntryKey, Outcome, Subscriber, entry_digest
from sda_platform.lake.retention import RETENTION
from sda_platform.units import DAY_NS

# Marks are kept per leaf, the first characters of an alert's id: one row for each of at most 4,096 leaves of UUIDs.
_LEAF_CHARACTERS = 3
_LEAF = f"substr(alert_id, 1, {_LEAF_CHARACTERS})"
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS alerts (
        alert_id TEXT PRIMARY KEY, epoch BIGINT NOT NULL, sequence BIGINT NOT NULL, op TEXT NOT NULL,
        body TEXT NOT NULL, batch_id TEXT NOT NULL, received_time_ns BIGINT NOT NULL, digest BIGINT NOT NULL)""",
    f"CREATE INDEX IF NOT EXISTS alerts_by_leaf ON alerts (({_LEAF}))",
    "CREATE TABLE IF NOT EXISTS marks (leaf TEXT PRIMARY KEY, count BIGINT NOT NULL, digest BIGINT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS receipts (
        batch_id TEXT NOT NULL, alert_id TEXT NOT NULL, epoch BIGINT NOT NULL, sequence BIGINT NOT NULL,
        op TEXT NOT NULL, outcome TEXT NOT NULL, received_time_ns BIGINT NOT NULL,
        PRIMARY KEY (batch_id, alert_id, epoch, sequence, op))""",
    "CREATE TABLE IF NOT EXISTS batches (batch_id TEXT PRIMARY KEY, received_time_ns BIGINT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS batches_by_time ON batches (received_time_ns)",
)
"""The tables. Triggers of each database update ``marks`` with every change of ``alerts``, from any writer."""
_EARLIER = ("alerts", "receipts")


def migration(exists: Callable[[str], bool], triggers: Sequence[str], digest: str) -> Iterator[str]:
    """Yield the statements that make the tables, within one transaction, and take over those of an earlier version.

    ``exists``: whether there is a table of this name. ``digest``: `entry_digest` of an earlier alert in SQL; its epoch
    is 0.
    """
    earlier = [table for table in _EARLIER if exists(table)]
    for table in earlier:  # a copy, because a renamed table keeps its triggers and the names of its indexes
        yield f"CREATE TABLE earlier_{table} AS SELECT * FROM {table}"
        yield f"DROP TABLE {table}"
    yield "DROP TABLE IF EXISTS marks"
    yield from (*SCHEMA, *triggers)
    columns = {
        "alerts": "alert_id, {epoch}, sequence, op, body, batch_id, received_time_ns, {digest}",
        "receipts": "batch_id, alert_id, {epoch}, sequence, op, outcome, received_time_ns",
    }
    for table in earlier:
        names = columns[table].format(epoch="epoch", digest="digest")
        values = columns[table].format(epoch="0", digest=digest)
        yield f"INSERT INTO {table} ({names}) SELECT {values} FROM earlier_{table}"
        yield f"DROP TABLE earlier_{table}"


_FORGOTTEN_AT_ONCE = 100

_CLAIM = "INSERT INTO batches VALUES (:batch_id, :received) ON CONFLICT DO NOTHING RETURNING 1"
# An entry is newer when its epoch is, then its sequence; of one sequence, the retract follows the insert.
_APPLY = """
INSERT INTO alerts (alert_id, epoch, sequence, op, body, batch_id, received_time_ns, digest)
VALUES (:alert_id, :epoch, :sequence, :op, :body, :batch_id, :received, :digest)
ON CONFLICT (alert_id) DO UPDATE SET epoch = excluded.epoch, sequence = excluded.sequence, op = excluded.op,
    body = excluded.body, batch_id = excluded.batch_id, received_time_ns = excluded.received_time_ns,
    digest = excluded.digest
WHERE (excluded.epoch, excluded.sequence, excluded.op) > (alerts.epoch, alerts.sequence, alerts.op)
RETURNING 1
"""
_RECEIPT = "INSERT INTO receipts VALUES (:batch_id, :alert_id, :epoch, :sequence, :op, :outcome, :received)"
_KNOWN = "SELECT 1 FROM batches WHERE batch_id = :batch_id"
_ANSWER = "SELECT alert_id, epoch, sequence, op, outcome FROM receipts WHERE batch_id = :batch_id"
_KEPT_SINCE = "SELECT received_time_ns FROM batches ORDER BY received_time_ns DESC LIMIT 1 OFFSET :kept"
_FORGETTABLE = "SELECT batch_id FROM batches WHERE received_time_ns < :before ORDER BY received_time_ns LIMIT :many"
_FORGET = ("DELETE FROM receipts WHERE batch_id = :batch_id", "DELETE FROM batches WHERE batch_id = :batch_id")
_PREFIXED = "FROM alerts WHERE substr(alert_id, 1, :length) = :prefix"
_IN_LEAF = f"{_PREFIXED} AND {_LEAF} = :leaf"
_MARKS = "SELECT count, digest FROM marks WHERE substr(leaf, 1, :length) = :prefix"
_RECEIPTS = "SELECT alert_id, sequence, op, outcome, received_time_ns, epoch FROM receipts ORDER BY received_time_ns"


class Transaction(Protocol):
    """An open transaction; it commits when its context is left without an error."""

    def run(self, statement: str, **values: Any) -> Sequence[Sequence[Any]]:
        """Return the rows that ``statement``, with its ``:names`` bound to ``values``, returns."""
        ...


class SqlSubscriber(Subscriber):
    """A database that holds the alerts, the batches it has seen, and what it answered to each entry.

    Receipts of a batch go ``receipt_days`` after it came, but never those of the newest batches.
    """

    idempotency: ClassVar[str] = "the batch id is the primary key of a row written in the batch's transaction"

    @abstractmethod
    def _transaction(self, *, writes: bool = False) -> AbstractContextManager[Transaction]:
        """A transaction on a database that has the schema; only one that ``writes`` waits for another writer."""

    @abstractmethod
    def _exists(self) -> bool:
        """False when nothing was ever delivered here, so that reading creates nothing."""

    def __init__(self, name: str, receipt_days: int = RETENTION.operations_days) -> None:
        self.name = name
        self._receipt_days = receipt_days

    def apply(self, batch_id: str, entries: Sequence[AlertEntry]) -> list[Outcome]:
        """See `Subscriber.apply`; all of the batch or nothing. Raises ValueError for other entries under its id."""
        with self._transaction(writes=True) as transaction:
            received = time.time_ns()  # deterministic: the subscriber's own time; no row of the lake holds it
            if transaction.run(_CLAIM, batch_id=batch_id, received=received):
                outcomes = [_apply(transaction, batch_id, entry, received) for entry in entries]
                _forget(transaction, received - self._receipt_days * DAY_NS)
                failpoints.hit("delivery.written")
            else:
                outcomes = _first_answer(batch_id, _answer(transaction, batch_id), entries)
        failpoints.hit("delivery.committed")
        return outcomes

    def answer(self, batch_id: str) -> dict[EntryKey, Outcome] | None:
        """Return the answer to each entry of a batch; None for a batch that never arrived."""
        if not self._exists():
            return None
        with self._transaction() as transaction:
            return _answer(transaction, batch_id) if transaction.run(_KNOWN, batch_id=batch_id) else None

    def mark(self, prefix: str = "") -> EntriesMark:
        """See `Subscriber.mark`; reads a row a leaf, or the alerts of one leaf, however many alerts there are."""
        if not self._exists():
            return EntriesMark()
        with self._transaction() as transaction:
            if len(prefix) <= _LEAF_CHARACTERS:
                rows = transaction.run(_MARKS, length=len(prefix), prefix=prefix)
            else:
                rows = _alerts(transaction, "1, digest", prefix)
            return sum((EntriesMark(int(count), int(digest)) for count, digest in rows), EntriesMark())

    def held(self, prefix: str = "") -> list[AlertEntry]:
        """See `Subscriber.held`."""
        if not self._exists():
            return []
        with self._transaction() as transaction:
            return sorted(
                (AlertEntry(*row) for row in _alerts(transaction, "alert_id, sequence, op, body, epoch", prefix)),
                key=lambda entry: entry.alert_id,
            )

    def receipts(self) -> list[tuple[str, int, str, str, int, int]]:
        """``(alert_id, sequence, op, outcome, received wall time in ns, epoch)`` of every entry ever received."""
        if not self._exists():
            return []
        with self._transaction() as transaction:
            return [(a, s, op, outcome, at, e) for a, s, op, outcome, at, e in transaction.run(_RECEIPTS)]


def _apply(transaction: Transaction, batch_id: str, entry: AlertEntry, received: int) -> Outcome:
    stamp = {"alert_id": entry.alert_id, "epoch": entry.epoch, "sequence": entry.sequence, "op": entry.op}
    stamp |= {"batch_id": batch_id, "received": received}
    digest = entry_digest(*entry.stamp)
    outcome: Outcome = "applied" if transaction.run(_APPLY, **stamp, body=entry.body, digest=digest) else "stale"
    transaction.run(_RECEIPT, **stamp, outcome=outcome)
    return outcome


def _forget(transaction: Transaction, expired_ns: int) -> None:
    """Drop of the batches received until ``expired_ns`` those that `lake.retention` does not keep; a few at once, more
    than come.
    """
    for (oldest_kept,) in transaction.run(_KEPT_SINCE, kept=RETENTION.receipt_batches - 1):
        before = min(oldest_kept, expired_ns)
        for (batch_id,) in transaction.run(_FORGETTABLE, before=before, many=_FORGOTTEN_AT_ONCE):
            for statement in _FORGET:
                transaction.run(statement, batch_id=batch_id)


def _alerts(transaction: Transaction, columns: str, prefix: str) -> Sequence[Sequence[Any]]:
    """``columns`` of the alerts whose id begins with ``prefix``; of a long one through the index of leaves."""
    if len(prefix) < _LEAF_CHARACTERS:
        return transaction.run(f"SELECT {columns} {_PREFIXED}", length=len(prefix), prefix=prefix)
    leaf = prefix[:_LEAF_CHARACTERS]
    return transaction.run(f"SELECT {columns} {_IN_LEAF}", length=len(prefix), prefix=prefix, leaf=leaf)


def _answer(transaction: Transaction, batch_id: str) -> dict[EntryKey, Outcome]:
    rows = transaction.run(_ANSWER, batch_id=batch_id)
    return {(alert_id, epoch, sequence, op): outcome for alert_id, epoch, sequence, op, outcome in rows}


def _first_answer(batch_id: str, answered: dict[EntryKey, Outcome], entries: Sequence[AlertEntry]) -> list[Outcome]:
    for entry in entries:
        if entry.key not in answered:
            raise ValueError(f"batch {batch_id} was received without {' '.join(map(str, entry.key))}")
    return [answered[entry.key] for entry in entries]
