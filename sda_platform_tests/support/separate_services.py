"""The platform as separate processes, each started by `sda service NAME` as a container or a process manager would."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sda_platform.runtime import guardian, platform_home
from sda_platform.spark.engine import python_path
from sda_platform_tests.support.listening import listeners_of
from sda_platform_tests.support.running_platform import eventually

_START_S = 600.0
_LAST_LINES = 20
_WITHOUT_PORT = ("daemon",)


class SeparateServices:
    """Processes by name; ``environment`` has the settings that all share."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._directory = directory
        self.environment = {**os.environ, "PYTHONPATH": python_path(), **environment}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *names: str, **other: str) -> None:
        """Start services at once, with ``other`` settings than their peers; each answers its check on return."""
        self.begin(*names, **other)
        self.await_all(*names, **other)

    def begin(self, *names: str, **other: str) -> None:
        """Start services, and do not wait for them."""
        for name in names:
            # Leashed: it ends with the test process, even when that one is killed.
            leash = [sys.executable, guardian.__file__, "leash", str(os.getpid())]
            command = [*leash, *self._sda, "service", name]
            environment = {**self.environment, **other}
            with (self._directory / f"{name}.log").open("ab") as log:
                self.processes[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def await_all(self, *names: str, **other: str) -> None:
        """Return once each of these services answers its check."""
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(lambda name: self._await(name, other), names))

    def _await(self, name: str, other: Mapping[str, str]) -> None:
        process = self.processes[name]
        # A check is a process of its own and costs seconds, so it waits until there may be an answer.
        eventually(lambda: process.poll() is not None or self._may_answer(name), _START_S)
        assert eventually(lambda: process.poll() is not None or self.check(name, **other), _START_S, 3.0)
        assert process.poll() is None, self.log(name)

    def _may_answer(self, name: str) -> bool:
        pid = self.processes[name].pid
        if name == "run-workers":
            return platform_home.read_state(Path(self.environment["SDA_HOME"])).get("pid") == pid
        return name in _WITHOUT_PORT or bool(listeners_of(pid))

    def check(self, name: str, **other: str) -> bool:
        """Whether the running service answers, by the check of its container."""
        return not self.ask("service", name, "--check", **other).returncode

    def ask(self, *arguments: str, **other: str) -> subprocess.CompletedProcess[str]:
        """Run a command with ``other`` settings than those of the services; an empty one is not set."""
        environment = {name: value for name, value in {**self.environment, **other}.items() if value}
        command = [*self._sda, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def sda(self, *arguments: str) -> Any:
        """What a command prints as JSON."""
        done = self.ask(*arguments, "--json")
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
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def revive(self, **of: Mapping[str, str]) -> None:
        """Start again what has ended, as a process manager does; ``of`` has the services with other settings."""
        for name, process in list(self.processes.items()):
            if process.poll() is not None:
                self.begin(name, **of.get(name, {}))

    def end(self) -> None:
        """End all of them, in reverse."""
        for name in reversed(list(self.processes)):
            self.kill(name)

    def log(self, name: str, last: int | None = _LAST_LINES) -> str:
        """The ``last`` lines that the service has written; None: all."""
        lines = (self._directory / f"{name}.log").read_text().splitlines()
        return "\n".join(lines[-last:] if last else lines)

    @property
    def _sda(self) -> list[str]:
        return [sys.executable, "-m", "sda_platform.cli.main"]


def graphql(url: str, query: str) -> Any:
    """What the webserver at ``url`` answers to ``query``."""
    body = json.dumps({"query": query}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["data"]
