"""Processes of `edge.py`: a collector and its senders, with their CPU time, memory and metrics."""

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from sda_platform.published import COLLECTOR, published

LOAD = Path(__file__).with_name("edge_load.py")
_QUIET_LOOKS = 5
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_mib(pid: int) -> float:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class CollectorProcess:
    """A running collector."""

    def __init__(self, home: Path, pid: int) -> None:
        self.home, self.pid = home, pid
        self._control = f"http://{published(home, COLLECTOR)}"

    def report(self) -> dict[str, Any]:
        """What `sda collector status --json` shows."""
        return dict(httpx.get(f"{self._control}/sources", timeout=30).json())

    def ledger(self) -> list[dict[str, Any]]:
        """The ledger."""
        return list(httpx.get(f"{self._control}/ledger", timeout=30).json()["accounts"])

    def total(self, fact: str, priority: str | None = None) -> int:
        """The sum of one fact of the ledger."""
        return sum(each[fact] for each in self.ledger() if priority in (None, each["priority"]))

    def sealed_of(self, source: str) -> int:
        """The records of one source in segments."""
        return sum(each["sealed"] for each in self.ledger() if each["source"] == source)

    def latency_s(self, share: float, zone: str = "", priority: str = "high") -> float:
        """The time in which ``share`` of the records (of a zone) is reached, interpolated within its bucket."""
        text = httpx.get(f"{self._control}/metrics", timeout=30).text
        (family,) = [f for f in text_string_to_metric_families(text) if f.name == "seal_latency_seconds"]
        counts: dict[float, float] = {0.0: 0.0}
        for sample in family.samples:
            chosen = sample.labels.get("priority") == priority and zone in ("", sample.labels.get("zone"))
            if sample.name.endswith("_bucket") and chosen:
                bound = float(sample.labels["le"])
                counts[bound] = counts.get(bound, 0.0) + sample.value
        reached = share * max(counts.values())
        for (low, before), (bound, count) in itertools.pairwise(sorted(counts.items())):
            if count and count >= reached:
                return low + (bound - low) * (reached - before) / (count - before)
        return float("inf")

    def kernel_drops(self) -> int:
        """Datagrams that the kernel dropped."""
        return sum(each["kernel_drops"] or 0 for each in self.report()["sources"])

    def address(self, name: str) -> tuple[str, str]:
        """Host and port of a source."""
        (found,) = [each["address"] for each in self.report()["sources"] if each["name"] == name]
        host, _, port = found.rpartition(":")
        return host, port

    def settle(self) -> None:
        """Wait until nothing is in flight and nothing more was received for a while."""
        deadline, before, quiet = time.monotonic() + 60, -1, 0
        while quiet < _QUIET_LOOKS and time.monotonic() < deadline:
            received = self.total("received")
            quiet = quiet + 1 if received == before and not self.total("in_flight") else 0
            before = received
            time.sleep(0.1)


@contextmanager
def collector(home: Path, sources: str, service: str = "") -> Iterator[CollectorProcess]:
    """A collector of the sources that the TOML text describes; stopped on the way out."""
    home.mkdir(parents=True)
    config = home / "collect.toml"
    config.write_text(f'[collector]\ncontrol = "127.0.0.1:0"\n{service}\n{sources}\n')
    with (home / "collector.log").open("wb") as log:
        command = [sys.executable, "-m", "sda_platform.edge", str(config)]
        process = subprocess.Popen(command, env={**os.environ, "SDA_HOME": str(home)}, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 90
        while published(home, COLLECTOR) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the collector did not start:\n{(home / 'collector.log').read_text()[-2000:]}")
            time.sleep(0.05)
        running = CollectorProcess(home, process.pid)
        while any(each["state"] == "starting" for each in running.report()["sources"]):
            time.sleep(0.05)
        yield running
    finally:
        process.terminate()
        process.wait(30)


def sender(kind: str, address: tuple[str, str], rate: float, seconds: float, *more: str) -> "subprocess.Popen[bytes]":
    """A process that sends frames of ``kind``."""
    options = ["--rate", str(rate), "--seconds", str(seconds), *more]
    return subprocess.Popen([sys.executable, str(LOAD), kind, *address, *options], stdout=subprocess.PIPE)


def sent(process: "subprocess.Popen[bytes]") -> dict[str, float]:
    """What a sender printed at its end."""
    out, _ = process.communicate()
    return dict(json.loads(out.splitlines()[-1]))
