"""Reading a table's log: what is read belongs to the version that was opened, also while somebody commits."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake import log
from sda_platform.lake.errors import InvariantError
from sda_platform_tests.delta_tables import commit, lake_at


def test_commits_that_come_after_opening_are_not_seen_under_wrong_versions(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    for number in range(3):
        commit(lake, OBSERVATIONS, [{"observation_id": f"before-{number}"}])
    uri = lake.log(OBSERVATIONS).uri
    opened = DeltaTable(uri)
    commit(lake, OBSERVATIONS, [{"observation_id": "after"}])
    seen = [(c.version, c.checkpoint.sequence) for c in log._commits(opened, uri, OBSERVATIONS.app_id, 10)]
    assert seen == [(2, 3), (1, 2), (0, 1)]
    assert [c.version for c in lake.log(OBSERVATIONS).commits()] == [3, 2, 1, 0]


def test_a_torn_commit_is_told_by_table_and_version(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    commit(lake, OBSERVATIONS, [{"observation_id": "a"}])
    uri = lake.log(OBSERVATIONS).uri
    opened = DeltaTable(uri)
    (Path(uri) / "_delta_log" / f"{0:020d}.json").write_text('{"commitInfo":{"timest')
    with pytest.raises(InvariantError, match="observations/_delta_log: version 0 is not readable"):
        list(log._commits(opened, uri, OBSERVATIONS.app_id, 10))
