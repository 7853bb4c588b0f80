"""The engine's files on this machine: as Hadoop's own file system writes them, without `chmod` and `readlink`."""

from pathlib import Path

import pytest

from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.engine_client import Client

pytestmark = pytest.mark.timeout(300)


def test_an_engine_that_finds_no_programs_commits_with_permissions_and_checksums(address: str, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "lake").symlink_to("disk")
    commit(lake_at(tmp_path / "lake"), OBSERVATIONS, [{"observation_id": "1"}])
    client = Client(address, tmp_path / "lake", "run", "append", (2,)).hold()
    client.release()
    assert client.report() == ["receipt 2"]
    files = [file for file in (tmp_path / "disk").rglob("*") if file.is_file()]
    by_engine = [file for file in files if file.with_name(f".{file.name}.crc").is_file()]
    assert {file.suffix for file in by_engine} >= {".parquet", ".json"}
    assert {file.stat().st_mode & 0o777 for file in by_engine} == {0o644}
    assert (tmp_path / "lake").is_symlink()
