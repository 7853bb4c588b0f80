"""A table that was written under a lease refuses a holder whose lease another one has followed."""

from pathlib import Path

import pytest

import sda_platform.definitions  # noqa: F401 - declares the table assets
from sda_platform.lake.errors import StaleToken
from sda_platform.lake.manifest import CommitManifest
from sda_platform.tasking.tables import PASS_SCHEDULE
from sda_platform_tests.support.delta_tables import commit, lake_at


def test_a_plan_with_a_lower_token_or_none_is_refused__ML2_ML7(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    commit(lake, PASS_SCHEDULE, [], fencing_token=43)
    for token in (42, None):
        lake.fencing_token = token
        with pytest.raises(StaleToken, match="pass_schedule: this run has"):
            lake.plan(PASS_SCHEDULE)
    for token in (43, 44):
        lake.fencing_token = token
        plan = lake.plan(PASS_SCHEDULE)
        assert plan.manifest("nonce").fencing_token == token


def test_a_table_without_leases_is_written_as_before(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    commit(lake, PASS_SCHEDULE, [])
    plan = lake.plan(PASS_SCHEDULE)
    text = plan.manifest("nonce").to_json()
    assert "fencing_token" not in text
    assert CommitManifest.from_json(text).fencing_token is None
