"""Edits made apart, through the tables: conflicts, merges and corrections, made again and in another order."""

import csv
import hashlib
import io
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from sda_platform.catalog.edits import next_edit
from sda_platform.catalog.orbits import catalogue_at
from sda_platform.catalog.tables import (
    CATALOG_CONFLICTS,
    CATALOG_EDITS,
    CONCURRENT,
    ELEMENT_SETS,
    ELEMENTS,
    HELD_ELEMENT_SETS,
    IN_FORCE,
    ORBITAL_CATALOG,
    SATELLITE_CATALOG,
    SATELLITE_RECORDS,
    SUPERSEDED,
)
from sda_platform.clock import iso, parse_iso_ns
from sda_platform.formats.edits import Edit, encode_edits
from sda_platform.orbits.elements import FOREVER_NS
from sda_platform.orchestration.replaying import replay_lake
from sda_platform_tests.support.platform_run import Platform, correctness
from sda_platform_tests.support.segments import START_NS, after, catalogue_ids, catalogue_of, land

STEPS = [
    ELEMENT_SETS.name, HELD_ELEMENT_SETS.name, ORBITAL_CATALOG.name, CATALOG_EDITS.name, CATALOG_CONFLICTS.name,
]  # fmt: skip


def edit(known: list[Edit], origin: str, value: str, attribute: str = "name", norad_id: int = 25544) -> Edit:
    return next_edit(
        known, norad_id=norad_id, attribute=attribute, value=value, origin=origin, editor="me", edited_time_ns=0
    )


def outcomes(platform: Platform) -> dict[str, str]:
    """What became of each edit, by its value."""
    rows = platform.rows(CATALOG_CONFLICTS).to_pylist()
    return {row["value"]: row["outcome"] for row in rows if row["attribute"] != ELEMENTS}


def test_edits_made_apart_are_a_conflict_until_a_person_decides__CS8_CS9(tmp_path: Path, spark: SparkSession) -> None:
    platform = Platform(tmp_path, spark, START_NS)
    assert land(platform.zone("elements"), "first.csv", catalogue_of(catalogue_ids()[:20]), seconds=1.0)
    base = edit([], "north", "OLD")
    north, south = edit([base], "north", "ISS"), edit([base], "south", "ZARYA")
    tag = edit([], "south", "station", "tag")

    def run(name: str, *edits: Edit) -> None:
        platform.at(after(float(len(name))))
        assert land(platform.zone("edits"), name, encode_edits(edits), seconds=2.0)
        assert all(correctness(platform.run("catalog_to_alerts", only=STEPS)).values())

    run("from-north.edits", base, north)
    assert outcomes(platform) == {"OLD": SUPERSEDED, "ISS": IN_FORCE}
    run("from-south-later.edits", base, south, tag)
    assert outcomes(platform) == {"OLD": SUPERSEDED, "ISS": CONCURRENT, "ZARYA": CONCURRENT, "station": IN_FORCE}
    run("the-decision-comes-last.edits", edit([base, north, south], "north", "ISS (ZARYA)"))
    assert outcomes(platform) == {
        "OLD": SUPERSEDED, "ISS": SUPERSEDED, "ZARYA": SUPERSEDED, "station": IN_FORCE, "ISS (ZARYA)": IN_FORCE,
    }  # fmt: skip
    claims = platform.rows(CATALOG_CONFLICTS).to_pylist()
    of_elements = [row for row in claims if row["attribute"] == ELEMENTS]
    assert {row["norad_id"] for row in of_elements} == set(catalogue_ids()[:20])
    assert {row["outcome"] for row in of_elements} == {IN_FORCE}


def published(number: int, name: str, hours: float) -> bytes:
    """A real set, published under ``number`` and ``name``, with an epoch so many hours after the start."""
    (row,) = csv.DictReader(io.StringIO(catalogue_of([catalogue_ids()[0]]).decode()))
    epoch = datetime.fromisoformat("2024-11-01T00:00:00") + timedelta(hours=hours)
    out = io.StringIO()
    writer = csv.DictWriter(out, row, lineterminator="\n")
    writer.writeheader()
    writer.writerow({**row, "NORAD_CAT_ID": number, "OBJECT_NAME": name, "EPOCH": epoch.isoformat()})
    return out.getvalue().encode()


def entries(platform: Platform) -> dict[int, str]:
    """The name of the set in force of each object; each is the best by the check's own merge."""
    rows = platform.rows(ORBITAL_CATALOG, "norad_id", "object_name").to_pylist()
    return {row["norad_id"]: row["object_name"] for row in rows}


def claims_of_elements(platform: Platform) -> set[tuple[int, str]]:
    rows = platform.rows(CATALOG_CONFLICTS).to_pylist()
    return {(row["norad_id"], row["segment_name"]) for row in rows if row["attribute"] == ELEMENTS}


FIVE, ELEVEN, TBA_1, TBA_2 = 5, 11, 90001, 90002
SETS = {
    "a.csv": published(FIVE, "FIVE", -9),
    "b.csv": published(TBA_1, "TBA 1", -3),
    "c.csv": published(TBA_2, "TBA 2", -5),
    "d.csv": published(ELEVEN, "ELEVEN", -8),
    "e.csv": published(ELEVEN, "FIVE AS ELEVEN", -1),
}
MERGED = edit([], "north", str(FIVE), "merged_into", TBA_1)
CHAINED = edit([], "south", str(TBA_1), "merged_into", TBA_2)
CORRECTED = edit([], "north", f"{hashlib.sha256(SETS['e.csv']).hexdigest()}:0:{FIVE}", "correct_object", ELEVEN)


def consumed(platform: Platform, minute: int, sets: Mapping[str, bytes], edits: Iterable[Edit] = ()) -> dict[int, str]:
    """The names in force after a run with what landed; all checks of the tables must pass."""
    platform.at(after(60.0 * minute))
    for name, data in sets.items():
        assert land(platform.zone("elements"), name, data, seconds=1.0)
    if edits:
        assert land(platform.zone("edits"), f"{minute}.edits", encode_edits(list(edits)), seconds=2.0)
    assert all(correctness(platform.run("catalog_to_alerts", only=STEPS)).values())
    return entries(platform)


def test_merges_and_corrections_decide_which_object_a_set_is_of_and_are_undone__CS8_CS9(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Two analyst satellites turn out to be object 5, and a set of 5 was published under 11 by mistake."""
    platform = Platform(tmp_path, spark, START_NS)
    assert consumed(platform, 1, SETS) == {5: "FIVE", 11: "FIVE AS ELEVEN", 90001: "TBA 1", 90002: "TBA 2"}
    assert consumed(platform, 2, {}, [MERGED, CORRECTED, CHAINED]) == {5: "FIVE AS ELEVEN", 11: "ELEVEN"}
    assert {number for number, _ in claims_of_elements(platform)} == {5, 11}
    later = {"f.csv": published(TBA_2, "TBA 2 LATER", -0.5)}
    apart = [edit([MERGED], "north", "", "merged_into", TBA_1), edit([MERGED], "south", "11", "merged_into", TBA_1)]
    undecided = {5: "FIVE AS ELEVEN", 11: "ELEVEN", 90001: "TBA 2 LATER"}
    assert consumed(platform, 3, later, apart) == undecided, "the merge is undone, and neither of two acts"
    decided = edit([MERGED, *apart], "north", str(FIVE), "merged_into", TBA_1)
    assert consumed(platform, 4, {}, [decided]) == {5: "TBA 2 LATER", 11: "ELEVEN"}
    published_as = {(row["norad_id"], row["segment_name"]) for row in platform.rows(ELEMENT_SETS).to_pylist()}
    assert published_as == {
        (5, "a.csv"), (90001, "b.csv"), (90002, "c.csv"), (11, "d.csv"), (11, "e.csv"), (90002, "f.csv"),
    }, "the published numbers stay"  # fmt: skip


def test_a_rebuild_and_a_replay_give_the_catalogue_that_edits_made__CS9(tmp_path: Path, spark: SparkSession) -> None:
    """In one commit and another order; and commit by commit."""
    platform, rebuilt = Platform(tmp_path / "one", spark, START_NS), Platform(tmp_path / "two", spark, START_NS)
    first = {name: SETS[name] for name in ("a.csv", "b.csv", "d.csv")}
    others = {name: data for name, data in SETS.items() if name not in first}
    consumed(platform, 1, first, [MERGED])
    expected = consumed(platform, 2, others, [CORRECTED, CHAINED])
    assert consumed(rebuilt, 2, {**others, **first}, [CHAINED, CORRECTED, MERGED]) == expected
    columns = [name for name in ORBITAL_CATALOG.content_schema.names if name != "received_time_ns"]
    one, two = (each.rows(ORBITAL_CATALOG, *columns).sort_by("norad_id") for each in (platform, rebuilt))
    assert one.to_pylist() == two.to_pylist()
    assert claims_of_elements(platform) == claims_of_elements(rebuilt)
    again = replay_lake(platform.lake, str(tmp_path / "again"), {}, tables=[ORBITAL_CATALOG, CATALOG_CONFLICTS])
    assert [each.differences for each in again] == [(), ()]


SATELLITES = b"NORAD_CAT_ID,OBJECT_TYPE,OPS_STATUS_CODE,DECAY_DATE\n5,PAY,+,\n11,PAY,D,2024-10-30\n90001,DEB,,\n"


def test_decays_of_satellite_catalogues_and_edits_end_objects_in_the_catalogue__44(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Object 11 has decayed by a source, 5 is retired and restored; a newer set changes nothing of that."""
    platform = Platform(tmp_path, spark, START_NS)
    decay = "2024-10-31T00:00:00.000Z"
    steps = [*STEPS, SATELLITE_RECORDS.name, SATELLITE_CATALOG.name]

    def decays(minute: int, elements: bytes = b"", sent: bytes = b"", edits: Iterable[Edit] = ()) -> list[str | None]:
        platform.at(after(60.0 * minute))
        for zone, name, data in (
            ("elements", f"{minute}.csv", elements),
            ("satellites", f"{minute}.csv", sent),
            ("edits", f"{minute}.edits", encode_edits(edits)),
        ):
            assert not data or land(platform.zone(zone), name, data, seconds=1.0)
        assert all(correctness(platform.run("catalog_to_alerts", only=steps)).values())
        rows = platform.rows(ORBITAL_CATALOG, "norad_id", "decay_time_ns").sort_by("norad_id").to_pylist()
        return [row["decay_time_ns"] and iso(row["decay_time_ns"]) for row in rows]

    first = b"".join([published(5, "FIVE", -9), published(11, "ELEVEN", -8).partition(b"\n")[2]])
    assert decays(1, first) == [None, None]
    assert decays(2, sent=SATELLITES) == [None, decay]
    assert decays(3, published(11, "ELEVEN", -2)) == [None, decay]
    retired = edit([], "north", decay, "decay", 5)
    restored = edit([], "north", "in orbit", "decay", 11)
    assert decays(4, edits=[retired, restored]) == [decay, None]
    propagator = catalogue_at(platform.lake, platform.lake.log(ORBITAL_CATALOG).version()).propagator
    assert propagator.elements.decay_time_ns.tolist() == [parse_iso_ns(decay), FOREVER_NS]
    assert decays(5, edits=[edit([retired], "north", "", "decay", 5), edit([restored], "north", "", "decay", 11)]) == [
        None, decay,
    ]  # fmt: skip
    again = replay_lake(platform.lake, str(tmp_path / "again"), {}, tables=[SATELLITE_CATALOG, ORBITAL_CATALOG])
    assert [each.differences for each in again] == [(), ()]
