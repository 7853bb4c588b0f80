"""Subscribers: where alerts arrive. The default one is a SQLite file.

A subscriber applies ``(alert_id, sequence)`` with strict greater, keeps a tombstone of a withdrawn alert (E21), and
records the batch id in the same transaction. So a batch may be sent again after any doubt: it is applied once, and
the second answer equals the first.
"""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

Outcome = Literal["applied", "stale"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS alerts (
    alert_id TEXT PRIMARY KEY, sequence INTEGER NOT NULL, op TEXT NOT NULL, body TEXT NOT NULL,
    batch_id TEXT NOT NULL, received_time_ns INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS receipts (
    batch_id TEXT NOT NULL, alert_id TEXT NOT NULL, sequence INTEGER NOT NULL, op TEXT NOT NULL,
    outcome TEXT NOT NULL, received_time_ns INTEGER NOT NULL, PRIMARY KEY (batch_id, alert_id, sequence, op));
CREATE TABLE IF NOT EXISTS batches (batch_id TEXT PRIMARY KEY, received_time_ns INTEGER NOT NULL);
"""
# An entry is newer when its sequence is; of one sequence, the retract follows the insert.
_APPLY = """
INSERT INTO alerts VALUES (:alert_id, :sequence, :op, :body, :batch_id, :received)
ON CONFLICT (alert_id) DO UPDATE SET sequence = excluded.sequence, op = excluded.op, body = excluded.body,
    batch_id = excluded.batch_id, received_time_ns = excluded.received_time_ns
WHERE (excluded.sequence, excluded.op) > (alerts.sequence, alerts.op)
"""


@dataclass(frozen=True)
class AlertEntry:
    """One journal entry as the subscriber sees it; ``body`` is the alert as JSON."""

    alert_id: str
    sequence: int
    op: str
    body: str


class Subscriber(Protocol):
    """Anyone who can take a batch of entries so that repeating it changes nothing."""

    @property
    def name(self) -> str:
        """Name in the ledger of deliveries."""
        ...

    def apply(self, batch_id: str, entries: Sequence[AlertEntry]) -> list[Outcome]:
        """Apply ``entries`` in order, all or none; a known ``batch_id`` gets its first answer again."""
        ...

    def standing(self) -> list[tuple[str, int, str]]:
        """``(alert_id, sequence, body)`` of the alerts that hold now, by the subscriber's own account."""
        ...


class SqliteSubscriber:
    """The default subscriber: one SQLite file, one transaction per batch."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        """Name in the ledger of deliveries."""
        return f"sqlite:{self.path.name}"

    def apply(self, batch_id: str, entries: Sequence[AlertEntry]) -> list[Outcome]:
        """See `Subscriber.apply`."""
        with closing(self._connect()) as database, database:
            database.execute("BEGIN IMMEDIATE")
            known = database.execute("SELECT 1 FROM batches WHERE batch_id = ?", (batch_id,)).fetchone()
            if known:
                return [_receipt(database, batch_id, entry) for entry in entries]
            received = time.time_ns()
            outcomes = [_apply(database, batch_id, entry, received) for entry in entries]
            database.execute("INSERT INTO batches VALUES (?, ?)", (batch_id, received))
            return outcomes

    def standing(self) -> list[tuple[str, int, str]]:
        """``(alert_id, sequence, body)`` of the alerts that hold now."""
        if not self.path.exists():
            return []
        with closing(self._connect()) as database:
            rows = database.execute("SELECT alert_id, sequence, body FROM alerts WHERE op = 'insert' ORDER BY alert_id")
            return [(str(a), int(s), str(b)) for a, s, b in rows]

    def receipts(self) -> list[tuple[str, int, str, str, int]]:
        """``(alert_id, sequence, op, outcome, received wall time in ns)`` of every entry ever received."""
        if not self.path.exists():
            return []
        with closing(self._connect()) as database:
            return database.execute(
                "SELECT alert_id, sequence, op, outcome, received_time_ns FROM receipts ORDER BY received_time_ns"
            ).fetchall()

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.executescript(_SCHEMA)
        return database


def _apply(database: sqlite3.Connection, batch_id: str, entry: AlertEntry, received: int) -> Outcome:
    facts = {
        "alert_id": entry.alert_id,
        "sequence": entry.sequence,
        "op": entry.op,
        "body": entry.body,
        "batch_id": batch_id,
        "received": received,
    }
    outcome: Outcome = "applied" if database.execute(_APPLY, facts).rowcount else "stale"
    receipt = (batch_id, entry.alert_id, entry.sequence, entry.op, outcome, received)
    database.execute("INSERT INTO receipts VALUES (?, ?, ?, ?, ?, ?)", receipt)
    return outcome


def _receipt(database: sqlite3.Connection, batch_id: str, entry: AlertEntry) -> Outcome:
    row = database.execute(
        "SELECT outcome FROM receipts WHERE batch_id = ? AND alert_id = ? AND sequence = ? AND op = ?",
        (batch_id, entry.alert_id, entry.sequence, entry.op),
    ).fetchone()
    if row is None:
        raise ValueError(f"batch {batch_id} was received without {entry.alert_id} {entry.sequence} {entry.op}")
    return "applied" if row[0] == "applied" else "stale"
