"""Replicated state of stations: one PostgreSQL leader, a synchronous and any number of asynchronous followers.

A write is acknowledged when the synchronous follower has applied it (``synchronous_commit = remote_apply``). Reads go
where their mode allows. A generation is a timeline of PostgreSQL, so a promotion raises it in one step with itself. A
former leader can acknowledge nothing, since its follower has left it, and a client that has seen a newer generation
refuses it.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pg8000.native
from pg8000.exceptions import DatabaseError, InterfaceError

from sda_platform.ground.promotion import ReplicaStatus, newest_leaders, why_unsafe
from sda_platform.ground.read_routing import ReadMode, ReadSession, answering_replica
from sda_platform.lake.errors import Unavailable
from sda_platform.orchestration.postgres_tls import tls_of

MOST_LAG_S = 1.0
"""A follower that is later leaves the pool of bounded reads, and a check warns of it."""
_TIMEOUT_S = 5.0
_PROMOTION_S = 60.0
"""A promotion waits until the synchronous follower has found the new leader."""
_LOOK_S = 0.01
_SCHEMA = "CREATE TABLE IF NOT EXISTS station_state (key text PRIMARY KEY, value text NOT NULL)"
_POSITION = """
CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0'::pg_lsn
"""
_STATUS = f"""
SELECT pg_is_in_recovery(), {_POSITION}, extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()),
       CASE WHEN pg_is_in_recovery() THEN ({{followed}})
            ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END,
       current_setting('synchronous_standby_names')
"""
# The generation of a follower. It receives none while its leader is silent; its log's files show the newest that it
# has seen, to a role that may list them: every role that may promote, and members of pg_monitor.
_MAY_LIST = "SELECT has_function_privilege('pg_ls_waldir()', 'EXECUTE')"
_SEEN = "SELECT max(('x' || left(name, 8))::bit(32)::int) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{8}'"
_RECEIVED = "SELECT received_tli FROM pg_stat_wal_receiver"
# One statement: its snapshot is taken first, so the position has everything that the value shows. It shows every
# transaction before the oldest that has not ended.
_READ = f"""
SELECT (SELECT value FROM station_state WHERE key = :key), {_POSITION},
       pg_snapshot_xmin(pg_current_snapshot())::text::bigint
"""
# A commit that changes nothing: it ends when the synchronous follower has applied it.
_ACKNOWLEDGED = "SELECT pg_logical_emit_message(true, 'station_state', ''), pg_current_xact_id()::text::bigint"
_FAILURES = (OSError, InterfaceError, DatabaseError)


class OutcomeUnknown(Unavailable):
    """No acknowledgement came: the write may have been stored, or not."""


class FormerLeader(Unavailable):
    """The only leader that answers belongs to an older generation: a newer one was promoted."""


class StationState:
    """Keys and values on the servers ``urls`` (postgresql://…), which are named r0, r1, … in this order.

    Beyond this machine a connection has TLS and the server is verified, unless the address says otherwise
    (``sslmode``).
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        pick: Callable[[Sequence[str]], str] = random.choice,
        timeout_s: float = _TIMEOUT_S,
        most_lag_s: float = MOST_LAG_S,
    ) -> None:
        self.urls = {f"r{number}": url for number, url in enumerate(urls)}
        self._pick, self._timeout_s, self._most_lag_s, self._generation = pick, timeout_s, most_lag_s, 0
        self._connections: dict[str, pg8000.native.Connection] = {}
        self._followed: dict[str, str] = {}

    def create(self) -> None:
        """Make the table at the leader, unless it exists."""
        self._run(self._leader().name, _SCHEMA)

    def statuses(self) -> list[ReplicaStatus]:
        """Every server that answers, with its lag behind the leader of the newest generation."""
        found = [status for name in self.urls if (status := self._status(name)) is not None]
        leaders = newest_leaders(found)
        return [_behind(each, leaders[0].position) for each in found] if leaders else found

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
        """Return the value (None: there is none), and the name of who answered. Raises Unavailable, FormerLeader.

        Where a promise rests on the leader, its answer waits for the synchronous follower: a former leader has none.
        """
        found = {each.name: each for each in self.statuses()}
        leader = self._leader(list(found.values())).name
        seen = session.needs(mode)
        followers = {name: each.position for name, each in found.items() if not each.is_leader}
        late = {name for name, each in found.items() if each.lag_s > self._most_lag_s}
        name = answering_replica(mode, session, followers, leader, self._pick, late)
        if found[name].position < seen:
            at = f"{name} is at position {found[name].position}"
            raise Unavailable(f"{at}, and the session has seen {seen}: a former leader?")
        try:
            has_to_settle = name == leader and seen > 0
            value, position = self._settled(name, key) if has_to_settle else self._run(name, _READ, key=key)[0][:2]
            if name == leader and mode is not ReadMode.ANY_FOLLOWER:
                self._run(name, _ACKNOWLEDGED)
        except _FAILURES as error:
            self._forget(name)
            raise Unavailable(f"{name} did not answer the read of {key}: {error}; read again") from None
        session.has_read(int(position))
        return value, name

    def _settled(self, name: str, key: str) -> tuple[str | None, int]:
        """What the leader has, with all that a follower may already show.

        A follower shows a write when it has applied it, the leader only when the synchronous one has.
        """
        ours = int(self._run(name, _ACKNOWLEDGED)[0][1])
        end_s = time.monotonic() + self._timeout_s
        while True:
            value, position, oldest = self._run(name, _READ, key=key)[0]
            # Acknowledged ones end a moment later, each by its own process.
            if int(oldest) >= ours:
                return value, int(position)
            if time.monotonic() > end_s:
                raise TimeoutError("an earlier transaction does not end")
            time.sleep(_LOOK_S)

    def promote(self, name: str, *, synchronous: str, accept_loss: bool = False) -> int:
        """Make the follower ``name`` the leader of a new generation, which is returned; ``synchronous`` follows it.

        Repeat a promotion that was interrupted: it goes on. Raises Unavailable where ``name`` may lack an acknowledged
        write, unless ``accept_loss``; and where the outcome is not what was asked.
        """
        # It is asked last: while a leader works, it has by then what the others had, unless something holds it up.
        before = [(each.name == name and self._status(name)) or each for each in self.statuses()]
        reason = why_unsafe(name, synchronous, before, len(self.urls))
        can_lead = {each.name for each in before if not each.is_leader or each in newest_leaders(before)}
        if reason and not (accept_loss and name in can_lead and synchronous in set(self.urls) - {name}):
            raise Unavailable(f"{name} is not promoted: {reason}")
        patient = type(self)(list(self.urls.values()), timeout_s=_PROMOTION_S)
        try:
            self._generation = patient._lead(name, synchronous, before)
        except _FAILURES as error:
            raise Unavailable(f"the promotion of {name} did not end: {error}; see the replicas and repeat it") from None
        finally:
            patient.close()
        return self._generation

    def _lead(self, name: str, synchronous: str, before: Sequence[ReplicaStatus]) -> int:
        """Let the followers follow ``name``, promote it, and wait for ``synchronous`` where it answers."""
        # Before it leads: nothing is acknowledged without the follower, whenever this process ends.
        self._configure(name, "synchronous_standby_names", synchronous)
        self._configure(name, "default_transaction_read_only", "off")
        # They would otherwise go on with what the former leader logs by itself, and could not follow a new generation.
        for other in (each for each in before if each.name != name and not each.is_leader):
            self._configure(other.name, "primary_conninfo", self._conninfo(name, other.name))
        if not self._run(name, "SELECT NOT pg_is_in_recovery() OR pg_promote(true, 30)")[0][0]:
            raise Unavailable(f"{name} does not lead after 30 s; see the replicas and repeat it")
        for other in (each for each in before if each.name != name and each.is_leader):
            self._configure(other.name, "default_transaction_read_only", "on")
        if synchronous in {each.name for each in before}:
            self._run(name, _ACKNOWLEDGED)
        # Only those are asked that answered before: a former leader that hangs would be waited for.
        return self._leader([found for each in before if (found := self._status(each.name))]).generation

    def _configure(self, name: str, setting: str, value: str) -> None:
        self._run(name, f"ALTER SYSTEM SET {setting} = '{value}'")
        self._run(name, "SELECT pg_reload_conf()")

    def close(self) -> None:
        """Close the connections."""
        for name in list(self._connections):
            self._forget(name)

    def _leader(self, found: Sequence[ReplicaStatus] | None = None) -> ReplicaStatus:
        found = self.statuses() if found is None else found
        leaders = newest_leaders(found)
        if former := [] if leaders else [each for each in found if each.is_leader]:
            seen = max(each.generation for each in found)
            raise FormerLeader(f"{former[0].name} leads generation {former[0].generation}, but {seen} was seen")
        if not leaders:
            raise Unavailable(f"no leader of the station state answers among {', '.join(self.urls)}")
        if len(leaders) > 1:
            names = " and ".join(each.name for each in leaders)
            raise Unavailable(f"{names} lead generation {leaders[0].generation}: stop all but the one that is wanted")
        if leaders[0].generation < self._generation:
            newest = f"generation {leaders[0].generation}, but {self._generation} was seen"
            raise FormerLeader(f"{leaders[0].name} leads {newest}")
        self._generation = leaders[0].generation
        return leaders[0]

    def _status(self, name: str) -> ReplicaStatus | None:
        try:
            if name not in self._followed:
                self._followed[name] = _SEEN if self._run(name, _MAY_LIST)[0][0] else _RECEIVED
            is_follower, position, since_s, generation, synchronous = self._run(
                name, _STATUS.format(followed=self._followed[name])
            )[0]
        except _FAILURES:
            self._forget(name)
            return None
        # A follower that has applied no transaction yet does not know how late it is.
        lag_s = math.inf if since_s is None and is_follower else float(since_s or 0.0)
        return ReplicaStatus(
            name, not is_follower, generation or 0, int(position), lag_s=lag_s, synchronous=synchronous
        )

    def _run(self, name: str, statement: str, **values: object) -> list[Any]:
        if name not in self._connections:
            parts = urlsplit(self.urls[name])
            host = parts.hostname or "127.0.0.1"
            self._connections[name] = pg8000.native.Connection(
                unquote(parts.username or ""),
                host=host,
                port=parts.port or 5432,
                database=parts.path.lstrip("/") or None,
                password=unquote(parts.password or ""),
                timeout=self._timeout_s,
                ssl_context=tls_of(host, parts.query, "SDA_STATION_STATE"),
            )
        return list(self._connections[name].run(statement, **values) or [])

    def _conninfo(self, leader: str, follower: str) -> str:
        """Return how ``follower`` reaches ``leader``, quoted for libpq and within a literal of SQL."""
        parts = urlsplit(self.urls[leader])
        login = {"user": unquote(parts.username or ""), "password": unquote(parts.password or "")}
        stated = {name: value for name, value in parse_qsl(parts.query) if name == "sslmode"}
        values = {"host": parts.hostname, "port": parts.port or 5432, **login, **stated, "application_name": follower}
        quoted = (str(value).replace("\\", "\\\\").replace("'", "\\'") for value in values.values())
        return " ".join(f"{key}='{value}'" for key, value in zip(values, quoted, strict=True)).replace("'", "''")

    def _forget(self, name: str) -> None:
        self._followed.pop(name, None)
        connection = self._connections.pop(name, None)
        if connection is not None:
            with suppress(*_FAILURES):
                connection.close()


def _behind(status: ReplicaStatus, leader: int) -> ReplicaStatus:
    """``status`` with its lag; without missing bytes the age of its newest transaction says nothing."""
    missing = max(leader - status.position, 0) if not status.is_leader else 0
    return replace(status, lag_bytes=missing, lag_s=status.lag_s if missing else 0.0)
