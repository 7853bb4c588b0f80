"""The platform as separate processes, each started by `sda service NAME` as a container or a process manager would."""

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sda_platform.runtime import guardian
from sda_platform.spark.engine import python_path
from sda_platform_tests.support.running_platform import eventually

_START_S = 240.0
_LAST_LINES = 20
_LISTENING = "0A"  # in /proc/net/tcp


class SeparateServices:
    """Processes by name; ``environment`` has the settings that all share."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self.environment = {**os.environ, "PYTHONPATH": python_path(), **environment}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, **other: str) -> None:
        """Start a service, with ``other`` settings than its peers; it answers its check on return."""
        with (self._directory / f"{name}.log").open("ab") as log:
            # Leashed: it ends with the test process, even when that one is killed.
            leash = [sys.executable, guardian.__file__, "leash", str(os.getpid())]
            command = [*leash, *self._sda, "service", name]
            environment = {**self.environment, **other}
            self.processes[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        process = self.processes[name]
        assert eventually(lambda: process.poll() is not None or self.check(name, **other), _START_S, 1.0)
        assert process.poll() is None, self.log(name)

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run a service that ends."""
        return subprocess.run(
            [*self._sda, "service", name], env=self.environment, capture_output=True, text=True, check=False
        )

    def check(self, name: str, **other: str) -> bool:
        """Whether the running service answers, by the check of its container."""
        command = [*self._sda, "service", name, "--check"]
        return not subprocess.run(command, env={**self.environment, **other}, check=False).returncode

    def sda(self, *arguments: str) -> Any:
        """What a command prints as JSON."""
        command = [*self._sda, *arguments, "--json"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def all_processes(self) -> set[int]:
        """The ids of its processes and of their children."""
        found, parents = {each.pid for each in self.processes.values()}, {}
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
            except OSError:  # ended meanwhile
                continue
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found

    def kill(self, name: str) -> None:
        """Kill a service as a container that is removed."""
        self.processes[name].kill()
        self.processes[name].wait()

    def end(self) -> None:
        """End all of them, in reverse."""
        for name in reversed(self.processes):
            self.kill(name)

    def log(self, name: str) -> str:
        """The end of what the service has written."""
        return "\n".join((self._directory / f"{name}.log").read_text().splitlines()[-_LAST_LINES:])

    @property
    def _sda(self) -> list[str]:
        return [sys.executable, "-m", "sda_platform.cli.main"]


def listening_at(pid: int) -> set[str]:
    """The addresses (host:port) at which a process listens, by the kernel's tables (Linux); none once it has ended."""
    inodes = set()
    for each in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            inodes.add(str(each.readlink()))
        except OSError:  # closed meanwhile
            continue
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        try:
            lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            return set()
        for line in lines:
            local, state, inode = (line.split()[index] for index in (1, 3, 9))
            if state == _LISTENING and f"socket:[{inode}]" in inodes:
                address, _, port = local.partition(":")
                words = b"".join(bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8))
                host = socket.inet_ntop(family, words)
                found.add(f"[{host}]:{int(port, 16)}" if family == socket.AF_INET6 else f"{host}:{int(port, 16)}")
    return found


def graphql(url: str, query: str) -> Any:
    """What the webserver at ``url`` answers to ``query``."""
    body = json.dumps({"query": query}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["data"]
