"""Freshness and balance follow from what a table declares: no check names its inputs or its zones again."""

from pathlib import Path

import pytest

import sda_platform.definitions  # noqa: F401  its packages declare the balances
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.table import Table
from sda_platform.orchestration.freshness import nothing_waits
from sda_platform.orchestration.table_checks import unbalanced_commits
from sda_platform.registry import TABLES
from sda_platform_tests.support.delta_tables import commit, genesis_window, lake_at
from sda_platform_tests.support.segments import START_NS

CONSUMERS = [(table, source) for table in TABLES for source in table.consumed]
HOUR_NS = 3600 * 1_000_000_000


@pytest.mark.parametrize(("table", "source"), CONSUMERS, ids=[f"{t.name}-{s.name}" for t, s in CONSUMERS])
def test_a_commit_of_any_declared_input_waits_until_it_is_consumed(table: Table, source: Table, tmp_path: Path) -> None:
    before, now = lake_at(tmp_path, now_ns=START_NS), lake_at(tmp_path, now_ns=START_NS + HOUR_NS)
    assert nothing_waits(now, now.log(table)) == START_NS + HOUR_NS
    commit(before, source, [])
    assert nothing_waits(now, now.log(table)) == START_NS
    commit(now, table, [], windows=[genesis_window(source)])
    assert nothing_waits(now, now.log(table)) == START_NS + HOUR_NS


BRONZE = [table for table in TABLES if table.zones]


@pytest.mark.parametrize("table", BRONZE, ids=[table.name for table in BRONZE])
def test_every_table_with_zones_promises_rows_and_counts_of_its_segments(table: Table, tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    lost = SegmentRef(table.zones[0], "lost.seg", "ab" * 32, 1, 1)
    commit(lake, table, [], segments=[lost], counts={"discovered_segments": 7})
    found = " ".join(unbalanced_commits(lake, table, lake.log(table).commits()))
    assert f"{table.zones[0]}/lost.seg: 1 records landed, 0 rows stored" in found
    assert "sequence 1 counts {'discovered_segments': 7" in found
