"""The report on the catalogue: what it counts and draws, and when its check warns."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from sda_platform.catalog.health import (
    ages_are_usual,
    edits_are_founded,
    largest_family,
    orbits_are_possible,
    recent_jumps,
    report,
)
from sda_platform.catalog.tables import ELEMENT_SETS, HELD
from sda_platform.clock import parse_iso_ns
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.lake.lake import Lake
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import catalogue_ids
from sda_platform_tests.support.small_catalogue import small_catalogue

HISTORY = Path(__file__).parents[2] / "data/history/sets_of_40_objects_2013-10.3le.gz"
END_NS = parse_iso_ns("2013-10-21T12:00:00Z")


@pytest.fixture
def history(tmp_path: Path) -> Lake:
    lake = lake_at(tmp_path, now_ns=END_NS)
    rows = decode_element_sets(gzip.decompress(HISTORY.read_bytes()), segment_format="tle").drop_columns(["payload"])
    commit(lake, ELEMENT_SETS, [{**row, "source_priority": 0} for row in rows.to_pylist()])
    return lake


def test_jumps_of_the_last_month_are_named_with_object_and_kind(history: Lake) -> None:
    jumps, judged = recent_jumps(history)
    assert judged > 150
    assert {jump["kind"] for jump in jumps} >= {"manoeuvre", "bad fit"}
    scores = [jump["times_usual"] for jump in jumps]
    assert scores == sorted(scores, reverse=True) and scores[-1] > 12
    by_object: dict[str, Any] = {jump["object_name"]: jump for jump in jumps}
    assert all(name for name in by_object)


def test_the_report_draws_counts_and_checks(tmp_path: Path) -> None:
    result = report(small_catalogue(tmp_path, catalogue_ids()[:300]))
    metadata: Mapping[str, Any] = result.metadata or {}
    assert metadata["objects"] == 300
    for name in ("ages", "altitude_by_inclination"):
        assert metadata[name].value.startswith("![") and "base64" in metadata[name].value
    assert "| LEO |" in metadata["coverage"].value
    checks = {check.check_name: check.passed for check in result.check_results or []}
    assert checks == {
        "jumps_are_rare": True,
        "ages_are_usual": True,
        "orbits_are_possible": True,
        "edits_are_founded": True,
        "held_sets_are_decided": True,
    }


def test_a_regime_whose_sets_are_old_is_named_and_few_objects_are_none() -> None:
    ages = [
        {"regime": "LEO", "objects": 900, "median_age_days": 0.5},
        {"regime": "GEO", "objects": 40, "median_age_days": 4.25},
        {"regime": "decaying", "objects": 3, "median_age_days": 9.0},
    ]
    check = ages_are_usual(ages)
    assert not check.passed and check.severity is dg.AssetCheckSeverity.WARN
    assert check.description == "median age above 3 days: GEO 4.2 days"
    assert ages_are_usual(ages[:1]).passed


def test_orbits_through_the_ground_or_beyond_the_earth_are_named() -> None:
    rows = pa.table({"norad_id": [5, 6, 7], "perigee_km": [-1.0, 400.0, 600.0], "apogee_km": [500.0, 420.0, 2e6]})
    check = orbits_are_possible(rows)
    assert not check.passed and check.description == "impossible orbits: 5, 7"
    assert orbits_are_possible(rows.slice(1, 1)).passed


def test_a_report_on_an_empty_lake_says_so(tmp_path: Path) -> None:
    result = report(lake_at(tmp_path))
    assert (result.metadata or {})["objects"] == 0
    assert "no catalogue yet" in str((result.check_results or [])[0].description)


def test_the_largest_family_of_fragments_is_found_by_name() -> None:
    names = [*["COSMOS 2251 DEB"] * 25, *["FENGYUN 1C DEB"] * 30, "ISS (ZARYA)", ""]
    assert largest_family(names) == "FENGYUN 1C"
    assert largest_family(names[:10]) is None


def test_an_edit_that_is_held_back_is_warned_of() -> None:
    row = {"outcome": HELD, "attribute": "name", "norad_id": 5, "origin": "west", "reason": "it counts 9 of north"}
    check = edits_are_founded([row])
    assert (check.passed, "name of 5 at west: it counts 9 of north" in str(check.description)) == (False, True)
