"""A Spark Connect server of a test: the engine that `sda up` would start, in a directory of its own."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sda_platform.runtime.processes import free_port
from sda_platform.spark import engine
from sda_platform.spark.java import find_java
from sda_platform_tests.support.running_platform import eventually

_TIMEOUT_S = 180.0


@contextmanager
def connect_server(directory: Path, driver_memory: str = "1g") -> Iterator[str]:
    """Start a server and give its address; it ends with the block. Raises TimeoutError where it never answers."""
    for name in ("warehouse", "scratch"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    port = free_port(0)
    command = engine.server_command(find_java(), directory, port=port, driver_memory=driver_memory)
    environment = {**os.environ, **engine.server_environment(directory)}
    with (directory / "engine.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=directory)
    try:
        if not eventually(lambda: engine.is_listening(port) or server.poll() is not None, _TIMEOUT_S):
            raise TimeoutError(f"the engine did not answer; see {directory / 'engine.log'}")
        yield engine.remote_address(port)
    finally:
        server.kill()
        server.wait()
