"""The rehearsed loss of etcd's majority: the active uplink stops when its lease runs out, and no other gets one."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sda_platform.ground.failure_detection import CROSS_REGION, PathClass
from sda_platform.ground.rehearsal import Measured, Stopwatch
from sda_platform.ground.rehearsed_programs import end, etcd_program, free_ports, start
from sda_platform.ground.rehearsed_segment import STATION, Segment, ground_segment
from sda_platform.ground.uplink import TIMEOUT_S
from sda_platform.ground.uplink_lease import TTL_S, UplinkLease
from sda_platform.lake.errors import Unavailable
from sda_platform.orchestration.leases import EtcdLeases

_MEMBERS: Final = 3
_READY_WITHIN_S: Final = 30.0


class _Cluster:
    """Three members on ports of this machine, with data below ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._program, self._directory = etcd_program(), directory
        ports = free_ports(2 * _MEMBERS)
        self.clients = [f"http://127.0.0.1:{port}" for port in ports[:_MEMBERS]]
        self._peers = [f"http://127.0.0.1:{port}" for port in ports[_MEMBERS:]]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, number: int) -> None:
        """Start a member, with the data that it had."""
        members = ",".join(f"n{each}={peer}" for each, peer in enumerate(self._peers))
        client, peer = self.clients[number], self._peers[number]
        self._processes[number] = start([
            self._program, "--name", f"n{number}", "--data-dir", self._directory / f"n{number}",
            "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", members,
        ])  # fmt: skip

    def stop(self, number: int) -> None:
        """End a member as a crash does."""
        end(self._processes.pop(number))

    def close(self) -> None:
        """End all."""
        for number in list(self._processes):
            self.stop(number)


@contextmanager
def _running_cluster(directory: Path) -> Iterator[_Cluster]:
    cluster = _Cluster(directory)
    try:
        for number in range(_MEMBERS):
            cluster.start(number)
        asking = EtcdLeases(cluster.clients, "rehearsal", timeout_s=TIMEOUT_S)
        if Stopwatch().when(lambda: _grants(asking), _READY_WITHIN_S) is None:
            raise Unavailable("the rehearsed etcd grants no lease")
        yield cluster
    finally:
        cluster.close()


@dataclass(frozen=True)
class EtcdMinority:
    """Two of three members of etcd stop, and return once the active uplink has stopped."""

    path: PathClass = CROSS_REGION
    name: str = "etcd minority"
    detect_within_s: float = 20.0
    recover_within_s: float = 50.0
    ttl_s: int = TTL_S
    watched_s: float = 3.0
    """How long no uplink may get the lease before the members return."""

    def rehearse(self, directory: Path) -> Measured:
        """Stop two members, wait for the primary to stop, let them return, and wait for a command."""
        with _running_cluster(directory) as cluster:

            def lease_of(uplink: str) -> UplinkLease:
                leases = EtcdLeases(cluster.clients, uplink, timeout_s=TIMEOUT_S)
                return UplinkLease(leases, STATION, time.monotonic, self.ttl_s)

            with ground_segment(directory, self.path, lease_of=lease_of) as segment:
                watch = Stopwatch()
                for number in range(1, _MEMBERS):
                    cluster.stop(number)
                detected_s = watch.when(lambda: not _is_commanded(segment), self.detect_within_s)
                if self._is_granted(cluster, segment):
                    detected_s = None
                segment.issue("after")
                for number in range(1, _MEMBERS):
                    cluster.start(number)
                recovered_s = watch.when(lambda: segment.events.has_executed("after"), self.recover_within_s)
        return Measured(watch.started_ns, detected_s, recovered_s)

    def _is_granted(self, cluster: _Cluster, segment: Segment) -> bool:
        """Whether the member that is left grants anything, or an uplink commands the station."""
        left = EtcdLeases(cluster.clients[:1], "rehearsal", timeout_s=TIMEOUT_S)
        watch = Stopwatch()
        return _grants(left) or watch.when(lambda: _is_commanded(segment), self.watched_s) is not None


def _is_commanded(segment: Segment) -> bool:
    return segment.primary.is_active or segment.backup.is_active


def _grants(leases: EtcdLeases) -> bool:
    try:
        leases.release(leases.acquire("rehearsal", TTL_S))
    except Unavailable:
        return False
    return True
