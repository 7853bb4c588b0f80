"""Restarts of a collector, with frames each 5 ms: by SIGUSR2 none is lost; after SIGKILL the ledger has the gap."""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from sda_platform.published import COLLECTOR, published
from sda_platform_tests.support.collectors import beacons, framed, payloads, radar_frames

pytestmark = pytest.mark.system
CONFIG = """
[sources.radar-a]
kind = "radar"
bind = "127.0.0.1:0"

[sources.links]
kind = "isl"
bind = "127.0.0.1:0"
acknowledge = true

[collector]
control = "127.0.0.1:0"
"""


class Collecting:
    """A collector process."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "collect.toml").write_text(CONFIG)
        self.log = (home / "log").open("ab")
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "sda_platform.edge", str(self.home / "collect.toml")]
        environment = {**os.environ, "SDA_HOME": str(self.home)}
        return subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log)

    def start_again(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process = self._start()

    def answer(self, path: str) -> dict | None:  # type: ignore[type-arg]
        """What the control plane answers; None: it does not."""
        with suppress(httpx.HTTPError):
            if control := published(self.home, COLLECTOR):
                return dict(httpx.get(f"http://{control}{path}", timeout=5).json())
        return None

    def addresses(self) -> dict[str, tuple[str, int]]:
        """Where each source listens, once all do."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.process.poll() is None:
            found = (self.answer("/sources") or {}).get("sources", [])
            if len(found) == 2 and all(each["address"] for each in found):
                split = {each["name"]: each["address"].rpartition(":") for each in found}
                return {name: (host, int(port)) for name, (host, _, port) in split.items()}
            time.sleep(0.05)
        raise AssertionError((self.home / "log").read_text())

    def restart_until(self, said: bytes) -> None:
        """Send SIGUSR2, and wait until the log says this."""
        marker = (self.home / "log").stat().st_size
        self.process.send_signal(signal.SIGUSR2)
        deadline = time.monotonic() + 60
        while said not in (self.home / "log").read_bytes()[marker:]:
            assert time.monotonic() < deadline, (self.home / "log").read_text()
            time.sleep(0.05)


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collecting]:
    started = Collecting(tmp_path)
    yield started
    started.process.kill()
    started.process.wait()
    started.log.close()


class Radar(threading.Thread):
    """Sends a datagram each 5 ms."""

    def __init__(self, address: tuple[str, int], frames: list[bytes]) -> None:
        super().__init__(daemon=True)
        self.address, self.frames = address, frames
        self.is_over = threading.Event()
        self.sent = 0

    def run(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while not self.is_over.wait(0.005) and self.sent < len(self.frames):
                with suppress(ConnectionError):
                    sender.sendto(self.frames[self.sent], self.address)
                self.sent += 1


class Link(threading.Thread):
    """Sends a frame each 5 ms over TCP, and again over the next connection what was not acknowledged."""

    def __init__(self, address: tuple[str, int], frames: list[bytes]) -> None:
        super().__init__(daemon=True)
        self.address, self.frames = address, frames
        self.is_over = threading.Event()
        self.durable = 0

    def run(self) -> None:
        while not (self.is_over.is_set() and self.durable >= self.target):
            with suppress(OSError):
                self._connection()
            time.sleep(0.01)

    target = sys.maxsize

    def _connection(self) -> None:
        began = sent = self.durable
        with socket.create_connection(self.address, timeout=0.005) as link:
            while not (self.is_over.is_set() and self.durable >= self.target):
                if sent < min(len(self.frames), self.target):
                    link.settimeout(10)
                    link.sendall(framed([self.frames[sent]]))
                    sent += 1
                link.settimeout(0.005)
                with suppress(TimeoutError):
                    data = link.recv(8)
                    if not data:
                        return
                    while len(data) < 8:
                        data += link.recv(8 - len(data))
                    self.durable = began + struct.unpack("<Q", data)[0]
                if sent > self.durable and sent == self.target:
                    time.sleep(0.005)


def test_a_restart_by_signal_hands_over_its_sockets(collector: Collecting) -> None:
    addresses = collector.addresses()
    radar = Radar(addresses["radar-a"], [bytes(each) for each in radar_frames(20_000)])
    link = Link(addresses["links"], beacons(20_000))
    radar.start()
    link.start()
    time.sleep(0.5)
    (collector.home / "collect.toml").write_text(CONFIG + "no_such_setting = 1\n")
    collector.restart_until(b"restart refused")
    (collector.home / "collect.toml").write_text(CONFIG)
    (collector.home / "mappings").mkdir()
    (mapping := collector.home / "mappings" / "teide.toml").write_text("no mapping")
    collector.restart_until(b"restart refused")
    mapping.unlink()
    collector.restart_until(b"collecting")
    assert collector.addresses() == addresses, "the sockets are those of the process before"
    time.sleep(0.5)
    radar.is_over.set()
    link.target = link.durable + 200
    link.is_over.set()
    radar.join(60)
    link.join(60)
    collector.process.send_signal(signal.SIGTERM)
    assert collector.process.wait(60) == 0
    assert set(payloads(collector.home, "isl")) >= set(link.frames[: link.durable])
    assert set(payloads(collector.home, "radar")) == set(radar.frames[: radar.sent])


def test_after_a_kill_the_ledger_has_the_time_without_a_listener(collector: Collecting) -> None:
    collector.addresses()
    deadline = time.monotonic() + 60
    while not (collector.home / "collector" / "listening.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    killed_ns = time.time_ns()
    collector.process.kill()
    collector.process.wait()
    time.sleep(2.0)
    collector.start_again()
    collector.addresses()
    while not (entries := (collector.answer("/ledger") or {}).get("not_listened")):
        assert time.monotonic() < deadline + 60
        time.sleep(0.05)
    assert {entry["source"] for entry in entries} == {"radar-a", "links"}
    for entry in entries:
        assert entry["from_ns"] <= killed_ns + 10**9
        assert entry["until_ns"] >= killed_ns + 2 * 10**9
