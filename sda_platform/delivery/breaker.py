"""A circuit breaker whose state is a file: the next run's process knows what the last one learnt.

Closed, every attempt is admitted. After some failures in a row it opens, and attempts fail at once, so that a dead
subscriber holds no lane. After a pause one attempt, the probe, is admitted; its outcome closes or reopens it. The probe
has an id and a lease: a probe whose process died blocks nobody for longer, and the late outcome of an attempt that was
admitted in another state changes nothing (E23).
"""

import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sda_platform.delivery.subscriber import SubscriberUnavailable

_SCHEMA = """
CREATE TABLE IF NOT EXISTS breakers (
    name TEXT PRIMARY KEY, generation INTEGER NOT NULL, failures INTEGER NOT NULL, opened_s REAL, probe TEXT,
    probe_until_s REAL)
"""


class CircuitOpen(SubscriberUnavailable):
    """The last attempts failed and the pause is not over: nothing was sent."""


@dataclass(frozen=True)
class _State:
    """``generation`` counts openings and closings; times are seconds since 1970, None: not open, no probe."""

    generation: int = 0
    failures: int = 0
    opened_s: float | None = None
    probe: str | None = None
    probe_until_s: float | None = None


class Breaker:
    """The breaker of subscriber ``name``, kept in the SQLite file at ``path``."""

    def __init__(
        self,
        path: Path,
        name: str,
        *,
        failures_to_open: int = 5,
        pause_s: float = 30.0,
        probe_lease_s: float = 30.0,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self.path, self.name = path, name
        self._failures_to_open, self._pause_s, self._probe_lease_s = failures_to_open, pause_s, probe_lease_s
        self._now_s = now_s

    def admit(self) -> str:
        """Ask to attempt something; the answer identifies the attempt to `record`. Raises CircuitOpen."""
        with self._file() as database:
            state, now = self._load(database), self._now_s()
            if state.opened_s is None:
                return f"generation {state.generation}"
            wait_s = max(
                _left(state.opened_s + self._pause_s, now, self._pause_s),
                _left(state.probe_until_s or now, now, self._probe_lease_s),
            )
            if wait_s > 0:
                raise CircuitOpen(f"{self.name}: it did not answer lately; the next attempt is due in {wait_s:.0f} s")
            probe = str(uuid.uuid4())
            self._store(database, replace(state, probe=probe, probe_until_s=now + self._probe_lease_s))
            return probe

    def record(self, attempt: str, *, succeeded: bool) -> None:
        """Tell how an admitted attempt ended; that of another generation, or of a replaced probe, is ignored."""
        with self._file() as database:
            state = self._load(database)
            if state.opened_s is not None and attempt == state.probe:
                closed = _State(state.generation + 1)
                reopened = replace(state, opened_s=self._now_s(), probe=None, probe_until_s=None)
                self._store(database, closed if succeeded else reopened)
            elif state.opened_s is None and attempt == f"generation {state.generation}":
                failures = 0 if succeeded else state.failures + 1
                if failures < self._failures_to_open:
                    self._store(database, replace(state, failures=failures))
                else:
                    self._store(database, _State(state.generation + 1, failures, self._now_s()))

    @contextmanager
    def _file(self) -> Iterator[sqlite3.Connection]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as database, database:
            database.execute(_SCHEMA)
            database.execute("BEGIN IMMEDIATE")
            yield database

    def _load(self, database: sqlite3.Connection) -> _State:
        columns = "generation, failures, opened_s, probe, probe_until_s"
        row = database.execute(f"SELECT {columns} FROM breakers WHERE name = ?", (self.name,)).fetchone()
        return _State(*row) if row else _State()

    def _store(self, database: sqlite3.Connection, state: _State) -> None:
        values = (self.name, state.generation, state.failures, state.opened_s, state.probe, state.probe_until_s)
        database.execute("INSERT OR REPLACE INTO breakers VALUES (?, ?, ?, ?, ?, ?)", values)


def _left(until_s: float, now_s: float, at_most_s: float) -> float:
    """Seconds until then; 0 where a clock that was set back would make it longer than it ever should be."""
    left = until_s - now_s
    return left if left <= at_most_s else 0.0
