"""A real etcd cluster on loopback whose members can be separated, stopped and killed, and have clocks of their own.

The members reach each other through proxies. A proxy finds out by /proc which member a connection comes from, since
members dial each other in both directions and a partition must cut both. Nothing of it needs a privilege.
"""

import re
import resource
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Thread

import httpx

from sda_platform.runtime.processes import free_port
from sda_platform_tests.support import stepped_clock
from sda_platform_tests.support.etcd_server import etcd_binary

# On a machine with far more to do than it can, an election takes a minute.
_START_S = 180.0
_PATIENCE = ("--heartbeat-interval", "200", "--election-timeout", "2000")
"""For a busy machine: ten heartbeats an election timeout."""
_DAMAGED_BYTES = 16


class PeerProxy:
    """Passes on connections to one member, from those that are not separated from it."""

    def __init__(self, cluster: "EtcdCluster", target: str, port: int) -> None:
        self._cluster, self._target, self._to = cluster, target, ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._lock = Lock()
        self._open: list[tuple[str, socket.socket, socket.socket]] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        Thread(target=self._accept, daemon=True).start()

    def cut_separated(self) -> None:
        """Close the connections of members that are separated now."""
        with self._lock:
            for sender, *ends in self._open:
                if not self._cluster.reaches(sender, self._target):
                    for end in ends:
                        _shut(end)

    def close(self) -> None:
        """Accept no more."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                source, address = self._listener.accept()
                sender = self._cluster.sender_at(address[1])
                if not self._cluster.reaches(sender, self._target):
                    source.close()
                    continue
                try:
                    sink = socket.create_connection(self._to, timeout=1.0)
                except OSError:
                    source.close()
                    continue
                sink.settimeout(None)
                with self._lock:
                    self._open.append((sender, source, sink))
                Thread(target=self._carry, args=(sender, source, sink), daemon=True).start()
                self.cut_separated()

    def _carry(self, sender: str, source: socket.socket, sink: socket.socket) -> None:
        """Pass on bytes in both directions until the connection has ended, and close it."""
        back = Thread(target=_pump, args=(sink, source), daemon=True)
        back.start()
        _pump(source, sink)
        back.join()
        with self._lock:
            self._open.remove((sender, source, sink))
        source.close()
        sink.close()


class EtcdCluster:
    """Members n0, n1, … with data under ``directory``; `client` calls go to each of them directly."""

    def __init__(self, directory: Path, size: int) -> None:
        self.names = tuple(f"n{number}" for number in range(size))
        self._directory, self._group = directory, dict[str, int]()
        self._ports = {name: (free_port(0), free_port(0)) for name in self.names}
        self._proxies = {name: PeerProxy(self, name, peer) for name, (_, peer) in self._ports.items()}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.clocks: dict[str, stepped_clock.SteppedClock] = {}
        """The wall clocks of members that have their own."""

    @property
    def endpoints(self) -> dict[str, str]:
        """The address for clients of each member."""
        return {name: f"http://127.0.0.1:{client}" for name, (client, _) in self._ports.items()}

    def start(self, name: str, *, own_clock: bool = False) -> None:
        """Start a member, with the data that it had; with its ``own_clock`` each read of it takes a little longer."""
        client, peer = (f"http://127.0.0.1:{port}" for port in self._ports[name])
        members = ",".join(f"{each}={proxy.url}" for each, proxy in self._proxies.items())
        command = [
            str(etcd_binary()), "--name", name, "--data-dir", str(self._directory / name), *_PATIENCE,
            "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", self._proxies[name].url, "--initial-cluster", members, "--pre-vote",
        ]  # fmt: skip
        with (self._directory / f"{name}.log").open("ab") as log:
            if own_clock:
                self.processes[name], self.clocks[name] = stepped_clock.started(command, stdout=log, stderr=log)
            else:
                self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def partition(self, *groups: Iterable[str]) -> None:
        """Separate the groups from each other in both directions; members in none form one together."""
        self._group = {name: number for number, group in enumerate(groups, start=1) for name in group}
        for proxy in self._proxies.values():
            proxy.cut_separated()

    def heal(self) -> None:
        """Connect all members again, and let stopped ones go on."""
        self._group = {}
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)

    def pause(self, name: str) -> None:
        """Stop a member as a long pause does; `heal` lets it go on."""
        self.processes[name].send_signal(signal.SIGSTOP)

    def fill_disk(self, name: str) -> None:
        """Let every write to a file of a member fail from now on, as on a full disk; it must end, and is then down."""
        resource.prlimit(self.processes[name].pid, resource.RLIMIT_FSIZE, (0, 0))
        self.processes[name].wait(_START_S)

    def damage_log(self, name: str) -> Path:
        """Invert the last bytes of a record in the middle of the log of a member that is down; returns the sound log.

        They belong to what the record's checksum covers. A damaged length would look like a write that a crash cut
        off, and etcd repairs this by itself: it drops the record and all after it.
        """
        (log,) = sorted((self._directory / name / "member" / "wal").glob("*.wal"))[-1:]
        sound = log.read_bytes()
        copy = self._directory / f"{name}.sound"
        copy.write_bytes(sound)
        ends = [end for end, length in _records(sound) if length > 2 * _DAMAGED_BYTES]
        at = ends[len(ends) // 2] - _DAMAGED_BYTES
        damaged = bytes(each ^ 0xFF for each in sound[at : at + _DAMAGED_BYTES])
        log.write_bytes(sound[:at] + damaged + sound[at + _DAMAGED_BYTES :])
        return copy

    def repair_log(self, name: str, copy: Path) -> None:
        """Put the sound log of a member that is down back."""
        (log,) = sorted((self._directory / name / "member" / "wal").glob("*.wal"))[-1:]
        copy.replace(log)

    def refuses_to_start(self, name: str) -> bool:
        """Whether a member that is started ends with an error by itself."""
        self.start(name)
        try:
            return self.processes[name].wait(_START_S / 2) != 0
        except subprocess.TimeoutExpired:
            return False

    def kill(self, name: str) -> None:
        """End a member as a crash does."""
        self.processes[name].kill()
        self.processes[name].wait()

    def leader(self, among: Iterable[str] | None = None, *, other_than: str = "") -> str:
        """The leader by the members ``among`` (all), once there is one; AssertionError after three minutes."""
        deadline = time.monotonic() + _START_S
        while True:
            for name in among or self.names:
                with suppress(httpx.HTTPError, ValueError, KeyError):
                    status = httpx.post(f"{self.endpoints[name]}/v3/maintenance/status", json={}, timeout=1.0).json()
                    if status["leader"] == status["header"]["member_id"] and name != other_than:
                        return name
            assert time.monotonic() < deadline, "no leader"
            time.sleep(0.1)

    def reaches(self, sender: str, target: str) -> bool:
        """Whether messages pass between two members; during a partition not from a process that is not known."""
        if not sender:
            return not self._group
        return self._group.get(sender, 0) == self._group.get(target, 0)

    def sender_at(self, port: int) -> str:
        """The member whose process has the local ``port``; empty: none of them, or it has closed it again."""
        found = re.search(rf"^ *\d+: \w+:{port:04X} (?:\S+ +){{7}}(\d+)", Path("/proc/net/tcp").read_text(), re.M)
        link = f"socket:[{found[1]}]" if found else ""
        for name, process in list(self.processes.items()):
            with suppress(OSError):
                if any(_link(each) == link for each in Path(f"/proc/{process.pid}/fd").iterdir()):
                    return name
        return ""

    def stop(self) -> None:
        """End all members."""
        self.heal()
        for process in self.processes.values():
            process.kill()
            process.wait()
        for proxy in self._proxies.values():
            proxy.close()


@contextmanager
def etcd_cluster(directory: Path, size: int, *, own_clocks: bool = False) -> Iterator[EtcdCluster]:
    """A cluster with a leader; its data is removed at the end."""
    cluster = EtcdCluster(directory, size)
    try:
        for name in cluster.names:
            cluster.start(name, own_clock=own_clocks)
        cluster.leader()
        yield cluster
    finally:
        cluster.stop()
        for name in cluster.names:
            shutil.rmtree(directory / name, ignore_errors=True)


def _records(log: bytes) -> Iterator[tuple[int, int]]:
    """End and length, without padding, of each record of an etcd log.

    Eight bytes precede a record: its length, and in the highest byte, if negative, the bytes of padding after it.
    """
    at = 0
    while at + 8 <= len(log) and (field := int.from_bytes(log[at : at + 8], "little")):
        length, padding = field & ((1 << 56) - 1), (field >> 56) & 0x7
        yield at + 8 + length, length
        at += 8 + length + padding


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        _shut(end)


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
