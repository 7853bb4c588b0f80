"""A real etcd server of one member in a directory of its own, from the operating system's package."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from sda_platform.runtime.processes import free_port

_START_S = 30.0


def etcd_binary() -> Path | None:
    """The server's program; None without one."""
    found = shutil.which("etcd")
    return Path(found) if found else None


@contextmanager
def etcd_server(directory: Path, host: str = "127.0.0.1") -> Iterator[str]:
    """The address of a server at ``host`` that runs meanwhile."""
    program = etcd_binary()
    if program is None:
        raise RuntimeError("etcd is not installed")
    client, peer = (f"http://{host}:{free_port(0)}" for _ in range(2))
    command = [
        str(program), "--name", "one", "--data-dir", str(directory / "etcd"), "--listen-client-urls", client,
        "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
        "--initial-cluster", f"one={peer}",
    ]  # fmt: skip
    with (directory / "etcd.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait_until_healthy(client)
            yield client
        finally:
            server.terminate()
            server.wait(_START_S)


def _wait_until_healthy(address: str) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            with urlopen(f"{address}/health", timeout=1.0) as answer:
                if json.load(answer).get("health") == "true":
                    return
        except (OSError, ValueError):
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)
