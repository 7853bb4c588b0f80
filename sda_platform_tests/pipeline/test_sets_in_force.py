"""The catalogue holds the element set in force: one with an epoch ahead waits, and takes over without a landing."""

import csv
import io
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from sda_platform.catalog.tables import (
    CAME_INTO_FORCE,
    CATALOG_EDITS,
    ELEMENT_SETS,
    HELD_ELEMENT_SETS,
    ORBITAL_CATALOG,
    SATELLITE_CATALOG,
)
from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import CHANGED_ROWS
from sda_platform.orchestration.replaying import replay_lake
from sda_platform.recovery.verification import current_keys
from sda_platform.replay.history import Span
from sda_platform_tests.support.platform_run import Platform, correctness, written
from sda_platform_tests.support.segments import START_NS, after, catalogue_ids, catalogue_of, land

CANDIDATES = [ELEMENT_SETS.name, ORBITAL_CATALOG.name, CONJUNCTION_CANDIDATES.name]
HOUR_S = 3600.0
OBJECT = 25544


def sets_at(hours_after_start: dict[str, float]) -> bytes:
    """Element sets of one object, by name, with epochs so many hours after the start."""
    (row,) = csv.DictReader(io.StringIO(catalogue_of([OBJECT]).decode()))
    start = datetime.fromisoformat("2024-11-01T00:00:00")
    out = io.StringIO()
    writer = csv.DictWriter(out, row, lineterminator="\n")
    writer.writeheader()
    for name, hours in hours_after_start.items():
        writer.writerow({**row, "OBJECT_NAME": name, "EPOCH": (start + timedelta(hours=hours)).isoformat()})
    return out.getvalue().encode()


def name_in_force(platform: Platform) -> str:
    rows = platform.rows(ORBITAL_CATALOG, "norad_id", "object_name").to_pylist()
    (name,) = (row["object_name"] for row in rows if row["norad_id"] == OBJECT)
    return str(name)


def test_a_set_comes_into_force_at_its_epoch_and_is_screened_though_nothing_lands_A1(
    tmp_path: Path, spark: SparkSession
) -> None:
    platform = Platform(tmp_path, spark, START_NS, ScreeningResource(horizon_h=24.0))
    assert land(platform.zone("elements"), "others.csv", catalogue_of(catalogue_ids()[:50]), seconds=1.0)
    segments = {"SEGMENT 3 [PM]": 12.0, "SEGMENT 1": -1.0, "SEGMENT 2": 6.0}
    assert land(platform.zone("elements"), "segments.csv", sets_at(segments), seconds=2.0)

    def run_at(seconds: float) -> tuple[str, int]:
        platform.at(after(seconds))
        result = platform.run("catalog_to_alerts", only=CANDIDATES)
        assert all(correctness(result).values())
        return name_in_force(platform), written(result)[ORBITAL_CATALOG.name]

    assert run_at(10.0) == ("SEGMENT 1", 51)
    assert platform.rows(ELEMENT_SETS).num_rows == 53
    before = platform.versions([ORBITAL_CATALOG])
    assert run_at(6 * HOUR_S - 61) == ("SEGMENT 1", 0)
    assert platform.versions([ORBITAL_CATALOG]) == before
    assert run_at(6 * HOUR_S - 60) == ("SEGMENT 2", 1)
    consumed = platform.lake.log(CONJUNCTION_CANDIDATES).commits()[0].manifest.window(ORBITAL_CATALOG.name)
    assert consumed is not None
    assert consumed.upto_sequence == 2

    assert land(platform.zone("elements"), "late.csv", sets_at({"SEGMENT 0": -2.0}), seconds=3.0)
    assert run_at(7 * HOUR_S) == ("SEGMENT 2", 0)
    assert run_at(30 * HOUR_S) == ("SEGMENT 3 [PM]", 1)


def test_a_commit_of_sets_that_came_into_force_names_its_cause_and_is_replayed_A1(
    tmp_path: Path, spark: SparkSession
) -> None:
    platform = Platform(tmp_path, spark, START_NS)
    assert land(platform.zone("elements"), "segments.csv", sets_at({"A": -1.0, "B": 6.0, "C": 5.0}), seconds=2.0)
    for hours in (1, 7, 8):
        platform.at(after(hours * HOUR_S))
        result = platform.run("catalog_to_alerts", only=[ELEMENT_SETS.name, ORBITAL_CATALOG.name])
        assert all(correctness(result).values())
    log = platform.lake.log(ORBITAL_CATALOG)
    second, first = (commit.manifest for commit in log.commits())
    assert name_in_force(platform) == "B"
    assert first.counts == {CAME_INTO_FORCE: 0, CHANGED_ROWS: 1}
    assert second.counts == {CAME_INTO_FORCE: 2, CHANGED_ROWS: 1}
    assert {each.table: (each.after_sequence, each.upto_sequence) for each in second.windows} == {
        ELEMENT_SETS.name: (1, 1),
        HELD_ELEMENT_SETS.name: (0, 0),
        CATALOG_EDITS.name: (0, 0),
        SATELLITE_CATALOG.name: (0, 0),
    }

    platform.at(after(400 * 24 * HOUR_S))
    for name, span in {"both": Span(), "second": Span(from_sequence=2)}.items():
        (found,) = replay_lake(platform.lake, str(tmp_path / name), {}, tables=[ORBITAL_CATALOG], span=span)
        assert (found.last_sequence, found.differences) == (2, ())
        again = TableLog(ORBITAL_CATALOG, str(tmp_path / name / ORBITAL_CATALOG.name))
        assert again.commits()[0].manifest.to_json() == second.to_json()
        assert again.rows() == log.rows()


def test_each_time_of_the_horizon_is_screened_with_the_set_in_force_then_A1(
    tmp_path: Path, spark: SparkSession
) -> None:
    """A set that lands hours before its epoch counts from its epoch on, in the same run."""
    platform = Platform(tmp_path, spark, START_NS, ScreeningResource(horizon_h=12.0, threshold_km=600.0, scope="all"))
    assert land(platform.zone("elements"), "others.csv", catalogue_of(catalogue_ids()[:50]), seconds=1.0)
    assert land(platform.zone("elements"), "first.csv", sets_at({"FIRST": -1.0}), seconds=2.0)

    def epochs_used() -> set[tuple[bool, bool]]:
        """Of the current candidates of the object: whether the TCA, and the epoch used, are of the later half."""
        journal = platform.rows(CONJUNCTION_CANDIDATES)
        current = current_keys(platform.lake.log(CONJUNCTION_CANDIDATES)).column("event_id").to_pylist()
        return {
            (row["tca_time_ns"] >= after(6 * HOUR_S - 60), row[f"elements_epoch_{n}_ns"] > after(0))
            for row in journal.to_pylist()
            for n in (1, 2)
            if row[f"norad_id_{n}"] == OBJECT and row["op"] == "insert" and row["event_id"] in current
        }

    platform.at(after(10.0))
    assert all(correctness(platform.run("catalog_to_alerts", only=CANDIDATES)).values())
    assert epochs_used() == {(False, False), (True, False)}
    assert land(platform.zone("elements"), "ahead.csv", sets_at({"AHEAD": 6.0}), seconds=3.0)
    platform.at(after(20.0))
    assert all(correctness(platform.run("catalog_to_alerts", only=CANDIDATES)).values())
    assert name_in_force(platform) == "FIRST"
    commit = platform.lake.log(CONJUNCTION_CANDIDATES).commits()[0]
    assert commit.manifest.counts["changed"] == 1
    newest = platform.rows(CONJUNCTION_CANDIDATES).to_pylist()
    inserted = [row for row in newest if row["commit_sequence"] == commit.sequence and row["op"] == "insert"]
    assert inserted
    for row in inserted:
        (n,) = (n for n in (1, 2) if row[f"norad_id_{n}"] == OBJECT)
        is_ahead = row["tca_time_ns"] >= after(6 * HOUR_S - 60)
        assert (row[f"elements_epoch_{n}_ns"] == after(6 * HOUR_S)) is is_ahead
    assert epochs_used() >= {(False, False), (True, True)}
