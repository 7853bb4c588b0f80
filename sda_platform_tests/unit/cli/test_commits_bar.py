"""A person sees how many commits of all tables are made again, with a terminal and without."""

import io

import pytest
from rich.console import Console

from sda_platform.cli.lake import replay
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS


def test_lines_for_a_log_count_the_commits_of_all_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_EVERY_S", 0.0)
    log = io.StringIO()
    with replay.commits_bar(Console(file=log, width=100), {RAW_RECORDS.name: 3, OBSERVATIONS.name: 2}) as report:
        report(RAW_RECORDS, 3, 3)
        report(OBSERVATIONS, 1, 2)
    assert log.getvalue().splitlines() == [
        "3 of 5 commits are made again; now raw_records",
        "4 of 5 commits are made again; now observations",
    ]


def test_tables_that_were_not_announced_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_EVERY_S", 0.0)
    log = io.StringIO()
    with replay.commits_bar(Console(file=log, width=100)) as report:
        report(RAW_RECORDS, 0, 3)
        report(OBSERVATIONS, 1, 2)
    assert log.getvalue().splitlines()[-1] == "1 of 5 commits are made again; now observations"
