"""Dagster's records in SQLite: written without waiting for the disk, and read by every process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import create_engine, text

from sda_platform.runtime import platform_home, sqlite_storage

READER = """
import sys, dagster as dg
with dg.DagsterInstance.from_config(sys.argv[1]) as instance:
    print(sorted(len(instance.all_logs(run.run_id)) for run in instance.get_runs()))
"""


@dg.asset
def work() -> None:
    """Nothing."""


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    platform_home.prepare(tmp_path, "127.0.0.1:1", {})
    with dg.DagsterInstance.from_config(str(platform_home.dagster_home(tmp_path))) as opened:
        yield opened


def test_another_process_reads_what_was_written_and_few_databases_stay_open(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    runs = sqlite_storage._MOST_OPEN + 3
    for _ in range(runs):
        assert dg.materialize([work], instance=instance).success
    expected = sorted(len(instance.all_logs(run.run_id)) for run in instance.get_runs())
    home = str(platform_home.dagster_home(tmp_path))
    read = subprocess.run([sys.executable, "-c", READER, home], capture_output=True, text=True, check=True)
    assert json.loads(read.stdout.splitlines()[-1]) == expected
    assert len(expected) == runs
    kept = sqlite_storage._DIRECTORIES[home]._open
    assert len(kept) == sqlite_storage._MOST_OPEN
    assert all(Path(f"{path}-wal").exists() for path in kept), (
        "an open connection keeps the log from being written back"
    )


@pytest.mark.usefixtures("instance")
def test_only_databases_of_the_home_are_set_up(tmp_path: Path) -> None:
    def synchronous(place: Path) -> int:
        with create_engine(f"sqlite:///{place}").connect() as connection:
            return int(connection.execute(text("PRAGMA synchronous")).scalar_one())

    assert synchronous(platform_home.dagster_home(tmp_path) / "other.db") == 1
    assert synchronous(tmp_path / "elsewhere.db") == 2
