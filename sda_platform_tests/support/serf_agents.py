"""Real Serf agents on loopback, from the operating system's package."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from sda_platform.ground.serf import SerfAgent
from sda_platform.lake.errors import Unavailable
from sda_platform.runtime.processes import free_port
from sda_platform_tests.support.programs import program
from sda_platform_tests.support.running_platform import eventually

_START_S = 30.0


def serf_binary() -> Path | None:
    """The program; None without one."""
    return program("serf")


@dataclass
class SerfAgents:
    """Agents by name; each joins the first one. Their logs are in ``directory``."""

    directory: Path
    agents: dict[str, SerfAgent] = field(default_factory=dict)
    _gossip: dict[str, str] = field(default_factory=dict)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, role: str = "station") -> SerfAgent:
        """Start ``name``, or start it again at its addresses, and return once it answers."""
        agent = self.agents.setdefault(name, SerfAgent(_free_address()))
        bind = self._gossip.setdefault(name, _free_address())
        others = [address for other, address in self._gossip.items() if other != name][:1]
        command = [str(serf_binary()), "agent", f"-node={name}", f"-bind={bind}", f"-rpc-addr={agent.rpc}"]
        command += [f"-tag=role={role}", "-profile=local", *(f"-retry-join={each}" for each in others)]
        with (self.directory / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen([*command, "-retry-interval=1s"], stdout=log, stderr=log)
        if not eventually(lambda: _answers(agent), _START_S):
            raise RuntimeError(f"{name} does not answer; its log is {self.directory / name}.log")
        return agent

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to an agent: SIGINT makes it leave, SIGKILL makes it fail."""
        self._running[name].send_signal(number)

    def stop(self) -> None:
        """End all."""
        for process in self._running.values():
            process.kill()
            process.wait()


@contextmanager
def serf_agents(directory: Path) -> Iterator[SerfAgents]:
    """Agents that run meanwhile; the platform finds the program, too."""
    found, binary = SerfAgents(directory), serf_binary()
    path = f"{binary.parent if binary else ''}{os.pathsep}{os.environ['PATH']}"
    try:
        with patch.dict(os.environ, PATH=path):
            yield found
    finally:
        found.stop()


def _answers(agent: SerfAgent) -> bool:
    try:
        return bool(agent.members())
    except Unavailable:
        return False


def _free_address() -> str:
    return f"127.0.0.1:{free_port(0)}"
