"""A Postgres leader with followers in directories of their own: the first follower is synchronous."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sda_platform.runtime.processes import free_port
from sda_platform_tests.support.cutting_proxy import CuttingProxy
from sda_platform_tests.support.postgres_server import PASSWORD, required_binaries

_START_S = 60


class PostgresReplicas:
    """Servers r0 (the first leader), r1 (synchronous), r2, … on free ports of this machine."""

    def __init__(self, binaries: Path, directory: Path, count: int, settings: str = "") -> None:
        self._binaries, self._directory = binaries, directory
        self._ports = [free_port(0) for _ in range(count)]
        self._running: set[int] = set()
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(directory, "postgres")
        self._as_owner("initdb", "-D", self._data(0), "-U", "sda", "-A", "trust", "-N")
        self._as_owner(
            "sh", "-c",
            f"cat >> {self._data(0)}/postgresql.conf <<'END'\nsynchronous_standby_names = 'r1'\n"
            f"synchronous_commit = remote_apply\nshared_buffers = 16MB\nwal_keep_size = 64MB\n{settings}\nEND",
            is_own=False,
        )  # fmt: skip
        try:
            self.start(0)
            for number in range(1, count):
                self.copy(0, number)
        except BaseException:
            self.stop()
            raise

    @property
    def ports(self) -> list[int]:
        """The ports in the order of their names."""
        return list(self._ports)

    @property
    def urls(self) -> list[str]:
        """The addresses in the order of their names."""
        return [f"postgresql://sda@127.0.0.1:{port}/postgres" for port in self._ports]

    def port_for_followers(self, number: int) -> int:
        """Where followers reach the server ``number``."""
        return self._ports[number]

    def copy(self, leader: int, number: int) -> None:
        """Make the server ``number`` anew from a base backup of the ``leader``, which it follows; it must not run."""
        shutil.rmtree(self._data(number), ignore_errors=True)
        port, follows = self._ports[leader], self.port_for_followers(leader)
        source = ("-h", "127.0.0.1", "-p", str(port), "-U", "sda", "-d", f"application_name=r{number}")
        # Nothing here loses power before the copy is on the disk.
        self._as_owner("pg_basebackup", *source, "-D", self._data(number), "-c", "fast", "-X", "stream", "-R", "-N")
        if follows != port:
            settings = self._data(number) / "postgresql.auto.conf"
            self._as_owner("sed", "-i", f"s/port={port}/port={follows}/", settings, is_own=False)
        self.start(number)

    def start(self, number: int) -> None:
        """Begin to serve."""
        options = f"-h 127.0.0.1 -p {self._ports[number]} -k {self._data(number)}"
        log = self._directory / f"r{number}.log"
        start = ("-D", self._data(number), "-l", log, "-o", options, "-w", "-t", str(_START_S), "start")
        self._as_owner("pg_ctl", *start)
        self._running.add(number)

    def crash(self, number: int) -> None:
        """End as a power loss does."""
        self._as_owner("pg_ctl", "-D", self._data(number), "-m", "immediate", "-w", "stop")
        self._running.discard(number)

    def promote(self, number: int) -> None:
        """Make a follower the leader, which waits for no follower of its own."""
        alone = f"echo \"synchronous_standby_names = ''\" >> {self._data(number)}/postgresql.conf"
        self._as_owner("sh", "-c", alone, is_own=False)
        self._as_owner("pg_ctl", "-D", self._data(number), "reload")
        self._as_owner("pg_ctl", "-D", self._data(number), "-w", "-t", str(_START_S), "promote")

    def stop(self) -> None:
        """End all."""
        for number in sorted(self._running, reverse=True):
            self.crash(number)

    def _data(self, number: int) -> Path:
        return self._directory / f"r{number}"

    def _as_owner(self, program: str, *arguments: str | Path, is_own: bool = True) -> None:
        rise = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        command = [*rise, str(self._binaries / program) if is_own else program, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * _START_S, cwd="/", check=False)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr or done.stdout}")


@contextmanager
def postgres_replicas(binaries: Path, directory: Path, count: int) -> Iterator[PostgresReplicas]:
    """Servers that run meanwhile; their data is removed at the end."""
    replicas = PostgresReplicas(binaries, directory, count)
    try:
        yield replicas
    finally:
        replicas.stop()
        shutil.rmtree(directory, ignore_errors=True)


class MovingPostgres:
    """A leader, its synchronous standby, and before both an address that moves with the leader.

    It can be stopped and started as a single server can.
    """

    def __init__(self, servers: PostgresReplicas, address: CuttingProxy) -> None:
        self._servers, self._address = servers, address
        self._leader = 0

    @property
    def url(self) -> str:
        """The address, as the setting of a subscriber; the servers ask for no password, and take any."""
        return f"postgresql://sda:{PASSWORD}@127.0.0.1:{self._address.port}/postgres"

    def start(self) -> None:
        """Let the leader serve again."""
        self._servers.start(self._leader)

    def stop(self) -> None:
        """End the leader as a power loss does."""
        self._servers.crash(self._leader)

    def lose_leader(self) -> None:
        """End the leader, and lead the address to its standby, which takes no writes before `promote`."""
        self.stop()
        self._leader = 1
        self._address.redirect(self._servers.ports[self._leader])

    def promote(self) -> None:
        """Let the standby take writes."""
        self._servers.promote(self._leader)


@contextmanager
def moving_postgres() -> Iterator[MovingPostgres]:
    """A leader and its standby in a directory of their own; skips the test where no server is installed."""
    binaries = required_binaries()
    with (
        tempfile.TemporaryDirectory(prefix="sda-postgres-", ignore_cleanup_errors=True) as place,
        postgres_replicas(binaries, Path(place), 2) as servers,
        CuttingProxy(servers.ports[0]) as address,
    ):
        yield MovingPostgres(servers, address)
