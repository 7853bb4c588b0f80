"""Replicas of the station state that can be separated, paused, frozen, killed and promoted, and made whole again."""

import os
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pg8000.native
from pg8000.exceptions import DatabaseError, InterfaceError

from sda_platform.ground.station_state import StationState
from sda_platform_tests.support.postgres_replicas import PostgresReplicas
from sda_platform_tests.support.stalling_proxy import StallingProxy

SERVERS = ("r0", "r1", "r2")
_PATIENCE_S = 60.0
# Nothing here loses power, so nothing has to reach the disk; a follower looks for its leader at once.
_SETTINGS = """
fsync = off
autovacuum = off
checkpoint_completion_target = 0
max_connections = 80
wal_retrieve_retry_interval = 50ms
"""


class StruckReplicas(PostgresReplicas):
    """A leader and two followers; clients and followers reach each through a proxy. Each client is a role."""

    def __init__(self, binaries: Path, directory: Path, clients: Collection[str]) -> None:
        self._proxies: dict[int, StallingProxy] = {}
        self._frozen: dict[int, list[int]] = {}
        self._killed: set[int] = set()
        self._paused: set[int] = set()
        super().__init__(binaries, directory, len(SERVERS), _SETTINGS)
        urls = [self.url(number, "sda") for number in range(len(SERVERS))]
        self.state = StationState(urls, timeout_s=1.0)
        try:
            self._prepare(StationState(urls, timeout_s=_PATIENCE_S), clients)
        except BaseException:  # no fixture has them yet, to end them
            self.stop()
            raise

    def _prepare(self, patient: StationState, clients: Collection[str]) -> None:
        """Make table and roles. The first commit waits until a follower has started and applied it."""
        with closing(patient):
            patient.create()
        with self.server(0) as leader:
            for number, client in enumerate(clients):
                leader.run(f"CREATE ROLE {client} LOGIN")
                leader.run(f"GRANT SELECT, INSERT, UPDATE ON station_state TO {client}")
                if number % 2:  # every second one may list the files of the log
                    leader.run(f"GRANT pg_monitor TO {client}")
        self.mend()

    def port_for_followers(self, number: int) -> int:
        """Where clients and followers reach the server ``number``: its proxy."""
        if number not in self._proxies:
            self._proxies[number] = StallingProxy(self.ports[number], SERVERS)
        return self._proxies[number].port

    def url(self, number: int, client: str) -> str:
        """The address of a server for this client."""
        return f"postgresql://{client}@127.0.0.1:{self.port_for_followers(number)}/postgres"

    def server(self, number: int) -> pg8000.native.Connection:
        """A connection past the proxy."""
        return pg8000.native.Connection(
            "sda", host="127.0.0.1", port=self.ports[number], database="postgres", timeout=10.0
        )

    def separate(self, number: int, peers: Collection[str]) -> None:
        """Keep exactly these clients and followers apart from the server ``number``."""
        self._proxies[number].separate(peers)

    def pause_replay(self, number: int) -> None:
        """Let a follower receive, and apply nothing."""
        self._paused.add(number)
        with self.server(number) as follower:
            follower.run("SELECT pg_wal_replay_pause()")

    def flicker_replay(self, number: int, seconds: Sequence[float]) -> None:
        """Pause and resume what a follower applies, in turn, each for these ``seconds``."""
        with self.server(number) as follower:
            for part, each in enumerate(seconds):
                follower.run(f"SELECT pg_wal_replay_{'resume' if part % 2 else 'pause'}()")
                time.sleep(each)
            follower.run("SELECT pg_wal_replay_resume()")

    def freeze_receiver(self, number: int) -> None:
        """Stop the process of a follower that receives."""
        with self.server(number) as follower:
            found = follower.run("SELECT pid FROM pg_stat_wal_receiver")
        self._freeze(number, [int(found[0][0])] if found else [])

    def freeze(self, number: int) -> None:
        """Stop every process of a server, as the pause of its machine does."""
        main = self._main_process(number)
        os.kill(main, signal.SIGSTOP)  # before its children are listed: it starts no more
        self._frozen.setdefault(number, []).append(main)
        self._freeze(number, _children(main))

    def thaw(self, number: int) -> None:
        """Let stopped processes of a server go on."""
        for process in reversed(self._frozen.pop(number, [])):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)

    def kill(self, number: int) -> None:
        """End the main process by SIGKILL; its children find out and follow it."""
        main = self._main_process(number)
        children = _children(main)
        os.kill(main, signal.SIGKILL)
        self._killed.add(number)
        _await(lambda: not any(map(_runs, (main, *children))), f"the end of r{number}")
        self._running.discard(number)

    def revive(self, number: int) -> None:
        """Start a server that was killed, as what it was."""
        if number in self._killed:
            self._killed.discard(number)
            _await(lambda: self._starts(number), f"the start of r{number}")

    def stop(self) -> None:
        """End all, frozen or not."""
        for number in range(len(self.ports)):
            self.thaw(number)
        super().stop()
        for proxy in self._proxies.values():
            proxy.close()

    def heal(self) -> None:
        """End every partition and pause, and start what was killed; no server changes its part."""
        for number, proxy in self._proxies.items():
            proxy.separate(())
            self.thaw(number)
            self.revive(number)
        for number in list(self._paused):
            with self.server(number) as server, suppress(DatabaseError):  # a leader has no replay
                server.run("SELECT pg_wal_replay_resume()")
            self._paused.discard(number)

    def mend(self) -> int:
        """Heal, and make former leaders and stray followers anew, until all follow; the leader's number."""
        self.heal()
        _await(lambda: bool(self._leaders()), "a leader")
        leads = max(self._leaders(), key=lambda number: self._leaders()[number])
        for number in set(range(len(self.ports))) - {leads}:
            if not self._follows(leads, number, patience_s=3.0):
                self.crash(number)
                _await(partial(self._copied, leads, number), f"a copy of r{leads} as r{number}")
                _await(partial(self._follows, leads, number, patience_s=1.0), f"r{number} to follow")
        return leads

    def synchronous(self, leader: int) -> int:
        """The follower whose acknowledgement this leader waits for."""
        with self.server(leader) as server:
            return SERVERS.index(server.run("SHOW synchronous_standby_names")[0][0])

    def _copied(self, leader: int, number: int) -> bool:
        with suppress(RuntimeError):
            self.copy(leader, number)
            return True
        return False

    def _starts(self, number: int) -> bool:
        """Whether a server starts: its shared memory may still be in use, or its process not be buried."""
        with suppress(RuntimeError):
            self.start(number)
            return True
        return False

    def _leaders(self) -> Mapping[int, int]:
        return {SERVERS.index(each.name): each.generation for each in self.state.statuses() if each.is_leader}

    def _follows(self, leader: int, number: int, patience_s: float) -> bool:
        """Whether a server has applied what the leader had at the beginning, as its follower."""
        end_s = time.monotonic() + patience_s
        with self.server(number) as server:
            if not server.run("SELECT pg_is_in_recovery()")[0][0]:
                return False
        with self.server(leader) as server:
            wanted = server.run("SELECT pg_current_wal_lsn()")[0][0]
            streams = f"SELECT 1 FROM pg_stat_replication WHERE application_name = 'r{number}'"
            while not server.run(f"{streams} AND state = 'streaming' AND replay_lsn >= '{wanted}'"):
                # A stray follower, which is further than the leader was at its promotion, gets there never.
                if time.monotonic() > end_s:
                    return False
                time.sleep(0.02)
        return True

    def _main_process(self, number: int) -> int:
        return int((self._data(number) / "postmaster.pid").read_text().split()[0])

    def _freeze(self, number: int, processes: Collection[int]) -> None:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
                self._frozen.setdefault(number, []).append(process)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(stat.parent.name))
    return found


def _await(holds: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        with suppress(OSError, InterfaceError, DatabaseError):
            if holds():
                return
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{what}: not within {_PATIENCE_S:.0f} s")
        time.sleep(0.02)
