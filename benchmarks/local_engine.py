"""The engine of a benchmark: the Spark Connect server that `sda up` would start, in a directory of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sda_platform.runtime.processes import free_port
from sda_platform.spark import engine
from sda_platform.spark.java import find_java
from sda_platform.spark.session import SparkResource

HADOOPS_FILES = {
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.LocalFs",
}
"""Settings of an engine with the file system that PySpark comes with, instead of the platform's."""
_TIMEOUT_S = 120.0


@contextmanager
def local_engine(directory: Path, conf: Mapping[str, str] | None = None) -> Iterator[SparkResource]:
    """An engine of its own and a session on it; both end with the block. ``conf`` replaces settings.

    TimeoutError: it never came.
    """
    for name in ("warehouse", "scratch"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    port = free_port(0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the engine must not outlive a benchmark that is ended
    command = engine.server_command(find_java(), directory, port=port, driver_memory="3g", conf=conf)
    with (directory / "engine.log").open("wb") as log:
        server = subprocess.Popen(
            command, env={**os.environ, **engine.server_environment(directory)}, stdout=log, stderr=log, cwd=directory
        )
        try:
            deadline = time.monotonic() + _TIMEOUT_S
            while not engine.is_listening(port):
                if server.poll() is not None or time.monotonic() > deadline:
                    raise TimeoutError(f"the engine did not come up; see {directory / 'engine.log'}")
                time.sleep(0.1)
            spark = SparkResource(remote=engine.remote_address(port))
            try:
                yield spark
            finally:
                spark.spark_session.stop()
        finally:
            server.terminate()
            server.wait(timeout=30)
