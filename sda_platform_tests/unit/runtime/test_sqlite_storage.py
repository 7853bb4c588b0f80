"""Dagster's records in SQLite: written without waiting for the disk, and read by every process."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import text

from sda_platform.runtime import platform_home, sqlite_storage
from sda_platform_tests.support.overlapping_runs import evaluations, newest_evaluation, newest_write, overlap

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


def event_log(instance: dg.DagsterInstance) -> Any:
    return instance.event_log_storage


def databases(tmp_path: Path) -> list[Path]:
    """The files of the event log: those of the index, and those of runs."""
    return sorted(platform_home.dagster_home(tmp_path).rglob("history/runs/*.db*"))


def test_another_process_reads_what_was_written_and_few_databases_stay_open(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_storage, "MOST_OPEN", 2)
    runs = 4
    for _ in range(runs):
        assert dg.materialize([work], instance=instance).success
    expected = sorted(len(instance.all_logs(run.run_id)) for run in instance.get_runs())
    home = str(platform_home.dagster_home(tmp_path))
    read = subprocess.run([sys.executable, "-c", READER, home], capture_output=True, text=True, check=True)
    assert json.loads(read.stdout.splitlines()[-1]) == expected
    assert len(expected) == runs
    logs_not_written_back = [path for path in databases(tmp_path) if path.name.endswith("-wal")]
    assert 0 < len(logs_not_written_back) <= 2


def test_no_commit_to_a_database_waits_for_the_disk(instance: dg.DagsterInstance) -> None:
    dg.materialize([work], instance=instance)
    (run,) = instance.get_runs()
    storages = [
        event_log(instance).index_connection(),
        event_log(instance).run_connection(run.run_id),
        instance.run_storage.connect(),  # type: ignore[attr-defined]
        instance.schedule_storage.connect(),  # type: ignore[union-attr]
    ]
    for connected in storages:
        with connected as connection:
            assert connection.execute(text("PRAGMA synchronous")).scalar_one() == 1


def test_nothing_is_left_on_disk_of_a_deleted_run_and_other_runs_stay(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    for _ in range(2):
        dg.materialize([work], instance=instance)
    gone, kept = (run.run_id for run in instance.get_runs())
    before = len(instance.all_logs(kept))
    instance.delete_run(gone)
    assert [path for path in databases(tmp_path) if path.name.startswith(gone)] == []
    assert len(instance.all_logs(kept)) == before
    assert instance.get_run_by_id(gone) is None


def test_threads_write_events_of_runs_at_once_and_none_is_lost(instance: dg.DagsterInstance) -> None:
    for _ in range(3):
        dg.materialize([work], instance=instance)
    runs = instance.get_runs()
    before = [len(instance.all_logs(run.run_id)) for run in runs]

    def write(run: dg.DagsterRun) -> None:
        for number in range(20):
            instance.report_engine_event(f"event {number}", run)

    writers = [threading.Thread(target=write, args=(run,)) for run in runs]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60.0)
    assert [len(instance.all_logs(run.run_id)) for run in runs] == [count + 20 for count in before]


def test_an_event_that_fails_to_be_written_leaves_no_part_of_it(instance: dg.DagsterInstance) -> None:
    dg.materialize([work], instance=instance)
    (run,) = instance.get_runs()
    before = len(instance.all_logs(run.run_id))
    with (
        pytest.raises(ZeroDivisionError),
        event_log(instance).run_connection(run.run_id) as connection,
    ):
        connection.execute(text("DELETE FROM event_logs"))
        raise ZeroDivisionError
    assert len(instance.all_logs(run.run_id)) == before


def test_of_overlapping_runs_the_last_to_write_is_the_one_whose_checks_are_shown(instance: dg.DagsterInstance) -> None:
    first = overlap(instance)
    assert newest_write(instance) == first
    assert newest_evaluation(instance) == (first, "SUCCEEDED")
    assert evaluations(instance) == 2
