"""One policy states how long data files and log files are kept; nothing that is read again is removed earlier."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from sda_platform.conjunction.tables import RECEIVED_CDMS
from sda_platform.history.log_cleanup import clean_log
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake import properties
from sda_platform.lake.errors import InvariantError, Misconfigured
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import NEWEST_COMMITS, TableLog
from sda_platform.lake.retention import RETENTION, Retention
from sda_platform.lake.table import Table
from sda_platform.lake.verdicts import CommitFinding, Position, TableVerdict
from sda_platform.recovery import log_files
from sda_platform.recovery.examination import Depth, examine
from sda_platform.recovery.log_files import LogFiles
from sda_platform.recovery.repair import recover
from sda_platform.runtime import platform_home, verification
from sda_platform_tests.support.delta_tables import commit, commit_file, damage_checkpoint, foreign, lake_at

DAY_MS = 24 * 3_600_000
LONG_AFTER_MS = 10**14


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_at(tmp_path)


def names(log: TableLog) -> list[str]:
    return sorted(path.name for path in Path(log.uri, "_delta_log").iterdir())


def newest_ms(log: TableLog) -> int:
    return next(timestamp for _, timestamp in log.operations())


def cleaned(lake: Lake, table: Table, *others: Table, now_ms: int = LONG_AFTER_MS) -> int:
    logs = [lake.log(other) for other in others]
    log = lake.log(table)
    return clean_log(log, logs, lake.verdicts.read(log), now_ms=now_ms, retention=RETENTION)


# The policy.


def test_the_retention_covers_the_longest_run_and_the_replay_horizon_spec_102() -> None:
    RETENTION.require_covers(platform_home.longest_run_h())


@pytest.mark.parametrize(
    "retention", [Retention(replay_horizon_h=191), Retention(data_files_h=168), Retention(log_h=191)]
)
def test_a_retention_that_is_too_short_is_refused_spec_102(retention: Retention) -> None:
    with pytest.raises(Misconfigured, match="must be more than the replay horizon"):
        retention.require_covers(1.0)


def test_the_platform_does_not_start_with_a_retention_that_is_too_short_spec_102(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verification, "RETENTION", Retention(data_files_h=24))
    assert verification.main() == 1
    assert "data files are kept for 24 h" in capsys.readouterr().out


# Delta's properties.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.enableExpiredLogCleanup", "true"),
        ("delta.deletedFileRetentionDuration", "interval 1 hours"),
        ("delta.setTransactionRetentionDuration", "interval 1 days"),
    ],
)
def test_a_changed_property_is_found_and_the_correction_named_spec_53_114_hole_33_34(
    lake: Lake, name: str, value: str
) -> None:
    commit(lake, OBSERVATIONS)
    log = lake.log(OBSERVATIONS)
    assert all(examine(log, depth).is_sound for depth in Depth)
    DeltaTable(log.uri).alter.set_table_properties({name: value})
    for depth in Depth:
        (problem,) = examine(log, depth).problems
        assert f"observations: its Delta properties were changed: {name} is" in problem
    (finding,) = recover(lake, (OBSERVATIONS,), {}, repair=True)
    assert finding.outcome == "damaged"
    assert f"ALTER TABLE delta.`{log.uri}` SET TBLPROPERTIES" in str(finding.refused)


def test_deletion_vectors_are_off_and_no_transaction_expires_spec_114_hole_33() -> None:
    assert properties.REQUIRED["delta.enableDeletionVectors"] == "false"
    assert properties.REQUIRED["delta.enableExpiredLogCleanup"] == "false"
    assert not set(properties.FORBIDDEN) & set(properties.table_properties(RAW_RECORDS))
    assert properties.differences({**properties.REQUIRED, "delta.enableDeletionVectors": "true"})


def test_an_absent_table_needs_no_clean_up(lake: Lake) -> None:
    assert cleaned(lake, RECEIVED_CDMS) == 0


# The clean-up of logs.


@pytest.fixture(scope="module")
def many_commits() -> Iterator[Path]:
    """A lake with a table of 150 commits, whose checkpoints by Delta are at versions 20, 40 and 120."""
    with tempfile.TemporaryDirectory() as place:
        made = lake_at(Path(place))
        for number in range(150):
            commit(made, RAW_RECORDS)
            if number in (20, 40, 120):
                DeltaTable(made.log(RAW_RECORDS).uri).create_checkpoint()
        yield Path(place)


@pytest.fixture
def busy(many_commits: Path, tmp_path: Path) -> Lake:
    """A copy of that lake for one test."""
    shutil.copytree(many_commits, tmp_path, dirs_exist_ok=True)
    return lake_at(tmp_path)


def test_the_log_is_cut_at_a_checkpoint_below_the_newest_commits_spec_46_53(busy: Lake) -> None:
    log, commits = busy.log(RAW_RECORDS), busy.log(RAW_RECORDS).commits()
    head = log.head()
    assert commits[-1].version == 150 - NEWEST_COMMITS
    assert cleaned(busy, RAW_RECORDS) == 40
    assert names(log)[0] == f"{40:020d}.checkpoint.parquet"
    assert (log.head(), log.commits()) == (head, commits)
    assert {examine(log, depth).is_sound for depth in Depth} == {True}
    assert cleaned(busy, RAW_RECORDS) == 0
    commit(busy, RAW_RECORDS)
    assert (busy.head(RAW_RECORDS).sequence, DeltaTable(log.uri).version()) == (151, 150)


def test_checksums_of_old_commits_are_removed_before_the_commits_spec_45(busy: Lake) -> None:
    """They are three of four files of a commit, and each opening of the table lists them."""
    log = busy.log(RAW_RECORDS)
    directory = Path(log.uri, "_delta_log")
    for version in (0, 45, 149):
        for name in (f"{version:020d}.crc", f".{version:020d}.json.crc", f".{version:020d}.crc.crc"):
            (directory / name).write_text("{}")
    cleaned(busy, RAW_RECORDS, now_ms=newest_ms(log) + DAY_MS)
    left = [name for name in names(log) if name.endswith(".crc")]
    assert left == sorted([f".{149:020d}.json.crc", f".{149:020d}.crc.crc", f"{149:020d}.crc"])
    assert f"{0:020d}.json" in names(log)


def test_a_commit_within_the_retention_stays_in_the_log(busy: Lake) -> None:
    assert cleaned(busy, RAW_RECORDS, now_ms=newest_ms(busy.log(RAW_RECORDS)) + 7 * DAY_MS) == 0


def test_the_commit_at_which_a_consumers_window_ends_stays_in_the_log_spec_53(lake: Lake) -> None:
    for number in range(30):
        commit(lake, RAW_RECORDS)
        if number == 25:
            commit(lake, OBSERVATIONS, windows=lake.plan(OBSERVATIONS).windows)
    for number in range(120):
        commit(lake, RAW_RECORDS)
        if number in (5, 10):
            DeltaTable(lake.log(RAW_RECORDS).uri).create_checkpoint()
    assert cleaned(lake, RAW_RECORDS, OBSERVATIONS) == 0
    assert lake.plan(OBSERVATIONS).window(RAW_RECORDS).upto_sequence == 150
    assert cleaned(lake, RAW_RECORDS) == 40, "without that consumer"


@pytest.mark.parametrize("red_at", [1, 30])
def test_what_a_red_table_needs_to_be_read_and_verified_again_stays_in_the_log_spec_80(busy: Lake, red_at: int) -> None:
    """A consumer that is newer than the finding has no window yet that would keep it."""
    log = busy.log(RAW_RECORDS)
    commits = {commit.sequence: Position.of(commit) for commit in log.commits(None)}
    before = commits.get(red_at - 1, Position())
    finding = CommitFinding(RAW_RECORDS.name, red_at, before, commits[red_at], {"keys": ["1 repeated"]}, "")
    busy.verdicts.write(TableVerdict(RAW_RECORDS.name, commits[150], (finding,)))
    assert cleaned(busy, RAW_RECORDS) == (0 if red_at == 1 else 20)
    strict = lake_at(Path(busy.uri), reads_unverified=False)
    if red_at > 1:
        assert strict.plan(OBSERVATIONS).window(RAW_RECORDS).upto_sequence == red_at - 1
    busy.verdicts.write(TableVerdict(RAW_RECORDS.name, commits[150]))
    assert cleaned(busy, RAW_RECORDS) == (40 if red_at == 1 else 20), "once the finding is gone"


def test_an_idle_tables_only_commit_survives_every_clean_up_spec_53_D2(lake: Lake) -> None:
    commit(lake, RECEIVED_CDMS)
    foreign(lake, RECEIVED_CDMS, *["VACUUM START", "VACUUM END"] * 750, timestamp_ms=1)
    DeltaTable(lake.log(RECEIVED_CDMS).uri).create_checkpoint()
    assert cleaned(lake, RECEIVED_CDMS) == 0
    head = lake.head(RECEIVED_CDMS)
    assert (head.version, head.sequence) == (1500, 1)
    commit(lake, RECEIVED_CDMS)
    assert lake.head(RECEIVED_CDMS).sequence == 2


def test_nothing_is_removed_where_a_consumers_manifest_is_damaged(busy: Lake) -> None:
    commit(busy, OBSERVATIONS)
    damage_checkpoint(busy, OBSERVATIONS, 0)
    before = names(busy.log(RAW_RECORDS))
    with pytest.raises(InvariantError, match=r"observations: the manifest of commit 1 \(version 0\) is damaged"):
        cleaned(busy, RAW_RECORDS, OBSERVATIONS)
    assert names(busy.log(RAW_RECORDS)) == before


def test_a_clean_up_that_is_killed_anywhere_leaves_a_whole_log(busy: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    log, unlink, left = busy.log(RAW_RECORDS), type(commit_file(busy, RAW_RECORDS, 0)).unlink, [17]

    def dies(path: Path, missing_ok: bool = False) -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", dies)
        with pytest.raises(KeyboardInterrupt):
            cleaned(busy, RAW_RECORDS)
    assert (examine(log, Depth.COLUMNS).is_sound, log.head().sequence) == (True, 150)
    cleaned(busy, RAW_RECORDS)
    assert names(log)[0] == f"{40:020d}.checkpoint.parquet"


def test_a_log_without_its_beginning_and_without_a_checkpoint_is_refused(busy: Lake) -> None:
    cleaned(busy, RAW_RECORDS)
    for checkpoint in Path(busy.log(RAW_RECORDS).uri, "_delta_log").glob("*.checkpoint.parquet"):
        checkpoint.write_bytes(b"torn")
    (finding,) = recover(busy, (RAW_RECORDS,), {}, repair=False, wait=lambda _seconds: None)
    assert "the log begins at version 40, and none of Delta's checkpoints can be read" in finding.problems


# The cost of a check in a run.


def test_a_run_neither_lists_a_log_nor_opens_its_table_spec_45(busy: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both take the longer the older the table is."""
    log = busy.log(RAW_RECORDS)

    def grows(*_: object) -> None:
        raise AssertionError("this costs more with the age of the table")

    for owner, name in ((LogFiles, "listed"), (TableLog, "open"), (log_files, "_names")):
        monkeypatch.setattr(owner, name, grows)
    found = examine(log, Depth.NEWEST)
    assert (found.is_sound, found.version, found.commits_read) == (True, 149, 30)
    assert busy.head(RAW_RECORDS).sequence == 150
    assert busy.plan(OBSERVATIONS).window(RAW_RECORDS).upto_sequence == 150


def test_a_run_sees_a_missing_version_without_listing_the_log(busy: Lake) -> None:
    commit_file(busy, RAW_RECORDS, 145).unlink()
    assert examine(busy.log(RAW_RECORDS), Depth.NEWEST).problems == ["version 145 is missing, later ones are there"]
