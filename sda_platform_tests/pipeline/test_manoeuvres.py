"""A third party burns: its track shows it, the fleet is screened against the track, and an alert is delivered."""

from pathlib import Path
from typing import Any

import dagster as dg
from pyspark.sql import SparkSession

from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.sensors import request_screening
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS, CONJUNCTION_CANDIDATES
from sda_platform.fusion.tables import TRACKS
from sda_platform.lake.table import Table
from sda_platform.orchestration.replaying import replay_lake
from sda_platform.recovery.verification import current_keys
from sda_platform.simulation.observers import ObservingPlan
from sda_platform.simulation.scenarios import Incidents
from sda_platform.simulation.sky import Sky
from sda_platform.simulation.world import simulate
from sda_platform_tests.support.platform_run import Platform, correctness
from sda_platform_tests.support.segments import catalogue_of, land
from sda_platform_tests.support.third_party import (
    AROUND,
    BEFORE_TCA_NS,
    ERROR_S,
    HOUR_NS,
    SAME_EVENT_NS,
    START_NS,
    approaches,
    around,
    burn_to,
    catalogue_table,
    propagator_of,
)

PAIR = [41774, 61063]
BEFORE_S, AFTER_S = 900, 300


def test_a_suspected_manoeuvre_is_screened_on_the_track_and_alerted(tmp_path: Path, spark: SparkSession) -> None:
    table = catalogue_table()
    both = table.filter([number in PAIR for number in table["norad_id"].to_pylist()])
    begin_ns = START_NS + HOUR_NS // 3 + BEFORE_TCA_NS
    (approach,) = approaches(both, propagator_of(both), begin_ns, begin_ns + 6 * HOUR_NS)
    burn_ns = approach.tca_ns - BEFORE_TCA_NS
    sky = Sky.of_catalogue(table, objects=PAIR, seed=1, catalogue_error_s=ERROR_S, start_time_ns=START_NS)
    burn, _, _ = burn_to(sky, PAIR[1], burn_ns, approach.tca_ns, 10.0)
    objects = around(table, PAIR, burn_ns, 24)

    platform = Platform(tmp_path, spark, burn_ns - BEFORE_S * 10**9, ScreeningResource(horizon_h=12.0))
    assert land(platform.zone("elements"), "catalogue.csv", catalogue_of(objects))
    platform.run("catalog_to_alerts")
    assert not of_pair(platform, CONJUNCTION_CANDIDATES, approach.tca_ns), "9 km, farther than the sphere"
    asked = dg.build_sensor_context(instance=platform.instance)
    assert isinstance(request_screening(asked, platform.lake), dg.SkipReason)

    segments = simulate(
        "constellation", start_time_ns=burn_ns - BEFORE_S * 10**9, duration_s=BEFORE_S + AFTER_S, seed=1,
        objects=objects, truth_from_ns=START_NS, incidents=Incidents(manoeuvres=(burn,)), segment_seconds=30.0,
        plan=ObservingPlan(catalogue_error_s=ERROR_S, constellation=AROUND),
    )  # fmt: skip
    now_ns = burn_ns + AFTER_S * 10**9
    platform.land(each for each in segments if each.available_time_ns <= now_ns)
    platform.at(now_ns)
    platform.run("observations_to_alerts")
    tracks = platform.rows(TRACKS, "norad_id", "manoeuvre_speed_m_s").to_pylist()
    assert {row["norad_id"] for row in tracks if row["manoeuvre_speed_m_s"]} == {PAIR[1]}, (
        "others are off their sets only"
    )

    request = request_screening(asked, platform.lake)
    assert isinstance(request, dg.RunRequest) and request.tags["sda/pool"] == "catalog"
    result = platform.run("catalog_to_alerts")
    assert all(correctness(result).values()), correctness(result)
    assert of_pair(platform, CONJUNCTION_CANDIDATES, approach.tca_ns)
    (assessed,) = of_pair(platform, CONJUNCTION_ASSESSMENTS, approach.tca_ns)
    assert assessed["manoeuvre_time_2_ns"] and assessed["state_source_2"] == "fused_track"
    assert 0 < assessed["miss_distance_km"] < 60
    (alert,) = of_pair(platform, CONJUNCTION_ALERTS, approach.tca_ns)
    assert alert["risk"] == "yellow"
    assert alert["event_id"] in {entry.alert_id for entry in platform.subscriber.held()}
    skipped = request_screening(asked, platform.lake)
    assert isinstance(skipped, dg.SkipReason) and "no track is new" in (skipped.skip_message or "")

    tables = (CONJUNCTION_CANDIDATES, CONJUNCTION_ASSESSMENTS)
    resources = platform.definitions.resources or {}
    found = replay_lake(platform.lake, str(tmp_path / "shadow"), resources=resources, tables=tables)
    assert [line for each in found for line in each.differences] == []


def of_pair(platform: Platform, table: Table, tca_ns: int) -> list[dict[str, Any]]:
    """The standing rows of the encounter."""
    log = platform.lake.log(table)
    rows = current_keys(
        log, [column.name for column in table.columns if column.name not in ("event_id", "sequence", "op")]
    ).to_pylist()
    near = (row for row in rows if abs(row["tca_time_ns"] - tca_ns) < SAME_EVENT_NS)
    return [row for row in near if sorted([row["norad_id_1"], row["norad_id_2"]]) == PAIR]
