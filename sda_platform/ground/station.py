"""A simulated station: it executes each command at most once, for the sender with the newest token.

Its memory is durable. The id of a command is stored before its execution, so a crash in between loses the command
rather than executing it twice. The next answer says so. Its own clock decides what has expired. It grants the tokens
itself, or takes those of leases. Each promotion raises the number, and a sender with a lower one is refused. It
is also the witness of heartbeats: an uplink that cannot reach the station is of no use to it.
"""

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

# Without keys anyone may send a heartbeat under any name.
_MOST_UPLINKS: Final = 16
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS commands (command_id TEXT PRIMARY KEY, token INTEGER NOT NULL, sender TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS executions (number INTEGER PRIMARY KEY, command_id TEXT NOT NULL, sender TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS pointings (command_id TEXT PRIMARY KEY, azimuth_deg REAL, elevation_deg REAL);
CREATE TABLE IF NOT EXISTS reports (
    command_id TEXT, report TEXT, time_ns INTEGER NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (command_id, report)
);
CREATE TABLE IF NOT EXISTS requests (command_id TEXT PRIMARY KEY, request_id INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS promotions (token INTEGER PRIMARY KEY, uplink TEXT NOT NULL);
"""


class ExecutionFailed(Exception):
    """The station could not execute a command; the text says why."""


class DurableStation:
    """A station that executes each command once; its memory is in SQLite, synchronised before each answer."""

    def __init__(
        self, path: Path, clock_ns: Callable[[], int], execute: Callable[[dict[str, Any]], None] = lambda _: None
    ) -> None:
        """``execute`` does what a command says; it may raise ExecutionFailed."""
        self.clock_ns, self._execute = clock_ns, execute
        self._lock, self._beats = threading.Lock(), dict[str, tuple[int, float]]()
        # Heartbeats wait neither for a command nor for the disk.
        self._beats_lock = threading.Lock()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.executescript(_SCHEMA)
        newest = self._database.execute("SELECT token, uplink FROM promotions ORDER BY token DESC LIMIT 1").fetchone()
        self._newest: tuple[int, str] = tuple(newest or (0, ""))

    def receive(self, command: dict[str, Any]) -> dict[str, Any]:
        """Answer with the ``outcome``, and with ``times_ns`` (accepted, started, finished) of the station's own clock.

        The outcome is ``executed``, ``failed`` with a ``reason``, ``repeated``, ``lost``, ``expired`` or
        ``stale_sender``: without effect, all but the first two. A repetition has the times of the first one, and its
        ``first_request_id``. ``stale_sender`` is not to be acknowledged. ``lost``: it crashed after it stored the id
        and before it had executed the command, and will never execute it.
        """
        with self._lock:
            token, _ = self._newest
            command_id, now_ns = command["command_id"], self.clock_ns()
            if command["token"] < token:
                return {"outcome": "stale_sender"}
            if self._has("commands", command_id):
                outcome = "repeated" if self._has("executions", command_id) else "lost"
                first = self._database.execute("SELECT request_id FROM requests WHERE command_id = ?", (command_id,))
                (first_request_id,) = first.fetchone() or (command["request_id"],)
                return {**self._reported(command_id, outcome), "first_request_id": first_request_id}
            if command["expires_time_ns"] <= now_ns:
                return {"outcome": "expired", "times_ns": {"finished": now_ns}}
            self._database.execute("INSERT OR REPLACE INTO requests VALUES (?, ?)", (command_id, command["request_id"]))
            row = command_id, command["token"], command["sender"]
            self._database.execute("INSERT INTO commands VALUES (?, ?, ?)", row)
            self._report(command_id, "accepted", now_ns)
            return self._reported(command_id, self._executed(command))

    def _executed(self, command: dict[str, Any]) -> str:
        command_id = command["command_id"]
        self._report(command_id, "started", self.clock_ns())
        try:
            self._execute(command)
        except ExecutionFailed as reason:
            self._report(command_id, "finished", self.clock_ns(), str(reason) or "failed")
            return "failed"
        if command.get("azimuth_deg") is not None:
            pointing = command_id, command["azimuth_deg"], command["elevation_deg"]
            self._database.execute("INSERT INTO pointings VALUES (?, ?, ?)", pointing)
        executed = command_id, command["sender"]
        self._database.execute("INSERT INTO executions (command_id, sender) VALUES (?, ?)", executed)
        self._report(command_id, "finished", self.clock_ns())
        return "executed"

    def _report(self, command_id: str, report: str, time_ns: int, reason: str = "") -> None:
        self._database.execute("INSERT INTO reports VALUES (?, ?, ?, ?)", (command_id, report, time_ns, reason))

    def _reported(self, command_id: str, outcome: str) -> dict[str, Any]:
        """Return the answer with what was reported of a command; one that has failed stays so."""
        rows = self._database.execute("SELECT report, time_ns, reason FROM reports WHERE command_id = ?", (command_id,))
        found = {report: (time_ns, reason) for report, time_ns, reason in rows}
        reason = "; ".join(reason for _, reason in found.values() if reason)
        times_ns = {report: time_ns for report, (time_ns, _) in found.items()}
        return {"outcome": "failed" if reason else outcome, "times_ns": times_ns, "reason": reason}

    def promote(self, uplink: str, above: int, offered: int | None = None) -> int:
        """A new token for ``uplink``; 0 where another one was promoted since the token ``above``.

        ``offered``: the token of the uplink's lease, which must be newer than every one before.
        """
        with self._lock:
            newest, _ = self._newest
            token = newest + 1 if offered is None else offered
            if newest != above or token <= newest:
                return 0
            self._database.execute("INSERT INTO promotions VALUES (?, ?)", (token, uplink))
            self._newest = token, uplink
            return token

    def heartbeat(self, uplink: str) -> None:
        """An uplink is alive and reaches the station."""
        with self._beats_lock:
            self._beats[uplink] = self._beats.get(uplink, (0, 0.0))[0] + 1, time.monotonic()
            if len(self._beats) > _MOST_UPLINKS:
                del self._beats[min(self._beats, key=lambda name: self._beats[name][1])]

    def state(self) -> dict[str, Any]:
        """Return the newest token, its holder, and of each uplink the number of heartbeats and the time since
        the last.
        """
        token, active = self._newest
        with self._beats_lock:
            now_s = time.monotonic()
            silence_s = {name: now_s - at_s for name, (_, at_s) in self._beats.items()}
            beats = {name: count for name, (count, _) in self._beats.items()}
        return {"token": token, "active": active, "silence_s": silence_s, "beats": beats}

    def _has(self, table: str, command_id: str) -> bool:
        found = self._database.execute(f"SELECT 1 FROM {table} WHERE command_id = ?", (command_id,))
        return found.fetchone() is not None
