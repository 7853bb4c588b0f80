"""Staged tables: whole while they are needed, gone when the commit is decided or no one can need them."""

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from upath import UPath

from sda_platform.lake.staging import Staging

ROWS = pa.table({"n": [1, 2, 3]})


def staged(lake: Path) -> list[str]:
    return sorted(str(path) for path in (lake / "_staging").iterdir())


def test_what_was_put_can_be_read_until_it_is_cleared(tmp_path: Path) -> None:
    staging = Staging(str(tmp_path))
    paths = [staging.put(ROWS), staging.put(ROWS.slice(1))]
    assert [pq.read_table(path).equals(rows) for path, rows in zip(paths, (ROWS, ROWS.slice(1)), strict=True)] == [
        True,
        True,
    ]
    staging.clear()
    assert staged(tmp_path) == []


def test_a_crashed_runs_file_is_swept_when_it_is_stale_and_a_running_ones_is_left(tmp_path: Path) -> None:
    stale, running = Staging(str(tmp_path)).put(ROWS), Staging(str(tmp_path)).put(ROWS)
    day_ago_s = time.time() - 86_400
    os.utime(stale, (day_ago_s, day_ago_s))
    own = Staging(str(tmp_path)).put(ROWS)
    assert staged(tmp_path) == sorted([running, own])


def test_a_file_that_its_own_run_removes_meanwhile_does_not_stop_the_sweep_D14(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, own = Staging(str(tmp_path)), Staging(str(tmp_path))
    other.put(ROWS)
    look = type(UPath(tmp_path)).stat

    def look_too_late(path: UPath, **options: Any) -> Any:
        if path.suffix == ".parquet":
            other.clear()
        return look(path, **options)

    monkeypatch.setattr(type(UPath(tmp_path)), "stat", look_too_late)
    path = own.put(ROWS)
    monkeypatch.undo()
    assert staged(tmp_path) == [path]
