"""A real process whose n-th fsync fails: `strace` has the kernel answer EIO once, as it does after a failed write."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.unsynced import SyncFailed
from sda_platform.recovery.examination import Depth
from sda_platform.recovery.repair import recover
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.sampling import number

pytestmark = pytest.mark.timeout(300)

# One commit, then what every run does before it builds on one.
WRITER = """
import sys
from pathlib import Path
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform_tests.support.delta_tables import commit, lake_at

lake = lake_at(Path(sys.argv[1]))
commit(lake, RAW_RECORDS, [{}])
lake.head(RAW_RECORDS)
"""


SUBSCRIBER = """
import sys
from pathlib import Path
from sda_platform.delivery.sqlite_subscriber import SqliteSubscriber
from sda_platform.delivery.subscriber import AlertEntry

subscriber = SqliteSubscriber(Path(sys.argv[1]))
subscriber.apply("first", [AlertEntry("alert", 1, "insert", "{}")])
print("the second batch", file=sys.stderr, flush=True)
subscriber.apply("second", [AlertEntry("alert", 2, "insert", "{}")])
print("was answered", file=sys.stderr, flush=True)
"""


def with_failing_fsync(when: int, command: list[str], log: Path) -> subprocess.CompletedProcess[str]:
    """Run ``command``; its ``when``-th fsync fails with EIO, the others succeed."""
    inject = ["strace", "-f", "-o", str(log), "-e", "trace=fsync", "-e", f"inject=fsync:error=EIO:when={when}"]
    return subprocess.run([*inject, *command], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", autouse=True)
def _needs_strace(tmp_path_factory: pytest.TempPathFactory) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (Debian package strace)")
    sync = [sys.executable, "-c", "import os; os.fsync(os.open('.', os.O_RDONLY))"]
    tried = with_failing_fsync(1, sync, tmp_path_factory.mktemp("strace") / "log")
    if "Input/output error" not in tried.stderr:
        pytest.skip(f"strace cannot inject errors here: {tried.stderr.strip().splitlines()[-1:]}")


def test_whichever_fsync_of_a_commit_fails_the_table_stops_until_it_was_verified_D7(tmp_path: Path) -> None:
    stopped = []
    for when in range(1, 30, number(1, 2)):
        place, log = tmp_path / str(when) / "lake", tmp_path / f"{when}.strace"
        ended = with_failing_fsync(when, [sys.executable, "-c", WRITER, str(place)], log)
        if "(INJECTED)" not in log.read_text():
            assert ended.returncode == 0, ended.stderr
            break
        lake = lake_at(place)
        assert ended.returncode == 1
        assert "SyncFailed: raw_records: a sync failed: " in ended.stderr, ended.stderr
        # A second process, for which every fsync succeeds.
        with pytest.raises(SyncFailed, match="sda lake verify --deep --repair"):
            lake.head(RAW_RECORDS)
        (refused,) = recover(lake, [RAW_RECORDS], {}, repair=True)
        assert refused.outcome == "damaged"
        (repaired,) = recover(lake, [RAW_RECORDS], {}, depth=Depth.COLUMNS, repair=True)
        assert (repaired.outcome, lake.head(RAW_RECORDS).sequence) == ("repaired", 1)
        commit(lake, RAW_RECORDS, [{}])
        stopped.append(when)
    assert len(stopped) >= number(4, 2), "the data file, the commit and their directories were synced"


def test_a_batch_is_on_disk_before_the_default_subscriber_answers_hole_40(tmp_path: Path) -> None:
    log, database = tmp_path / "strace", tmp_path / "subscriber.sqlite"
    traced = ["strace", "-f", "-y", "-o", str(log), "-e", "trace=fsync,fdatasync,write"]
    subprocess.run([*traced, sys.executable, "-c", SUBSCRIBER, str(database)], capture_output=True, check=True)
    _, second = log.read_text().split("the second batch", 1)
    before_the_answer, _ = second.split("was answered", 1)
    synced = [line for line in before_the_answer.splitlines() if "sync(" in line]
    assert any(f"{database}-wal>" in line for line in synced), "no sync of the log between batch and answer"
