"""Reading a table's log: what is read belongs to the version that was opened, whatever others commit or damage."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from upath import UPath

from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake import delta_log, durable
from sda_platform.lake.errors import InvariantError, UnreadableManifest
from sda_platform.lake.kept_commits import KeptCommits
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SCHEMA_VERSION
from sda_platform_tests.support.delta_tables import commit, commit_file, damage_checkpoint, foreign, lake_at


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_at(tmp_path)


def observe(lake: Lake, *names: str) -> None:
    for name in names:
        commit(lake, OBSERVATIONS, [{"observation_id": name}])


VACUUM = ("VACUUM START", "VACUUM END")


def test_commits_that_come_after_opening_are_not_seen_under_wrong_versions(lake: Lake) -> None:
    observe(lake, "a", "b", "c")
    log = lake.log(OBSERVATIONS)
    opened = DeltaTable(log.uri).version()
    observe(lake, "after")
    assert [(c.version, c.sequence) for c in log.commits_from(opened)] == [(2, 3), (1, 2), (0, 1)]
    assert [c.version for c in log.commits()] == [3, 2, 1, 0]
    found = log.find(2)
    assert found is not None
    assert (found.version, log.find(5)) == (1, None)


def test_a_commit_of_now_is_found_without_a_look_at_those_that_left_the_log(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit asks for itself, which in an object store would be one more listing."""
    observe(lake, "a", "b", "c")

    def asked(_kept: KeptCommits, sequence: int) -> None:
        raise AssertionError(sequence)

    monkeypatch.setattr(KeptCommits, "version_of", asked)
    log = lake.log(OBSERVATIONS)
    assert [found and found.version for found in map(log.find, (1, 2, 3))] == [0, 1, 2]


def test_a_torn_commit_is_reported_by_table_and_version(lake: Lake) -> None:
    observe(lake, "a")
    commit_file(lake, OBSERVATIONS, 0).write_text('{"commitInfo":{"timest')
    with pytest.raises(InvariantError, match="observations: version 0 of the log is not readable"):
        list(lake.log(OBSERVATIONS).commits_from(0))


@pytest.mark.parametrize("kept_bytes", [0, 4, 1000, -1])
def test_a_torn_data_file_is_reported_with_the_remedy(lake: Lake, kept_bytes: int) -> None:
    observe(lake, "a")
    log = lake.log(OBSERVATIONS)
    (data,) = Path(log.uri).glob("*.parquet")
    data.write_bytes(data.read_bytes()[:kept_bytes])
    with pytest.raises(
        InvariantError, match=r"observations: a data file is not as it was written .*`sda lake verify --deep`"
    ):
        log.rows(["observation_id"])
    with pytest.raises(InvariantError, match="observations: a data file is not as it was written"):
        log.some_rows_of((0, 1), 1)


@pytest.mark.parametrize("text", ["", "{torn", "null", f'{{"schema_version": {SCHEMA_VERSION}}}'])
def test_a_damaged_manifest_is_refused_by_name_with_the_remedy(lake: Lake, text: str) -> None:
    observe(lake, "a", "b", "c")
    damage_checkpoint(lake, OBSERVATIONS, 2, text)
    told = r"observations: the manifest of commit 3 \(version 2\) is damaged: not a manifest.* run `sda lake verify`"
    with pytest.raises(UnreadableManifest, match=told):
        lake.head(OBSERVATIONS)


def test_a_manifest_that_contradicts_its_transaction_is_a_damaged_one(lake: Lake) -> None:
    observe(lake, "a", "b")
    first = lake.log(OBSERVATIONS).commits()[-1].manifest
    damage_checkpoint(lake, OBSERVATIONS, 1, first.to_json())
    with pytest.raises(UnreadableManifest, match=r"commit 2 \(version 1\) is damaged: its sequence is 1"):
        lake.head(OBSERVATIONS)


def test_a_newer_platforms_manifest_is_refused_spec_37(lake: Lake) -> None:
    observe(lake, "a", "b")
    newer = replace(lake.log(OBSERVATIONS).commits()[0].manifest, schema_version=SCHEMA_VERSION + 1)
    damage_checkpoint(lake, OBSERVATIONS, 1, newer.to_json())
    with pytest.raises(InvariantError, match="update the platform before it writes this table"):
        lake.head(OBSERVATIONS)


def test_a_table_resumes_after_1500_commits_of_others_spec_53_D2(lake: Lake) -> None:
    commit(lake, RAW_RECORDS)
    commit(lake, OBSERVATIONS, windows=lake.plan(OBSERVATIONS).windows)
    for table in (RAW_RECORDS, OBSERVATIONS):
        foreign(lake, table, *VACUUM * 750)
    head = lake.head(RAW_RECORDS)
    assert (head.version, head.sequence, head.commit_version) == (1500, 1, 0)
    assert lake.plan(OBSERVATIONS).is_empty
    commit(lake, RAW_RECORDS)
    plan = lake.plan(OBSERVATIONS)
    assert (plan.sequence, plan.window(RAW_RECORDS).upto_sequence) == (2, 2)
    assert [c.sequence for c in lake.log(RAW_RECORDS).commits(2)] == [2, 1]


def test_the_list_of_commits_counts_own_commits_and_ends_above_a_sequence_D2(lake: Lake) -> None:
    for name in "abcde":
        observe(lake, name)
        foreign(lake, OBSERVATIONS, *VACUUM, "OPTIMIZE")
    log = lake.log(OBSERVATIONS)
    assert [c.sequence for c in log.commits(3)] == [5, 4, 3]
    assert [c.sequence for c in log.commits(None, after=1)] == [5, 4, 3, 2]


def test_a_log_that_was_cut_above_the_newest_commit_is_refused_spec_84(lake: Lake) -> None:
    observe(lake, "a")
    foreign(lake, OBSERVATIONS, *VACUUM)
    DeltaTable(lake.log(OBSERVATIONS).uri).create_checkpoint()
    commit_file(lake, OBSERVATIONS, 0).unlink()
    with pytest.raises(InvariantError, match="sequence 1 was committed, but its newest manifest is none"):
        lake.head(OBSERVATIONS)


def test_only_a_line_feed_ends_an_action_D21() -> None:
    text = '{"commitInfo":{"userMetadata":"a\u2028b\u0085c"}}\n{"txn":{"appId":"x","version":1}}'
    kinds = [kind for kind, _ in delta_log.actions(text, "commitInfo", "txn")]
    assert kinds == ["commitInfo", "txn"]


def test_an_upstream_commit_that_was_made_again_is_not_mistaken_for_the_one_consumed(lake: Lake) -> None:
    commit(lake, RAW_RECORDS)
    commit(lake, OBSERVATIONS, windows=lake.plan(OBSERVATIONS).windows)
    assert lake.plan(OBSERVATIONS).is_empty
    made = lake.log(RAW_RECORDS).commits()[0].manifest
    damage_checkpoint(lake, RAW_RECORDS, 0, replace(made, nonce="of the second attempt").to_json())
    with pytest.raises(InvariantError, match=r"raw_records: commit 1 \(version 0\) is not the one that was consumed"):
        lake.plan(OBSERVATIONS)


def test_whoever_builds_on_a_head_finds_it_on_disk_spec_97(lake: Lake, synced: Counter[str]) -> None:
    """A run may have been killed between its commit and its sync: the next one syncs first."""
    observe(lake, "a")
    lake.head(OBSERVATIONS)
    data_files = [Path(file).name for file in DeltaTable(lake.log(OBSERVATIONS).uri).file_uris()]
    log_files = [commit_file(lake, OBSERVATIONS, 0).name, "_delta_log", "observations", Path(lake.uri).name]
    above = [folder.name for folder in durable.directories_above(UPath(lake.uri))]
    assert synced == Counter([*data_files, *log_files, *above])


def test_a_tables_first_commit_syncs_the_directories_that_it_may_have_made__D16(
    tmp_path: Path, synced: Counter[str]
) -> None:
    lake = lake_at(tmp_path / "new home" / "lake")
    observe(lake, "a")
    lake.head(OBSERVATIONS)
    assert {"lake", "new home", tmp_path.name} <= set(synced)
    observe(lake, "b")
    synced.clear()
    lake.log(OBSERVATIONS).make_durable(1, 1)
    assert "lake" in synced and "new home" not in synced


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


def test_versions_below_a_commit_whose_run_was_killed_are_synced_spec_97(lake: Lake, synced: Counter[str]) -> None:
    observe(lake, "a", "b")
    DeltaTable(lake.log(OBSERVATIONS).uri).optimize.compact()
    observe(lake, "c")
    synced.clear()
    lake.head(OBSERVATIONS)
    live = {Path(file).name for file in DeltaTable(lake.log(OBSERVATIONS).uri).file_uris()}
    assert len(live) == 2
    assert live | {commit_file(lake, OBSERVATIONS, v).name for v in (2, 3)} <= set(synced)
    assert commit_file(lake, OBSERVATIONS, 1).name not in synced
