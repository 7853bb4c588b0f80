"""The audits that need no engine, their commands and events."""

import json
import os
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner
from deltalake import CommitProperties, DeltaTable, write_deltalake

from sda_platform import audit_log, json_lines
from sda_platform.cli.main import main
from sda_platform.definitions import default_resources, defs
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.restoration import RESTORED
from sda_platform.observability.audits.audits import AUDITS, conservation, deep_verification, lineage, restore_drill
from sda_platform.observability.audits.outcome import AuditOutcome, AuditScope
from sda_platform.retention_settings import RetentionSettings
from sda_platform.runtime.backup import back_up
from sda_platform.settings import Settings
from sda_platform.units import DAY_NS
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.unit.history.lakes import add


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def lake(home: Path) -> Lake:
    return lake_at(home / "lake")


def scope(home: Path, lake: Lake) -> AuditScope:
    settings = Settings(home=home)
    return AuditScope(settings, lake, default_resources(settings), lake.clock.now_ns())


def raw(lake: Lake, name: str, *, records: int) -> None:
    row = {"segment_sha256": name, "segment_name": name, "record_number": 0, "received_time_ns": lake.clock.now_ns()}
    commit(lake, RAW_RECORDS, [row], segments=[SegmentRef("radar", name, name, 10, records)])


def test_conservation_names_a_segment_of_which_a_row_is_missing_spec_80(home: Path, lake: Lake) -> None:
    raw(lake, "whole", records=1)
    assert conservation(scope(home, lake)).problems == ()
    raw(lake, "torn", records=2)
    outcome = conservation(scope(home, lake))
    assert any("torn: 2 records landed, 1 rows stored" in problem for problem in outcome.problems)
    assert any("whole was counted as acknowledged" in problem for problem in outcome.problems), "its file is gone"
    assert outcome.facts == {"commits_reviewed": 2}


def test_deep_verification_and_the_drill_find_a_data_file_that_is_gone_spec_99(home: Path, lake: Lake) -> None:
    commit(lake, OBSERVATIONS, [{"observation_id": "a"}])
    assert deep_verification(scope(home, lake)).problems == ()
    drill = restore_drill(scope(home, lake))
    assert drill.problems == () and drill.facts["rows"] == 1
    next((home / "lake" / "observations").glob("*.parquet")).unlink()
    (problem,) = deep_verification(scope(home, lake)).problems
    assert problem.startswith("observations: ") and "`sda lake verify --deep` shows all" in problem
    assert restore_drill(scope(home, lake)).problems
    assert not list(home.glob("lake.audit-*")), "the copy is removed"


def test_the_drill_restores_an_older_lake_whose_tables_fit_together_A1_11(home: Path, lake: Lake) -> None:
    for n in range(6):
        moment = lake_at(home / "lake", now_ns=lake.clock.now_ns() + n)
        raw(moment, f"segment {n}", records=1)
        commit(moment, OBSERVATIONS, [{"observation_id": str(n)}], windows=moment.plan(OBSERVATIONS).windows)
    done = restore_drill(scope(home, lake))
    assert (done.problems, done.skipped, done.has_passed) == ((), (), True)
    assert done.facts["commits_lost"] == 6, "of both tables the newest three"
    assert done.facts["rows"] == 6


def test_the_drill_finds_rows_that_today_s_lake_has_lost_A1_11(home: Path, lake: Lake) -> None:
    for n in range(4):
        commit(lake_at(home / "lake", now_ns=lake.clock.now_ns() + n), OBSERVATIONS, [{"observation_id": str(n)}])
    DeltaTable(lake.log(OBSERVATIONS).uri).delete("observation_id = '0'")
    (problem,) = restore_drill(scope(home, lake)).problems
    assert "2 rows up to commit 2 in the restored lake, 1 in the lake" in problem


def test_the_drill_restores_the_newest_backup_and_names_what_has_changed_in_it(home: Path, lake: Lake) -> None:
    target = home.parent / f"{home.name}-backups"
    settings = Settings(home=home, retention=RetentionSettings(backup=str(target)))

    def drilled() -> AuditOutcome:
        return restore_drill(replace(scope(home, lake), settings=settings))

    assert [each.partition(" has ")[2] for each in drilled().problems] == ["no complete backup: `sda backup` makes one"]
    for n in range(2):
        commit(lake_at(home / "lake", now_ns=lake.clock.now_ns() + n), OBSERVATIONS, [{"observation_id": str(n)}])
        if n == 0:
            backup = back_up(settings, target).path
    done = drilled()
    assert (done.problems, done.facts["restored"], done.facts["rows"]) == ((), str(backup), 1)
    file = next((backup / "lake" / "observations").glob("*.parquet"))
    whole = file.read_bytes()
    file.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    assert f"{file} is not as it was backed up: `sda backup {target} --whole` copies all anew" in drilled().problems
    file.unlink()
    assert any(str(file) in each for each in drilled().problems)


def test_a_drill_that_did_nothing_has_not_passed_and_states_why_A1_11(
    home: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(lake, OBSERVATIONS, [{"observation_id": "a"}])
    monkeypatch.setattr("sda_platform.observability.audits.restore_drill._DRILL_BYTES", 10)
    done = restore_drill(scope(home, lake))
    assert (done.has_passed, done.problems) == (False, ())
    assert done.summary.startswith("not done: observations: more than 10 bytes together")
    empty = restore_drill(scope(home / "none", lake_at(home / "none" / "lake")))
    assert (empty.has_passed, empty.summary) == (False, "not done: the lake is not on a local disk, or empty")
    assert not conservation(scope(home / "none", lake_at(home / "none" / "lake"))).has_passed


def test_a_drill_that_leaves_out_a_large_table_names_it_A1_11(
    home: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(lake, OBSERVATIONS, [{"observation_id": "a"}])
    commit(lake, RAW_RECORDS, [{"segment_sha256": "a"}])
    commit(lake, RAW_RECORDS, [{"segment_sha256": "b"}])
    small = sum(file.stat().st_size for file in (home / "lake" / "observations").rglob("*") if file.is_file())
    monkeypatch.setattr("sda_platform.observability.audits.restore_drill._DRILL_BYTES", small)
    done = restore_drill(scope(home, lake))
    assert any(each.startswith("raw_records: more than") for each in done.skipped)
    assert done.facts["tables"] == 1


def test_a_writer_that_bypasses_lineage_is_found_and_a_compaction_is_none__DL2_I13(home: Path, lake: Lake) -> None:
    for number in range(3):
        add(lake, OBSERVATIONS, {"observation_id": str(number)})
    table = DeltaTable(lake.log(OBSERVATIONS).uri)
    table.optimize.compact()
    assert lineage(scope(home, lake)).problems == ()
    table.delete("observation_id = '1'")
    rows = table.to_pyarrow_table()
    (problem,) = lineage(scope(home, lake)).problems
    assert problem.startswith("observations: version 4 (DELETE by ")
    assert "`sda lake diff observations 3 4` shows them" in problem
    restored = CommitProperties(custom_metadata={"userMetadata": f"{RESTORED}commit_sequence = 2"})
    write_deltalake(table, rows.slice(0, 1), mode="append", commit_properties=restored)
    assert len(lineage(scope(home, lake)).problems) == 1
    add(lake, OBSERVATIONS, {"observation_id": "4"})
    today = scope(home, lake)
    later = replace(today, day_ns=today.day_ns + 2 * DAY_NS)
    assert lineage(later).problems == (), "it is of another day"
    commit(lake, OBSERVATIONS, [{"observation_id": "5"}])
    assert lineage(scope(home, lake)).problems[0] == (
        "observations: commit 5 names no code version and no trigger and no operator"
    )


def test_an_audit_removes_what_a_killed_one_left_a_day_ago(home: Path, lake: Lake) -> None:
    commit(lake, OBSERVATIONS, [{"observation_id": "a"}])
    audited = scope(home, lake)
    old, foreign = home / f"lake.audit-{audited.day_ns}", home / "lake.audit-notes"
    for each in (old, foreign):
        (each / "observations").mkdir(parents=True)
    assert restore_drill(audited).problems == ()
    assert sorted(home.glob("lake.audit-*")) == [foreign]


def test_an_audit_is_a_command_that_leaves_an_event_spec_80(home: Path, lake: Lake) -> None:
    lake.clock.save(home)
    raw(lake, "torn", records=2)
    done = CliRunner().invoke(main, ["--home", str(home), "lake", "audit", "conservation", "deep_verification"])
    assert done.exit_code == 1, done.output
    assert "torn: 2 records landed, 1 rows stored" in done.output
    assert "deep_verification: passed" in done.output
    CliRunner().invoke(main, ["--home", str(home), "lake", "verify"])
    listed = CliRunner().invoke(main, ["--home", str(home), "lake", "audit", "--history", "--json"]).output.splitlines()
    events = [json.loads(line) for line in listed]
    assert [(event["operation"], event["arguments"].get("audit")) for event in events] == [
        ("audit", "conservation"),
        ("audit", "deep_verification"),
        ("verify", None),
    ]
    assert events[0]["by"] == audit_log.user() and "problems, such as" in events[0]["outcome"]


def test_an_unknown_audit_is_refused_with_those_that_there_are(home: Path) -> None:
    done = CliRunner().invoke(main, ["--home", str(home), "lake", "audit", "conversation"])
    assert done.exit_code == 2 and "conservation" in done.output


def test_an_event_survives_a_line_that_was_cut_short(tmp_path: Path) -> None:
    audit_log.record(tmp_path, "verify", {}, "no table is damaged", by="a")
    log = tmp_path / json_lines.AUDIT_LOG
    os.truncate(log, log.stat().st_size - 10)
    audit_log.record(tmp_path, "replay", {"table": "tracks"}, "identical", by="b")
    assert [(event.by, event.operation) for event in audit_log.events(tmp_path)] == [("b", "replay")]


def test_every_audit_has_an_asset_with_a_verdict_a_job_and_a_place_in_the_night() -> None:
    names = {audit.name for audit in AUDITS}
    keys = {spec.key for spec in defs.resolve_all_asset_specs() if spec.key.path[0] == "audit"}
    assert keys == {dg.AssetKey(["audit", name]) for name in names}
    jobs = {job.name for job in defs.get_repository_def().get_all_jobs()}
    assert {f"audit_{name}" for name in names} <= jobs
    assert set(defs.resolve_job_def("audits").asset_layer.executable_asset_keys) == keys
