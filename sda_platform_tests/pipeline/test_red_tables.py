"""A real run is refused what lies behind a red commit, in the job that did not write it, until a person accepts it."""

from typing import Any

import dagster as dg

from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.formats.framing.container import pack_records
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.observability.red_tables import acknowledge, red_tables
from sda_platform_tests.support.delta_tables import lose_rows
from sda_platform_tests.support.platform_run import Platform, checks, correctness, written
from sda_platform_tests.support.segments import after, catalogue_of, land, radar_payloads

HOT = ("raw_records", "observations")
CATALOG = ("element_sets", "orbital_catalog", "dead_letters")


def read_upto(platform: Platform, table: Any) -> int:
    """The commit of raw_records up to which ``table`` has read."""
    commit = platform.lake.log(table).head().commit
    window = commit.manifest.window(RAW_RECORDS.name) if commit else None
    return window.upto_sequence if window else 0


def land_radar(platform: Platform, name: str, seconds: float) -> None:
    land(platform.zone("radar"), name, pack_records(radar_payloads(4), [after(seconds)] * 4))


def step_errors(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    failed = (event for event in result.all_events if event.is_step_failure)
    return {str(event.step_key): event.step_failure_data.error_display_string for event in failed}


def test_a_run_of_another_job_is_refused_the_rows_behind_a_red_commit_red_03(platform: Platform) -> None:
    land_radar(platform, "first", 1)
    land(platform.zone("elements"), "sets", catalogue_of([25544, 20580]))
    platform.at(after(5))
    platform.run("observations_to_alerts", only=HOT)
    platform.run("catalog_to_alerts", only=CATALOG)
    assert (read_upto(platform, OBSERVATIONS), read_upto(platform, DEAD_LETTERS)) == (1, 1)

    lose_rows(platform.lake, RAW_RECORDS, "record_number = 2")
    for n in range(7):
        land_radar(platform, f"later {n}", 2 + n)
        hot = platform.run("observations_to_alerts", must_succeed=False, only=HOT)
        assert not hot.success and correctness(hot)["raw_records:exactly_once"] is False
    assert platform.lake.head(RAW_RECORDS).sequence == 8, "what lands is kept"
    catalog = platform.run("catalog_to_alerts", must_succeed=False, only=CATALOG)
    assert list(step_errors(catalog)) == ["dead_letters"]
    assert "raw_records sequence 1: balance: radar/first: 4 records landed, 3 rows stored" in str(step_errors(catalog))
    assert written(catalog)["orbital_catalog"] == 0, "what does not depend on it goes on"
    assert (read_upto(platform, OBSERVATIONS), read_upto(platform, DEAD_LETTERS)) == (1, 1)

    (accepted,) = acknowledge(platform.lake, "raw_records", "the test took it")
    assert accepted.sequence == 1
    platform.run("catalog_to_alerts", only=CATALOG)
    accepted_run = platform.run("observations_to_alerts", only=HOT)
    assert checks(accepted_run)["raw_records:exactly_once"] is False, "it stays visible, and blocks no more"
    assert (read_upto(platform, OBSERVATIONS), read_upto(platform, DEAD_LETTERS)) == (8, 8)
    assert [each.acknowledged for each in red_tables(platform.lake)] == [accepted.acknowledged]
