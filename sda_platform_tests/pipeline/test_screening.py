"""Screening on the engine: all against all, in any cut, in volumes; and what a few new element sets change of it."""

import csv
import gzip
import hashlib
import io
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey
from pyspark.sql import SparkSession

from sda_platform.clock import parse_iso_ns
from sda_platform.conjunction.resource import ScreeningResource
from sda_platform.conjunction.tables import CONJUNCTION_CANDIDATES
from sda_platform.formats.fleet import protected_fleet
from sda_platform_tests.support.platform_run import Platform
from sda_platform_tests.support.sampling import sampled
from sda_platform_tests.support.segments import START_NS, catalogue_ids, catalogue_of, land

TRUTH = Path(__file__).parents[1] / "data/screening/celestrak_2024-11-01_events_24h_5km.csv.gz"
CANDIDATES = ["element_sets", "orbital_catalog", "conjunction_candidates"]
HORIZON_H = 1.0
ALL = ScreeningResource(scope="all", horizon_h=HORIZON_H)
FLEET = {member.norad_id for member in protected_fleet()}
Approach = tuple[int, int, int, float]


@cache
def published() -> list[dict[str, str]]:
    with gzip.open(TRUTH, "rt") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if parse_iso_ns(row["tca_utc"]) < START_NS + HORIZON_H * 3600e9]


@cache
def objects() -> tuple[int, ...]:
    """Objects that meet in the first part of the hour, and some hundred others."""
    met = {int(row[name]) for row in published()[:150] for name in ("norad_lo", "norad_hi")}
    return tuple(sorted(met | set(catalogue_ids()[::120])))


def changed_sets(shift_deg: dict[int, float]) -> bytes:
    """Newer element sets of some objects, each ahead by so many degrees."""
    rows = list(csv.DictReader(io.StringIO(catalogue_of(shift_deg).decode())))
    for row in rows:
        row["EPOCH"] = (datetime.fromisoformat(row["EPOCH"]) + timedelta(milliseconds=1)).isoformat()
        row["MEAN_ANOMALY"] = f"{(float(row['MEAN_ANOMALY']) + shift_deg[int(row['NORAD_CAT_ID'])]) % 360:.4f}"
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def screened(platform: Platform, *files: bytes) -> Any:
    for number, data in enumerate(files):
        # Other bytes under a consumed name would be a conflict.
        name = f"catalogue-{hashlib.sha256(data).hexdigest()[:12]}.csv"
        assert land(platform.zone("elements"), name, data, seconds=number + 1.0)
    result = platform.run("catalog_to_alerts", only=CANDIDATES)
    (said,) = [
        e.materialization.metadata
        for e in result.get_asset_materialization_events()
        if e.asset_key == AssetKey(CONJUNCTION_CANDIDATES.name)
    ]
    return said


def standing(platform: Platform) -> dict[str, dict[str, Any]]:
    """The candidates that hold, by event."""
    last: dict[str, dict[str, Any]] = {}
    rows = platform.rows(CONJUNCTION_CANDIDATES).to_pylist()
    for row in sorted(rows, key=lambda r: (r["sequence"], r["op"])):
        last[row["event_id"]] = row
    return {event: row for event, row in last.items() if row["op"] == "insert"}


def facts(candidates: Iterable[dict[str, Any]]) -> list[Approach]:
    names = ("norad_id_1", "norad_id_2", "tca_time_ns", "miss_distance_km", "elements_epoch_1_ns")
    return sorted(tuple(row[name] for name in names) for row in candidates)


def pair(row: dict[str, Any]) -> tuple[int, int]:
    return min(row["norad_id_1"], row["norad_id_2"]), max(row["norad_id_1"], row["norad_id_2"])


def test_all_against_all_gives_the_published_events_however_it_is_cut_into_tasks(
    tmp_path: Path, spark: SparkSession
) -> None:
    known = set(objects())
    expected = [(int(r["norad_lo"]), int(r["norad_hi"])) for r in published()]
    expected = sorted(e for e in expected if set(e) <= known)
    found = []
    for size in (30_000, 150):
        screening = ScreeningResource(scope="all", horizon_h=HORIZON_H, objects_per_task=size)
        platform = Platform(tmp_path / str(size), spark, START_NS, screening)
        screened(platform, catalogue_of(objects()))
        found.append(facts(standing(platform).values()))
    assert sorted((min(f[:2]), max(f[:2])) for f in found[0]) == expected
    assert len(expected) >= 150
    assert found[0] == found[1]


def test_of_a_few_new_element_sets_only_their_pairs_are_screened_and_the_result_is_that_of_a_full_run(
    tmp_path: Path, spark: SparkSession
) -> None:
    met = [int(row["norad_lo"]) for row in published()[:150]]
    # Some are where they were but for a kilometre, some are not: events move, disappear, and new ones come.
    shift_deg = {norad_id: 0.01 if n % 2 else 4.0 for n, norad_id in enumerate(dict.fromkeys(met[::8]))}
    news = changed_sets(shift_deg)

    platform = Platform(tmp_path / "incremental", spark, START_NS, ALL)
    assert screened(platform, catalogue_of(objects()))["screening"].value == "full"
    before = standing(platform)
    said = screened(platform, news)
    assert said["screening"].value == "changed objects"
    assert said["changed"].value == len(shift_deg)
    after = standing(platform)

    full = Platform(tmp_path / "full", spark, START_NS, ALL)
    assert screened(full, catalogue_of(objects()), news)["screening"].value == "full"
    assert facts(after.values()) == facts(standing(full).values())

    untouched = {event: row for event, row in before.items() if not set(pair(row)) & set(shift_deg)}
    assert {event: after[event] for event in untouched} == untouched, "others are not so much as written again"
    gone, moved = set(before) - set(after), [e for e in set(before) & set(after) if before[e] != after[e]]
    assert gone, "what the old elements promised is withdrawn"
    assert moved, "an event keeps its id while its TCA moves"
    assert all(set(pair(before[event])) & set(shift_deg) for event in gone)


@pytest.mark.parametrize("internal", sampled([True, False], True))
def test_a_fleet_is_screened_in_its_volumes_with_or_without_pairs_of_its_own(
    tmp_path: Path, spark: SparkSession, internal: bool
) -> None:
    volumes = tmp_path / "volumes.csv"
    volumes.write_text("regime,shape,radial_km,in_track_km,cross_track_km\nLEO1,box,3,4,4\nLEO2,box,3,4,4\n")
    fleet = tmp_path / "fleet.csv"
    met = published()[:80]
    # Who is nearer to a member than the boxes are wide is a member too: those pairs are the fleet's own.
    close = {int(row["norad_hi"]) for row in met if float(row["miss_km"]) < 3.0}
    members = sorted({int(row["norad_lo"]) for row in met} | close)
    fleet.write_text("norad_id,name,operator\n" + "".join(f"{n},x,\n" for n in members))
    screening = ScreeningResource(
        fleet=str(fleet), volumes=str(volumes), fleet_internal=internal, horizon_h=HORIZON_H, objects_per_task=20
    )
    platform = Platform(tmp_path / "home", spark, START_NS, screening)
    screened(platform, catalogue_of(objects()))
    found = list(standing(platform).values())
    assert found
    inside = [row for row in found if {row["norad_id_1"], row["norad_id_2"]} <= set(members)]
    assert bool(inside) == internal
    assert all(row["norad_id_1"] in members for row in found), "the protected object comes first"
    # A box is wider than the published sphere in its corners only.
    everyone = {(int(r["norad_lo"]), int(r["norad_hi"])) for r in published()}
    assert {pair(row) for row in found if row["miss_distance_km"] < 5.0} <= everyone
