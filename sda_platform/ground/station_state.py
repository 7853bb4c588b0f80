"""Replicated state of stations: one PostgreSQL leader, a synchronous and any number of asynchronous followers.

A write is acknowledged when the synchronous follower has applied it (``synchronous_commit = remote_apply``). Reads go
where their mode allows. A promotion raises the generation; a former leader can acknowledge nothing, since its follower
has left it, and a client that has seen a newer generation refuses it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import pg8000.native
from pg8000.exceptions import DatabaseError, InterfaceError

from sda_platform.ground.read_routing import ReadMode, ReadSession, answering_replica
from sda_platform.lake.errors import Unavailable

MOST_LAG_S = 1.0
"""A follower that is later leaves the pool of bounded reads, and a check warns of it."""
_TIMEOUT_S = 5.0
_PROMOTION_S = 60.0
"""A promotion waits until the synchronous follower has found the new leader."""
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS station_state (key text PRIMARY KEY, value text NOT NULL)",
    "CREATE TABLE IF NOT EXISTS generations (generation bigint PRIMARY KEY, leader text NOT NULL)",
)
_STATUS = """
SELECT pg_is_in_recovery(),
       CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0'::pg_lsn,
       extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()),
       to_regclass('generations') IS NOT NULL
"""
_FAILURES = (OSError, InterfaceError, DatabaseError)


class OutcomeUnknown(Unavailable):
    """No acknowledgement came: the write may have been stored, or not."""


class FormerLeader(Unavailable):
    """The only leader that answers belongs to an older generation: a newer one was promoted."""


@dataclass(frozen=True)
class ReplicaStatus:
    """A server as it answers now. ``lag_bytes`` and ``lag_s`` count from the leader; of a leader they are 0."""

    name: str
    is_leader: bool
    generation: int
    position: int
    lag_bytes: int = 0
    lag_s: float = 0.0


class StationState:
    """Keys and values on the servers ``urls`` (postgresql://…), which are named r0, r1, … in this order."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        pick: Callable[[Sequence[str]], str] = random.choice,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self.urls = {f"r{number}": url for number, url in enumerate(urls)}
        self._pick, self._timeout_s, self._generation = pick, timeout_s, 0
        self._connections: dict[str, pg8000.native.Connection] = {}

    def create(self) -> None:
        """Make the tables at the leader, as generation 1, unless they exist."""
        leader = self._leader().name
        for statement in _SCHEMA:
            self._run(leader, statement)
        self._run(leader, "INSERT INTO generations VALUES (1, :leader) ON CONFLICT DO NOTHING", leader=leader)

    def statuses(self) -> list[ReplicaStatus]:
        """Every server that answers, with its lag behind the leader of the newest generation."""
        found = [status for name in self.urls if (status := self._status(name)) is not None]
        leader = self._newest(found)
        if leader is None:
            return found
        return [_behind(each, leader.position) for each in found]

    def write(self, key: str, value: str, session: ReadSession | None = None) -> int:
        """Store ``value``; the position after which every read has it.

        Raises OutcomeUnknown where no acknowledgement came in time, FormerLeader, Unavailable without a leader.
        """
        leader = self._leader().name
        put = "INSERT INTO station_state VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        try:
            self._run(leader, put, key=key, value=value)
            position = int(self._run(leader, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")[0][0])
        except _FAILURES as error:
            self._forget(leader)
            raise OutcomeUnknown(f"the write of {key} at {leader} has no acknowledgement: {error}") from None
        if session is not None:
            session.has_written(position)
        return position

    def read(self, key: str, mode: ReadMode, session: ReadSession) -> tuple[str | None, str]:
        """The value (None: there is none), and the name of who answered. Raises Unavailable, FormerLeader."""
        found = {each.name: each for each in self.statuses()}
        leader = self._leader(list(found.values())).name
        followers = {name: each.position for name, each in found.items() if not each.is_leader}
        late = {name for name, each in found.items() if each.lag_s > MOST_LAG_S}
        name = answering_replica(mode, session, followers, leader, self._pick, late)
        rows = self._run(name, "SELECT value FROM station_state WHERE key = :key", key=key)
        # That position was there before the read: the replica has at least that.
        session.has_read(found[name].position)
        return (str(rows[0][0]) if rows else None), name

    def promote(self, name: str, *, synchronous: str) -> int:
        """Make the follower ``name`` the leader of a new generation, which is returned; ``synchronous`` follows it.

        Choose the synchronous follower: it has every acknowledged write.
        """
        before = [each for each in self.statuses() if not each.is_leader]
        furthest = max(before, key=lambda each: each.position, default=None)
        candidate = next((each for each in before if each.name == name), None)
        if candidate is None or furthest is None or candidate.position < furthest.position:
            raise Unavailable(f"{name} is no follower that has everything which a follower has")
        patient = StationState(list(self.urls.values()), timeout_s=_PROMOTION_S)
        try:
            generation = patient._lead(name, synchronous, [each.name for each in before if each.name != name])
        finally:
            patient.close()
        self._generation = generation
        return generation

    def _lead(self, name: str, synchronous: str, others: Sequence[str]) -> int:
        """Promote ``name``, let the ``others`` follow it, and store the generation there and at ``synchronous``."""
        generation = int(self._run(name, "SELECT max(generation) FROM generations")[0][0]) + 1
        self._run(name, "SELECT pg_promote(true, 30)")
        self._run(name, f"ALTER SYSTEM SET synchronous_standby_names = '{synchronous}'")
        self._run(name, "SELECT pg_reload_conf()")
        for other in others:
            self._run(other, f"ALTER SYSTEM SET primary_conninfo = '{self._conninfo(name, other)}'")
            self._run(other, "SELECT pg_reload_conf()")
        self._run(name, "INSERT INTO generations VALUES (:number, :leader)", number=generation, leader=name)
        return generation

    def close(self) -> None:
        """Close the connections."""
        for name in list(self._connections):
            self._forget(name)

    def _leader(self, found: Sequence[ReplicaStatus] | None = None) -> ReplicaStatus:
        leader = self._newest(self.statuses() if found is None else found)
        if leader is None:
            raise Unavailable(f"no leader of the station state answers among {', '.join(self.urls)}")
        if leader.generation < self._generation:
            raise FormerLeader(f"{leader.name} leads generation {leader.generation}, but {self._generation} was seen")
        self._generation = leader.generation
        return leader

    def _newest(self, found: Sequence[ReplicaStatus]) -> ReplicaStatus | None:
        return max((each for each in found if each.is_leader), key=lambda each: each.generation, default=None)

    def _status(self, name: str) -> ReplicaStatus | None:
        try:
            is_follower, position, since_s, has_tables = self._run(name, _STATUS)[0]
            generation = self._run(name, "SELECT max(generation) FROM generations")[0][0] if has_tables else 0
        except _FAILURES:
            self._forget(name)
            return None
        # A follower that has applied no transaction yet does not know how late it is.
        lag_s = math.inf if since_s is None and is_follower else float(since_s or 0.0)
        return ReplicaStatus(name, not is_follower, int(generation or 0), int(position), lag_s=lag_s)

    def _run(self, name: str, statement: str, **values: object) -> list[Any]:
        if name not in self._connections:
            parts = urlsplit(self.urls[name])
            self._connections[name] = pg8000.native.Connection(
                unquote(parts.username or ""),
                host=parts.hostname or "127.0.0.1",
                port=parts.port or 5432,
                database=parts.path.lstrip("/") or None,
                password=unquote(parts.password or ""),
                timeout=self._timeout_s,
            )
        return list(self._connections[name].run(statement, **values) or [])

    def _conninfo(self, leader: str, follower: str) -> str:
        """How ``follower`` reaches ``leader``, quoted for libpq and within a literal of SQL."""
        parts = urlsplit(self.urls[leader])
        login = {"user": unquote(parts.username or ""), "password": unquote(parts.password or "")}
        values = {"host": parts.hostname, "port": parts.port or 5432, **login, "application_name": follower}
        quoted = (str(value).replace("\\", "\\\\").replace("'", "\\'") for value in values.values())
        return " ".join(f"{key}='{value}'" for key, value in zip(values, quoted, strict=True)).replace("'", "''")

    def _forget(self, name: str) -> None:
        connection = self._connections.pop(name, None)
        if connection is not None:
            with suppress(*_FAILURES):
                connection.close()


def _behind(status: ReplicaStatus, leader: int) -> ReplicaStatus:
    """``status`` with its lag; without missing bytes the age of its newest transaction says nothing."""
    missing = max(leader - status.position, 0) if not status.is_leader else 0
    lag_s = status.lag_s if missing else 0.0
    return ReplicaStatus(status.name, status.is_leader, status.generation, status.position, missing, lag_s)
