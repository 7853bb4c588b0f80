"""Uplinks and stations as processes of `sda`."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path


class Processes:
    """`sda ground` processes over one home."""

    def __init__(self, home: Path, etcd: str) -> None:
        self.home, self.etcd = home, etcd
        self.running: dict[str, subprocess.Popen[str]] = {}

    def start(self, name: str, *arguments: str) -> str:
        """Start one, and return its first line."""
        command = [sys.executable, "-u", "-m", "sda_platform.cli.main", "--home", str(self.home), "ground", *arguments]
        leases = {"SDA_ETCD": json.dumps([self.etcd])} if self.etcd else {}
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **leases}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=self.home)
        self.running[name] = process
        assert process.stdout is not None
        return process.stdout.readline()

    def signal(self, name: str, number: signal.Signals) -> None:
        self.running[name].send_signal(number)


def ended(found: Processes) -> Iterator[Processes]:
    yield found
    for process in found.running.values():
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def wait(until: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
