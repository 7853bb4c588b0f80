"""The checks of conjunction, each shown to turn red: what they guard, whole and then broken."""

from pathlib import Path
from typing import Any

import pytest

import sda_platform.definitions  # noqa: F401  # declares the checks of all tables
from sda_platform.conjunction.checks import risks_follow_probabilities
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
    SCREENED_FROM,
)
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform.orchestration.declarations import declared
from sda_platform.orchestration.resources import LakeResource
from sda_platform.spark.session import SparkResource
from sda_platform_tests.support.delta_tables import commit, genesis_window, lake_at
from sda_platform_tests.support.segments import START_NS, after

DAY_S = 86_400


def assessed(event: str, pc: float, risk: str, pc_2d: float | None, valid: bool | None) -> dict[str, Any]:
    facts = {"collision_probability": pc, "risk": risk, "probability_2d": pc_2d, "is_2d_valid": valid}
    return {"event_id": event, "sequence": 0, "op": "insert", "tca_time_ns": START_NS, **facts}


def wrong_risks(lake: Lake) -> list[str]:
    log = lake.log(CONJUNCTION_ASSESSMENTS)
    return risks_follow_probabilities(lake, log, log.commits())


def test_colours_that_follow_from_their_probabilities_are_in_order(tmp_path: Path) -> None:
    lake = lake_at(tmp_path)
    sound = [
        assessed("a", 1e-4, "red", 1e-4, True),
        assessed("b", 1e-7, "yellow", 3e-6, False),
        assessed("c", 9e-8, "green", None, None),
        assessed("d", 9e-8, "yellow", 9e-8, None),
    ]
    withdrawn = assessed("gone", 1e-3, "green", 1e-3, True)
    commit(lake, CONJUNCTION_ASSESSMENTS, [*sound, withdrawn, {**withdrawn, "op": "retract"}])
    assert wrong_risks(lake) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (assessed("x", 1e-4, "yellow", 1e-4, True), "1 assessments do not have the risk level of their Pc, such as x"),
        (assessed("x", 9e-8, "yellow", 9e-8, True), "1 assessments do not have the risk level of their Pc, such as x"),
        (assessed("x", 1e-4, "green", 1e-4, None), "1 assessments do not have the risk level of their Pc, such as x"),
        (assessed("x", 2e-4, "red", 1e-4, True), "1 assessments have a valid 2D Pc and another one, such as x"),
        (assessed("x", 2e-4, "red", None, True), "1 assessments have a valid 2D Pc and another one, such as x"),
    ],
)
def test_a_colour_or_a_pc_that_does_not_follow_is_reported(tmp_path: Path, wrong: dict[str, Any], told: str) -> None:
    lake = lake_at(tmp_path)
    commit(lake, CONJUNCTION_ASSESSMENTS, [assessed("a", 1e-4, "red", 1e-4, True), wrong])
    assert wrong_risks(lake) == [told]


def freshness(lake: Lake, home: Path, table: Table) -> bool:
    """The outcome of the table's own check `data_is_fresh`."""
    lake.clock.save(home)
    resource = LakeResource(uri=lake.uri, home=str(home), spark=SparkResource(remote="local"))
    (check,) = (c for c in declared(table).checks if any(key.name == "data_is_fresh" for key in c.check_keys))
    results: Any = check(lake=resource)
    return bool({result.check_name: result for result in results}["data_is_fresh"].passed)


@pytest.mark.parametrize(
    ("table", "source"),
    [
        (CONJUNCTION_ASSESSMENTS, CONJUNCTION_CANDIDATES),
        (CONJUNCTION_ASSESSMENTS, TRACKS),
        (CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS),
        (ALERT_DELIVERIES, CONJUNCTION_ALERTS),
    ],
)
def test_what_waits_for_too_long_is_reported(tmp_path: Path, table: Table, source: Table) -> None:
    commit(lake_at(tmp_path / "lake"), source)
    inputs = {CONJUNCTION_ASSESSMENTS.name: (CONJUNCTION_CANDIDATES, TRACKS)}.get(table.name, (source,))
    windows = [genesis_window(each, 1 if each is source else 0) for each in inputs]
    commit(lake_at(tmp_path / "lake"), table, windows=windows)
    late = lake_at(tmp_path / "lake", now_ns=after(DAY_S))
    assert freshness(late, tmp_path, table)
    commit(lake_at(tmp_path / "lake"), source)
    assert not freshness(late, tmp_path, table)


def test_a_screening_that_is_too_old_is_reported(tmp_path: Path) -> None:
    commit(lake_at(tmp_path / "lake"), CONJUNCTION_CANDIDATES, watermarks={SCREENED_FROM: START_NS})
    for hours, is_fresh in ((11, True), (13, False)):
        lake = lake_at(tmp_path / "lake", now_ns=after(hours * 3600))
        assert freshness(lake, tmp_path, CONJUNCTION_CANDIDATES) == is_fresh


def test_messages_of_others_are_missed_only_once_some_have_come(tmp_path: Path) -> None:
    late = lake_at(tmp_path / "lake", now_ns=after(4 * DAY_S))
    assert freshness(late, tmp_path, RECEIVED_CDMS)
    row = {"segment_sha256": "s", "record_number": 0, "received_time_ns": START_NS}
    commit(lake_at(tmp_path / "lake"), RECEIVED_CDMS, [row])
    assert freshness(lake_at(tmp_path / "lake", now_ns=after(2 * DAY_S)), tmp_path, RECEIVED_CDMS)
    assert not freshness(late, tmp_path, RECEIVED_CDMS)
