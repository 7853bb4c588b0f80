"""Delta's checkpoints, which the platform writes in the place of Spark."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake import delta_log
from sda_platform.lake.delta_checkpoints import write_if_due
from sda_platform.lake.delta_log import LAST_CHECKPOINT, hadoop_checksum
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import plan_segments
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.recovery.examination import Depth, examine
from sda_platform_tests.support.delta_tables import lake_at, rows_of, with_delta_rs


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    lake = lake_at(tmp_path)
    lake.engine = with_delta_rs
    monkeypatch.setattr(lake, "frame", lambda _table, rows, *, stamped: rows if stamped else None)
    return lake


def append(lake: Lake, count: int) -> None:
    for _ in range(count):
        head = lake.head(OBSERVATIONS)
        plan = plan_segments(OBSERVATIONS, head, [], now_ns=1, run_id="run")
        rows = rows_of(OBSERVATIONS, [{"observation_id": str(head.sequence)}]).drop_columns(COMMIT_SEQUENCE)
        lake.append(plan, rows)


def checkpoints(lake: Lake) -> list[int]:
    log = Path(lake.log(OBSERVATIONS).uri) / "_delta_log"
    return sorted(int(file.name.split(".")[0]) for file in log.glob("*.checkpoint.parquet"))


def test_every_tenth_version_has_a_checkpoint_from_which_the_table_can_be_read(lake: Lake) -> None:
    append(lake, 25)
    assert checkpoints(lake) == [9, 19]
    uri = lake.log(OBSERVATIONS).uri
    assert delta_log.checkpointed_version(uri) == 19
    for version in range(19):
        delta_log.commit_file(uri, version).unlink()
    assert DeltaTable(uri).version() == 24
    assert lake_at(Path(lake.uri)).log(OBSERVATIONS).rows(["observation_id"]).num_rows == 25
    assert DeltaTable(uri).transaction_version(OBSERVATIONS.app_id) == 25


@pytest.mark.parametrize("error", [DeltaError("no"), OSError(28, "No space left on device")])
def test_a_checkpoint_that_cannot_be_written_fails_no_commit_and_is_tried_again(
    lake: Lake, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(_table: Any) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(DeltaTable, "create_checkpoint", failing)
        append(lake, 11)
    assert checkpoints(lake) == []
    assert "observations: Delta's checkpoint of version 9 was not written" in caplog.text
    append(lake, 1)
    assert checkpoints(lake) == [11]


def test_checksums_that_hadoop_kept_of_the_former_pointer_do_not_refuse_the_new_one(lake: Lake) -> None:
    append(lake, 9)
    log = delta_log.log_directory(lake.log(OBSERVATIONS).uri)
    stale = [hadoop_checksum(log / LAST_CHECKPOINT), hadoop_checksum(delta_log.checkpoint_file(str(log.parent), 9))]
    for file in stale:
        file.write_bytes(b"crc\0")
    append(lake, 1)
    assert checkpoints(lake) == [9]
    assert not any(file.exists() for file in stale)


@pytest.mark.parametrize("kept_bytes", [0, 100])
def test_a_checkpoint_that_a_power_loss_tore_is_found_and_costs_no_row(lake: Lake, kept_bytes: int) -> None:
    append(lake, 12)
    file = Path(str(delta_log.checkpoint_file(lake.log(OBSERVATIONS).uri, 9)))
    file.write_bytes(file.read_bytes()[:kept_bytes])
    log = lake_at(Path(lake.uri)).log(OBSERVATIONS)
    assert not examine(log, Depth.PRESENCE).is_sound
    assert log.head().sequence == 12


def test_an_absent_table_has_no_checkpoint(lake: Lake) -> None:
    write_if_due(lake.log(OBSERVATIONS), -1)
    assert checkpoints(lake) == []
