"""A Spark Connect server of a test: the engine that `sda up` would start, in a directory of its own."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sda_platform.lake.errors import EngineUnavailable
from sda_platform.runtime.processes import free_port
from sda_platform.spark import engine
from sda_platform.spark.java import find_java
from sda_platform.spark.session import probe
from sda_platform_tests.support.running_platform import eventually

_TIMEOUT_S = 180.0


@contextmanager
def connect_server(
    directory: Path, driver_memory: str = "1g", lake_uri: str = "", path: str | None = None
) -> Iterator[str]:
    """Start a server and give its address once it works; it ends with the block. Raises TimeoutError.

    ``lake_uri`` decides which jars it has, and ``path`` where it finds programs (default: as this process).
    """
    for name in ("warehouse", "scratch"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    port = free_port(0)
    command = engine.server_command(find_java(), directory, port=port, driver_memory=driver_memory, lake_uri=lake_uri)
    environment = {**os.environ, **engine.server_environment(directory)}
    if path is not None:
        environment["PATH"] = path
    with (directory / "engine.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=directory)
    try:
        if not eventually(lambda: engine.is_listening(port) or server.poll() is not None, _TIMEOUT_S):
            raise TimeoutError(f"the engine did not answer; see {directory / 'engine.log'}")
        if not eventually(lambda: is_working(engine.remote_address(port)), _TIMEOUT_S):
            raise TimeoutError(f"the engine listens and does not work; see {directory / 'engine.log'}")
        yield engine.remote_address(port)
    finally:
        server.kill()
        server.wait()


def is_working(address: str) -> bool:
    """Whether the server executes a statement: on a busy machine, its first takes longer than `probe` waits."""
    try:
        probe(address)
    except EngineUnavailable:
        return False
    return True
