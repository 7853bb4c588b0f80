"""A fork is a table's state at one version: what is written there leaves the table alone, and the other way round."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.errors import VersionGone
from sda_platform.lake.log import TableLog
from sda_platform.replay.fork import fork
from sda_platform_tests.support.delta_tables import commit, lake_at

FOUR = ["a", "b", "c", "d"]


def ids(log: TableLog) -> list[str]:
    return sorted(log.rows(["observation_id"]).column("observation_id").to_pylist())


def test_a_fork_goes_on_alone_from_an_earlier_version__DL6_I14(tmp_path: Path) -> None:
    lake, apart = lake_at(tmp_path / "lake #1 é"), lake_at(tmp_path / "apart")
    for name in FOUR:
        commit(lake, OBSERVATIONS, [{"observation_id": name}])
    DeltaTable(lake.log(OBSERVATIONS).uri, version=1).create_checkpoint()
    DeltaTable(lake.log(OBSERVATIONS).uri).optimize.compact()
    source, target = lake.log(OBSERVATIONS), apart.log(OBSERVATIONS)
    files = {path: path.read_bytes() for path in Path(lake.uri).rglob("*") if path.is_file()}
    fork(source, target, 2)
    assert (ids(target), target.head().sequence, target.version()) == (FOUR[:3], 3, 2)
    assert target.find(1) == source.find(1), "its commits are the table's"
    commit(apart, OBSERVATIONS, [{"observation_id": "e"}])
    assert ids(target) == [*FOUR[:3], "e"] and ids(source) == FOUR
    assert {path: path.read_bytes() for path in Path(lake.uri).rglob("*") if path.is_file()} == files


def test_a_version_whose_files_are_gone_cannot_be_forked(tmp_path: Path) -> None:
    lake, apart = lake_at(tmp_path / "lake"), lake_at(tmp_path / "apart")
    commit(lake, ORBITAL_CATALOG, [{"norad_id": 7}])
    next(Path(lake.log(ORBITAL_CATALOG).uri).glob("*.parquet")).unlink()
    with pytest.raises(VersionGone, match="orbital_catalog: version 0 cannot be read any more"):
        fork(lake.log(ORBITAL_CATALOG), apart.log(ORBITAL_CATALOG), 0)
