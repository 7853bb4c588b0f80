"""A commit that would not name its run, code, trigger and operator is refused before anything of it is written."""

from pathlib import Path
from typing import Any

import pytest

from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake import planning
from sda_platform.lake.bypasses import bypasses
from sda_platform.lake.errors import MissingLineage
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import SegmentRef
from sda_platform.orchestration.resources import origin_of
from sda_platform_tests.support.delta_tables import commit, lake_at, rows_of, with_delta_rs

ORIGIN = {"trigger": "schedule nightly", "operator": "sda@host"}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    lake = lake_at(tmp_path)
    lake.requires_lineage, lake.engine, lake.run_id, lake.origin = True, with_delta_rs, "a run", ORIGIN
    monkeypatch.setattr(lake, "frame", lambda _table, rows, *, stamped: rows)
    return lake


def append(lake: Lake) -> Any:
    segment = SegmentRef("radar", "a", "0" * 64, 1, 1)
    plan = lake.plan_landing(OBSERVATIONS, lake.head(OBSERVATIONS), [segment])
    return lake.append(plan, rows_of(OBSERVATIONS, [{"observation_id": "a"}]))


def test_a_commit_names_run_code_trigger_and_operator__DL6_F8(lake: Lake) -> None:
    manifest = append(lake).commit.manifest
    assert (manifest.run_id, manifest.origin, manifest.missing_lineage()) == ("a run", ORIGIN, [])
    assert list(bypasses(lake.log(OBSERVATIONS), -1)) == []


@pytest.mark.parametrize(
    ("without", "told"),
    [
        ({"run_id": "none"}, "no run id"),
        ({"run_id": ""}, "no run id"),
        ({"origin": None}, "no trigger and no operator"),
        ({"origin": {"trigger": "sensor x", "operator": ""}}, "no operator"),
    ],
)
def test_a_commit_without_lineage_writes_nothing__DL6_F8(lake: Lake, without: dict[str, Any], told: str) -> None:
    for name, value in without.items():
        setattr(lake, name, value)
    with pytest.raises(MissingLineage, match=f"commit 1 would name {told}: write from a run"):
        append(lake)
    assert lake.log(OBSERVATIONS).version() == -1
    assert list(Path(lake.uri).rglob("*.parquet")) == []


def test_a_commit_of_code_without_a_version_writes_nothing__DL6_F8(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "code_version", lambda: "")
    with pytest.raises(MissingLineage, match="no code version"):
        append(lake)


def test_a_commit_that_bypassed_the_rule_is_found_at_night__DL2_I13(lake: Lake) -> None:
    commit(lake, OBSERVATIONS, run_id="none", code_version="1", origin=ORIGIN, sequence=1, previous_sha256="genesis")
    assert list(bypasses(lake.log(OBSERVATIONS), -1)) == ["observations: commit 1 names no run id"]


@pytest.mark.parametrize(
    ("tags", "trigger"),
    [
        ({"dagster/sensor_name": "raw_records_landed"}, "sensor raw_records_landed"),
        ({"dagster/schedule_name": "nightly"}, "schedule nightly"),
        ({}, "person"),
    ],
)
def test_the_trigger_of_a_run_follows_from_its_tags(tags: dict[str, str], trigger: str) -> None:
    assert origin_of(tags)["trigger"] == trigger
    assert origin_of(tags)["operator"]
    assert origin_of({**tags, "user": "ada"})["operator"] == "ada"
