"""Racing writers as processes: each has an engine of its own, and starts when it is told to."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.spark.engine import python_path
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.racing_writer import ids_of


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


def raced(folder: Path, engines: Sequence[str], commits: int, lake: str = "") -> list[dict[str, int]]:
    """Race a writer of each engine for ``commits`` commits, the first of which is there: commits won and lost by each.

    ``lake`` is ``folder`` by default, where the writers' logs are. A writer that the platform stopped, because the log
    contradicts itself, is not in the answer; one that ended otherwise is an AssertionError with its log.
    """
    commit(lake_at(lake or folder), OBSERVATIONS, [{"observation_id": name} for name in ids_of(1)])
    names = [f"writer-{number}" for number in range(len(engines))]
    with ExitStack() as running:
        writers = [
            running.enter_context(writer(folder, name, commits=commits, engine=engine, lake=lake))
            for name, engine in zip(names, engines, strict=True)
        ]
        assert [answer(each) for each in writers] == ["ready"] * len(engines)
        for each in writers:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        reports = [answer(each) for each in writers]
    for name, report in zip(names, reports, strict=True):
        log = (folder / f"{name}.log").read_text()
        assert report or "errors.InvariantError" in log, log
    return [json.loads(report) for report in reports if report]
