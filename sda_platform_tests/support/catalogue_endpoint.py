"""`sda catalog serve` as a process."""

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import httpx

from sda_platform.runtime.processes import free_port
from sda_platform_tests.support import injections

ENDPOINT_TIMEOUT_S: Final = 60.0


class Endpoint:
    """A running `sda catalog serve` of ``home``."""

    def __init__(self, home: Path, port: int = 0, variables: Mapping[str, str] = MappingProxyType({})) -> None:
        self.injection_file = home / "injection"
        port = port or free_port(0)
        serve = ("catalog", "serve", "--port", str(port))
        command = [sys.executable, "-m", "sda_platform.cli.main", "--home", str(home), *serve]
        environment = {**os.environ, **injections.armed(self.injection_file), **variables}
        self._log = (home / "serve.log").open("ab")
        self.process = subprocess.Popen(command, env=environment, stdout=self._log, stderr=self._log)
        certificate = variables.get("SDA_SERVING_CERTIFICATE")
        verify = ssl.create_default_context(cafile=certificate) if certificate else True
        scheme = "https" if certificate else "http"
        self.client = httpx.Client(base_url=f"{scheme}://127.0.0.1:{port}", timeout=30, verify=verify)
        deadline = time.monotonic() + ENDPOINT_TIMEOUT_S
        while not self._answers():
            assert self.process.poll() is None, (home / "serve.log").read_text()
            assert time.monotonic() < deadline, "the endpoint did not answer"
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            return self.client.get("/health").status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.client.close()
        self.process.kill()
        assert self.process.wait(ENDPOINT_TIMEOUT_S) == -signal.SIGKILL

    def put(self, norad_id: int) -> bool:
        """Put a set of an object; whether it was acknowledged."""
        omm = {
            "NORAD_CAT_ID": norad_id, "EPOCH": "2024-10-31T12:00:00", "MEAN_MOTION": 15.5, "ECCENTRICITY": 0.001,
            "INCLINATION": 51.6, "RA_OF_ASC_NODE": 1.0, "ARG_OF_PERICENTER": 2.0, "MEAN_ANOMALY": 3.0,
            "BSTAR": 0.0001, "OBJECT_NAME": f"PUT {norad_id}",
        }  # fmt: skip
        try:
            answer = self.client.post("/elements", json=omm)
        except httpx.TransportError:
            return False
        assert answer.json() == {"accepted": 1, "refused": []}
        return True

    def served(self, norad_id: int) -> Any:
        """The object as it is served, None where it is not."""
        answer = self.client.get(f"/objects/{norad_id}")
        return answer.json()[0] if answer.status_code == 200 else None


@contextmanager
def endpoint(home: Path, variables: Mapping[str, str] = MappingProxyType({})) -> Iterator[Endpoint]:
    """An endpoint that is ended at the end of the block."""
    running = Endpoint(home, variables=variables)
    try:
        yield running
    finally:
        running.client.close()
        running.process.terminate()
        running.process.wait(ENDPOINT_TIMEOUT_S)
