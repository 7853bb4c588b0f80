"""Tracks become ephemerides: the fleet is screened on them, assessments consume them, and a replay makes the same."""

from pathlib import Path

from pyspark.sql import SparkSession

from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS, CONJUNCTION_CANDIDATES
from sda_platform.fusion.tables import TRACKS
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES
from sda_platform.orchestration.replaying import replay_lake
from sda_platform.simulation.world import simulate
from sda_platform_tests.support.platform_run import Platform, correctness
from sda_platform_tests.support.segments import START_NS, after, catalogue_of, land
from sda_platform_tests.support.simulated_chain import FLEET

SECONDS = 240
OBJECTS = FLEET[:8]


def test_the_fleet_is_screened_on_ephemerides_of_its_tracks(tmp_path: Path, spark: SparkSession) -> None:
    catalogue = catalogue_of(OBJECTS)
    platform = Platform(tmp_path, spark, after(0), ScreeningResource(horizon_h=6.0, threshold_km=100.0))
    assert land(platform.zone("elements"), "catalogue.csv", catalogue)
    platform.run("catalog_to_alerts")
    platform.land(
        simulate("nominal", start_time_ns=START_NS, duration_s=SECONDS, seed=3, objects=OBJECTS, catalogue=catalogue)
    )
    platform.at(after(SECONDS))
    platform.run("observations_to_alerts")
    assert platform.rows(TRACKS, "norad_id").num_rows

    result = platform.run("orbit_determination", only=[REFINED_EPHEMERIDES.name])
    assert all(correctness(result).values()), correctness(result)
    refined = platform.rows(REFINED_EPHEMERIDES, "norad_id", "position_sigma_m", "published_sigma_m")
    assert refined.num_rows
    result = platform.run("catalog_to_alerts")
    assert all(correctness(result).values()), correctness(result)
    screened = platform.lake.log(CONJUNCTION_CANDIDATES).commits()[0].manifest
    assert {w.table: w.upto_sequence for w in screened.windows}[REFINED_EPHEMERIDES.name] == 1
    assert screened.counts["with_refined_ephemeris"] == refined.num_rows
    assessed = platform.lake.log(CONJUNCTION_ASSESSMENTS).commits()[0].manifest
    assert {w.table: w.upto_sequence for w in assessed.windows}[REFINED_EPHEMERIDES.name] == 1

    tables = (REFINED_EPHEMERIDES, CONJUNCTION_CANDIDATES, CONJUNCTION_ASSESSMENTS)
    resources = platform.definitions.resources or {}
    found = replay_lake(platform.lake, str(tmp_path / "shadow"), resources=resources, tables=tables)
    assert [line for each in found for line in each.differences] == []
