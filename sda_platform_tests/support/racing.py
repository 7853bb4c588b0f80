"""Racing writers as processes: each has an engine of its own, and starts when it is told to."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sda_platform.spark.engine import python_path


@contextmanager
def writer(
    root: Path,
    name: str,
    environment: Mapping[str, str] | None = None,
    *,
    commits: int,
    engine: str = "spark",
    lake: str = "",
) -> Iterator[subprocess.Popen[str]]:
    """A racing writer and its engine, ended on the way out; ``lake`` is ``root`` by default, where its log is."""
    arguments = [lake or str(root), name, str(commits), engine]
    process = subprocess.Popen(
        [sys.executable, "-m", "sda_platform_tests.support.racing_writer", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(root / f"{name}.log").open("w"),
        text=True,
        start_new_session=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": python_path(), **(environment or {})},
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answer(process: subprocess.Popen[str], question: str = "") -> str:
    """The next line of a writer, after ``question`` was written to it."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(question)
    process.stdin.flush()
    return process.stdout.readline().strip()
