"""`sda top`: rates of the last minute, also of runs that take longer."""

from pathlib import Path

from sda_platform.cli.platform.top import activity
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import after


def test_a_commit_counts_when_it_was_made_and_not_when_it_was_planned(tmp_path: Path) -> None:
    lake = lake_at(tmp_path, now_ns=after(0))
    commit(lake, OBSERVATIONS, [{"observation_id": str(n)} for n in range(600)], as_of_ns=after(-3600))
    newest = lake.log(OBSERVATIONS).commits(10)
    made_s = newest[0].timestamp_ms / 1e3
    found = activity(lake, OBSERVATIONS.name, newest, made_s + 59.0)
    assert (found.commits, found.rows, found.age_s) == (1, newest[0].rows_written, 59.0)
    assert activity(lake, OBSERVATIONS.name, newest, made_s + 61.0).commits == 0
