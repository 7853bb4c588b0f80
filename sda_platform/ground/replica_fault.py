"""The rehearsed lag of a follower of the station state: its check warns, and reads go where their mode promises."""

import secrets
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pg8000.native
from pg8000.exceptions import DatabaseError, InterfaceError

from sda_platform.ground.read_routing import ReadMode, ReadSession
from sda_platform.ground.rehearsal import Measured, Stopwatch
from sda_platform.ground.rehearsed_programs import free_ports, postgres_programs, run, running, user_of
from sda_platform.ground.replica_check import problems
from sda_platform.ground.station_state import StationState
from sda_platform.lake.errors import Unavailable

_READY_WITHIN_S: Final = 60.0
_LEADER, _FOLLOWER = "r0", "r1"
_KEY: Final = "antenna"


@dataclass(frozen=True)
class ReplicaLag:
    """A follower receives what its leader writes and applies none of it, for a while."""

    name: str = "replica lag"
    detect_within_s: float = 10.0
    recover_within_s: float = 30.0

    def rehearse(self, directory: Path) -> Measured:
        """Pause the follower, wait until it is late for the platform, and let it go on."""
        with _replicas(directory) as urls, closing(StationState(urls, timeout_s=5.0)) as state:
            session = ReadSession()
            _write_first(state)
            try:
                with _paused(urls[1]):
                    watch = Stopwatch()
                    state.write(_KEY, "after", session)
                    detected_s = watch.when(lambda: _is_late(state, session), self.detect_within_s)
                recovered_s = watch.when(lambda: _is_whole(state, "after"), self.recover_within_s)
            except (DatabaseError, InterfaceError) as error:
                raise Unavailable(f"the follower does not pause: {error}") from None
        return Measured(watch.started_ns, detected_s, recovered_s)


def _write_first(state: StationState) -> None:
    if Stopwatch().when(lambda: len(state.statuses()) == 2, _READY_WITHIN_S) is None:
        raise Unavailable("the rehearsed Postgres servers do not answer")
    state.create()
    state.write(_KEY, "before")
    if Stopwatch().when(lambda: _is_whole(state, "before"), _READY_WITHIN_S) is None:
        raise Unavailable("the rehearsed follower does not follow")


def _is_late(state: StationState, session: ReadSession) -> bool:
    """Whether the check warns of the follower, and no read that promises more is answered by it."""
    is_seen = any(each.startswith(f"{_FOLLOWER} is") for each in problems(2, state.statuses()))
    found = (state.read(_KEY, ReadMode.BOUNDED, ReadSession()), state.read(_KEY, ReadMode.SESSION, session))
    return is_seen and found == (("after", _LEADER), ("after", _LEADER))


def _is_whole(state: StationState, value: str) -> bool:
    """Whether the check finds nothing, and the follower answers with the newest value."""
    return not problems(2, state.statuses()) and state.read(_KEY, ReadMode.BOUNDED, ReadSession()) == (value, _FOLLOWER)


@contextmanager
def _paused(url: str) -> Iterator[None]:
    parts = urlsplit(url)
    with closing(
        pg8000.native.Connection(
            "sda", host="127.0.0.1", port=parts.port or 0, database="postgres", password=parts.password, timeout=10.0
        )
    ) as follower:
        follower.run("SELECT pg_wal_replay_pause()")
        state = "SELECT pg_get_wal_replay_pause_state()"
        if Stopwatch().when(lambda: follower.run(state)[0][0] == "paused", 10.0) is None:
            raise Unavailable("the rehearsed follower does not pause")
        try:
            yield
        finally:
            follower.run("SELECT pg_wal_replay_resume()")


@contextmanager
def _replicas(directory: Path) -> Iterator[Sequence[str]]:
    """The addresses of a leader and a follower that run meanwhile; both demand a password."""
    programs, user = postgres_programs(), user_of("postgres")
    password, secret = secrets.token_urlsafe(16), directory / "password"
    secret.touch(mode=0o600)
    secret.write_text(password)
    for path in (directory, secret) if user else ():
        shutil.chown(path, user["user"], user["group"])
    ports = free_ports(2)
    leader, follower = directory / _LEADER, directory / _FOLLOWER
    made = (programs / "initdb", "-D", leader, "-U", "sda", "-A", "scram-sha-256", f"--pwfile={secret}", "-N")
    run(made, {}, user)
    with ExitStack() as ending:
        ending.enter_context(running(_server(programs, leader, ports[0]), user, signal.SIGQUIT))
        source = ("-h", "127.0.0.1", "-p", str(ports[0]), "-U", "sda", "-w", "-c", "fast", "-X", "stream", "-R", "-N")
        _copy((programs / "pg_basebackup", *source, "-D", follower), {"PGPASSWORD": password}, user)
        ending.enter_context(running(_server(programs, follower, ports[1]), user, signal.SIGQUIT))
        yield [f"postgresql://sda:{password}@127.0.0.1:{port}/postgres" for port in ports]


def _server(programs: Path, data: Path, port: int) -> Sequence[str | Path]:
    options = {"unix_socket_directories": "", "shared_buffers": "16MB", "fsync": "off"}
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    return programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), *settings


def _copy(command: Sequence[str | Path], environment: Mapping[str, str], user: Mapping[str, Any]) -> None:
    """Copy the leader as soon as it answers."""
    reasons = list[str]()

    def is_copied() -> bool:
        try:
            run(command, environment, user)
        except Unavailable as error:
            reasons.append(str(error))
            return False
        return True

    if Stopwatch().when(is_copied, _READY_WITHIN_S) is None:
        raise Unavailable(reasons[-1])
