"""Reading a table's log: what is read belongs to the version that was opened, whatever others commit or damage."""

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake import log
from sda_platform.lake.checkpoint import SCHEMA_VERSION, Recovery
from sda_platform.lake.errors import InvariantError
from sda_platform.lake.lake import Lake
from sda_platform_tests.delta_tables import commit, commit_file, damage_checkpoint, lake_at


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_at(tmp_path)


def observe(lake: Lake, *names: str) -> None:
    for name in names:
        commit(lake, OBSERVATIONS, [{"observation_id": name}])


def test_commits_that_come_after_opening_are_not_seen_under_wrong_versions(lake: Lake) -> None:
    observe(lake, "a", "b", "c")
    uri = lake.log(OBSERVATIONS).uri
    opened = DeltaTable(uri).version()
    observe(lake, "after")
    assert [(e.version, e.sequence) for e in lake.log(OBSERVATIONS).entries_from(opened, 10)] == [
        (2, 3),
        (1, 2),
        (0, 1),
    ]
    assert [c.version for c in lake.log(OBSERVATIONS).commits()] == [3, 2, 1, 0]
    found = lake.log(OBSERVATIONS).find(2)
    assert found is not None
    assert (found.version, lake.log(OBSERVATIONS).find(5)) == (1, None)


def test_a_torn_commit_is_told_by_table_and_version(lake: Lake) -> None:
    observe(lake, "a")
    commit_file(lake, OBSERVATIONS, 0).write_text('{"commitInfo":{"timest')
    with pytest.raises(InvariantError, match="observations/_delta_log: version 0 is not readable"):
        list(lake.log(OBSERVATIONS).entries_from(0, 10))


@pytest.mark.parametrize("text", ["", "{torn", "null", '{"schema_version": 1}'])
def test_a_damaged_checkpoint_is_skipped_to_the_one_before_spec_26(lake: Lake, text: str) -> None:
    observe(lake, "a", "b", "c")
    damage_checkpoint(lake, OBSERVATIONS, 2, text)
    head = lake.head(OBSERVATIONS)
    assert head.commit is not None
    assert (head.version, head.sequence, head.commit.sequence, head.commit_version) == (2, 3, 2, 2)
    assert head.checkpoint_sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert head.recovery is not None
    assert (head.recovery.after_sequence, head.recovery.upto_sequence) == (2, 3)
    assert head.recovery.reason.startswith("commit 3 (version 2): not a checkpoint")
    assert lake.log(OBSERVATIONS).find(3) is None


def test_several_damaged_checkpoints_are_skipped_down_to_the_beginning(lake: Lake) -> None:
    observe(lake, "a", "b")
    damage_checkpoint(lake, OBSERVATIONS, 0)
    damage_checkpoint(lake, OBSERVATIONS, 1)
    head = lake.head(OBSERVATIONS)
    assert (head.commit, head.sequence) == (None, 2)
    assert head.recovery is not None
    assert (head.recovery.after_sequence, head.recovery.upto_sequence) == (0, 2)


def test_a_checkpoint_that_contradicts_its_transaction_is_a_damaged_one(lake: Lake) -> None:
    observe(lake, "a", "b")
    first = lake.log(OBSERVATIONS).commits()[-1].checkpoint
    damage_checkpoint(lake, OBSERVATIONS, 1, first.to_json())
    assert lake.head(OBSERVATIONS).recovery == Recovery(1, 2, "commit 2 (version 1): its checkpoint says sequence 1")


def test_a_newer_platforms_checkpoint_is_refused_and_not_skipped_spec_37(lake: Lake) -> None:
    observe(lake, "a", "b")
    newer = replace(lake.log(OBSERVATIONS).commits()[0].checkpoint, schema_version=SCHEMA_VERSION + 1)
    damage_checkpoint(lake, OBSERVATIONS, 1, newer.to_json())
    with pytest.raises(InvariantError, match="update the platform before it writes this table"):
        lake.head(OBSERVATIONS)


def test_recovery_reads_back_at_most_a_hundred_commits(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "SEARCH_DEPTH", 3)
    observe(lake, "a", "b", "c", "d")
    for version in (1, 2, 3):
        damage_checkpoint(lake, OBSERVATIONS, version)
    with pytest.raises(InvariantError, match="none of the newest 3 commits has a checkpoint that can be read"):
        lake.head(OBSERVATIONS)


def test_an_upstream_commit_that_was_made_again_is_not_mistaken_for_the_one_consumed(lake: Lake) -> None:
    commit(lake, RAW_RECORDS)
    commit(lake, OBSERVATIONS, windows=lake.plan(OBSERVATIONS, consume=[RAW_RECORDS]).windows)
    assert lake.plan(OBSERVATIONS, consume=[RAW_RECORDS]).is_empty
    made = lake.log(RAW_RECORDS).commits()[0].checkpoint
    damage_checkpoint(lake, RAW_RECORDS, 0, replace(made, nonce="of the second attempt").to_json())
    with pytest.raises(InvariantError, match=r"raw_records: commit 1 \(version 0\) is not the one that was consumed"):
        lake.plan(OBSERVATIONS, consume=[RAW_RECORDS])


def test_whoever_builds_on_a_head_finds_it_on_disk_spec_97(lake: Lake, synced: Counter[str]) -> None:
    """A run may have died between its commit and its sync: the next one makes good for it before it goes on."""
    observe(lake, "a")
    lake.head(OBSERVATIONS)
    data_files = [Path(file).name for file in DeltaTable(lake.log(OBSERVATIONS).uri).file_uris()]
    log_files = [commit_file(lake, OBSERVATIONS, 0).name, "_delta_log", "observations", Path(lake.uri).name]
    assert synced == Counter([*data_files, *log_files])


def test_what_lies_between_two_commits_is_synced_with_the_second(lake: Lake, synced: Counter[str]) -> None:
    observe(lake, "a", "b")
    table = DeltaTable(lake.log(OBSERVATIONS).uri)
    table.optimize.compact()
    observe(lake, "c")
    synced.clear()
    lake.log(OBSERVATIONS).make_durable(2, 3)
    live = {Path(file).name for file in DeltaTable(table.table_uri).file_uris()}
    assert len(live) == 2
    assert live | {commit_file(lake, OBSERVATIONS, v).name for v in (2, 3)} <= set(synced)
    assert commit_file(lake, OBSERVATIONS, 1).name not in synced
