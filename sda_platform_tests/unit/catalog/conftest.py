"""A catalogue that is merged without an engine."""

from pathlib import Path

import pytest

from sda_platform.lake.lake import Lake
from sda_platform_tests.support.catalogue_merging import HOUR_NS, Merging, histories
from sda_platform_tests.support.delta_tables import with_delta_rs


@pytest.fixture
def engineless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits are delta-rs'."""
    monkeypatch.setattr(Lake, "frame", lambda _self, _table, rows, **_: rows)
    monkeypatch.setattr(Lake, "engine", staticmethod(with_delta_rs))


@pytest.fixture
def merging(tmp_path: Path, engineless: None) -> Merging:
    """The catalogue, two days after the last set of the histories."""
    return Merging(tmp_path, max(rows[-1]["epoch_time_ns"] for rows in histories()) + 48 * HOUR_NS)
