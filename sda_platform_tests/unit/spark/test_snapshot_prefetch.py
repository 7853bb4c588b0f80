"""Asking the engine early is a courtesy: whatever becomes of it, the run continues."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.table import Table
from sda_platform.orchestration.resources import LakeResource
from sda_platform.spark.session import SparkResource
from sda_platform.spark.snapshot_prefetch import SnapshotPrefetch


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table in a lake at ``tmp_path``."""
    write_deltalake(str(tmp_path / "observations"), pa.table({"id": ["a"]}))
    return OBSERVATIONS


def test_an_engine_that_does_not_answer_fails_the_commit_and_not_the_asking(
    tmp_path: Path, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    spark = SparkResource(remote="sc://127.0.0.1:1")
    with caplog.at_level("INFO"):
        LakeResource(uri=str(tmp_path), home=str(tmp_path), spark=spark).prefetch([table]).wait()
    assert f"the state of {tmp_path}/{table.name} was not anticipated: the Spark engine at" in caplog.text


def test_what_is_no_table_is_not_asked_for(tmp_path: Path) -> None:
    asked: list[str] = []

    def session() -> object:
        asked.append("a session")
        raise AssertionError

    SnapshotPrefetch(session, [f"{tmp_path}/observations_are_fresh"]).wait()  # type: ignore[arg-type]
    assert asked == []
