"""`sda catalog`: what each command answers, for people and for machines."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sda_platform.catalog.conflicts import edit_claims
from sda_platform.catalog.edit_decoding import decoder
from sda_platform.catalog.tables import (
    CATALOG_CONFLICTS,
    CATALOG_EDITS,
    EDITS_FEED,
    ELEMENT_SETS,
    HELD_ELEMENT_SETS,
    ORBITAL_CATALOG,
)
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.lake.manifest import TableWindow
from sda_platform.landing.zone import LandingZone
from sda_platform.runtime.platform_home import take_lock
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS, catalogue_of
from sda_platform_tests.support.small_catalogue import committed, sets_of, small_catalogue

IDS = [5, 11, 25544, 41866]


def sda(home: Path, *arguments: str, site: str = "north") -> Result:
    return CliRunner().invoke(main, ["--home", str(home), "catalog", *arguments], env={"SDA_SITE": site})


def answer(home: Path, *arguments: str) -> Any:
    found = sda(home, *arguments, "--json")
    assert found.exception is None or isinstance(found.exception, SystemExit), found.output
    return json.loads(found.output)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    MissionClock(START_NS + 86_400 * 10**9, 0, 0.0).save(tmp_path)
    small_catalogue(tmp_path, IDS)
    return tmp_path


def consume_edits(home: Path) -> None:
    """What the catalogue's job does with edits that wait."""
    lake, zone = lake_at(home / "lake"), LandingZone(str(home / "landing"), EDITS_FEED)
    rows: list[dict[str, Any]] = []
    segments = []
    for segment in zone.pending():
        loaded = zone.read(segment)
        assert loaded.meta is not None
        provenance = {"segment_sha256": loaded.sha256, "segment_name": loaded.name, "received_time_ns": START_NS}
        rows += [{**row, **provenance} for row in decoder({})(loaded.data, loaded.meta).to_pylist()]
        segments.append(loaded.ref(1))
    commit(lake, CATALOG_EDITS, rows)
    zone.acknowledge(segments)
    current = lake.log(CATALOG_CONFLICTS).rows()
    new = lake.log(CATALOG_EDITS).rows()
    claims = {row["claimant"]: row for row in current.to_pylist()}
    claims |= {row["claimant"]: row for row in edit_claims(new, current).to_pylist()}
    uri = Path(lake.log(CATALOG_CONFLICTS).uri)
    uri.rename(uri.with_name(f"old-{len(list(uri.parent.iterdir()))}")) if uri.exists() else None
    commit(lake, CATALOG_CONFLICTS, claims.values())


def test_objects_are_shown_listed_and_searched(home: Path) -> None:
    found = answer(home, "show", "25544")
    assert (found["norad_id"], found["regime"]) == (25544, "LEO")
    assert 350 < found["perigee_km"] < found["apogee_km"] < 450
    assert found["age_days"] == pytest.approx(1.0, abs=0.01)
    text = sda(home, "show", "25544").output
    assert "ISS (ZARYA)" in text and "catalogue.csv record" in text
    assert [row["norad_id"] for row in answer(home, "list")] == IDS
    assert [row["norad_id"] for row in answer(home, "list", "--regime", "geo")] == [41866]
    assert [row["norad_id"] for row in answer(home, "list", "--after", "11", "--limit", "1")] == [25544]
    assert [row["norad_id"] for row in answer(home, "search", "zarya")] == [25544]
    assert [row["norad_id"] for row in answer(home, "search", "1998-067")] == [25544]
    assert "1 of 4 rows" in sda(home, "list", "--limit", "1").output


def test_coverage_counts_objects_and_ages_by_regime(home: Path) -> None:
    found = {row["regime"]: row for row in answer(home, "coverage")}
    assert (found["all"]["objects"], found["GEO"]["objects"]) == (4, 1)
    assert (found["all"]["older_than_1_days"], found["all"]["older_than_3_days"]) == (4, 0)
    assert found["all"]["median_age_days"] == pytest.approx(1.0, abs=0.01)


def test_two_versions_are_compared(home: Path) -> None:
    committed(lake_at(home / "lake"), sets_of([12]))
    found = answer(home, "diff", "0", "1")
    assert [row["norad_id"] for row in found["added"]] == [12]
    assert found["removed"] == found["changed"] == []
    assert "1 added" in sda(home, "diff", "0", "1").output
    for versions in (("1", "7"), ("7", "1")):
        refused = sda(home, "diff", *versions)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert refused.stderr == "Error: the catalogue has no version 7; the newest is 1\n"


def test_edits_made_at_two_sites_are_shown_until_one_is_chosen__CS8(home: Path) -> None:
    """The second site's edit is made with another platform's home, and comes as a file."""
    assert "no edits that contradict" in sda(home, "resolve", "25544", "name", "X").output
    assert sda(home, "edit", "25544", "name", "ISS").exit_code == 0
    other = home / "other"
    take_lock(other).close()
    assert sda(other, "edit", "25544", "name", "ZARYA", "--editor", "anna", site="south").exit_code == 0
    assert sda(other, "export", str(home / "south.edits"), "--edits", site="south").exit_code == 0
    landed = CliRunner().invoke(main, ["--home", str(home), "land", str(home / "south.edits")])
    assert landed.exit_code == 0, landed.output
    consume_edits(home)
    waiting = sda(home, "conflicts", "--json")
    assert waiting.exit_code == 1
    assert {(row["value"], row["origin"]) for row in json.loads(waiting.output)} == {
        ("ISS", "north"),
        ("ZARYA", "south"),
    }
    decided = sda(home, "resolve", "25544", "name", "ISS (ZARYA)")
    assert decided.exit_code == 0, decided.output
    assert "superseded: 'ZARYA' by anna at south" in decided.output
    consume_edits(home)
    assert sda(home, "conflicts").exit_code == 0
    assert "name: ISS (ZARYA)" in sda(home, "show", "25544").output


def test_a_merged_satellite_is_traced_and_a_correction_names_its_set__CS9(home: Path) -> None:
    assert "5 is merged into 5" not in sda(home, "show", "5").output
    assert "must be the catalogue number of another object" in sda(home, "edit", "5", "merged_into", "5").output
    assert sda(home, "edit", "5", "merged_into", "11").exit_code == 0
    assert "names 0 sets of object 25544" in sda(home, "edit", "25544", "correct_object", "other.csv:2:5").output
    number = answer(home, "show", "25544")["record_number"]
    assert sda(home, "edit", "25544", "correct_object", f"catalogue.csv:{number}:11").exit_code == 0
    consume_edits(home)
    lake = lake_at(home / "lake")
    heads = {table.name: lake.log(table).head() for table in (ELEMENT_SETS, CATALOG_EDITS)}
    windows = [TableWindow(name, 0, head.sequence, -1, head.commit_version) for name, head in heads.items()]
    commit(lake, ORBITAL_CATALOG, windows=windows)  # the merge itself needs the engine
    assert "object 5 is merged into 11, by an edit" in sda(home, "show", "5").output
    assert answer(home, "show", "11")["merged"] == [5]
    assert "with the sets of 5, which edits merged into it" in sda(home, "show", "11").output


@pytest.mark.parametrize("name", ["csv", "json", "tle"])
def test_the_catalogue_is_exported(home: Path, name: str) -> None:
    file = home / "export"
    assert "4 objects" in sda(home, "export", str(file), "--format", name).output
    segment_format = {"csv": "omm-csv", "json": "omm-json", "tle": "tle"}[name]
    decoded = decode_element_sets(file.read_bytes(), segment_format=segment_format)
    assert decoded.column("norad_id").to_pylist() == IDS


def test_sets_of_a_file_are_put_and_refusals_named(home: Path) -> None:
    file = home / "sets.csv"
    lines = catalogue_of([5, 11]).decode().splitlines()
    file.write_text("\n".join([*lines, lines[-1].replace(",11,", ",x,")]) + "\n")
    answered = sda(home, "put", str(file), "--json")
    assert answered.exit_code == 1
    found = json.loads(answered.output)
    assert (found["accepted"], [each["record"] for each in found["refused"]]) == (2, [2])
    (segment,) = LandingZone(str(home / "landing"), "elements").pending()
    assert segment.name.startswith("put-")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("show", "77777"), "no object 77777"),
        (("edit", "5", "colour", "red"), "attribute is 'colour'"),
        (("export", "x", "--format", "doc"), "no format 'doc'"),
    ],
)
def test_a_mistake_ends_in_one_line(home: Path, arguments: tuple[str, ...], reason: str) -> None:
    found = sda(home, *arguments)
    assert found.exit_code != 0
    assert reason in found.output
    assert "Traceback" not in found.output


def test_without_a_catalogue_the_commands_say_so(tmp_path: Path) -> None:
    take_lock(tmp_path).close()
    assert "no catalogue yet" in sda(tmp_path, "list").output


@pytest.mark.parametrize(("name", "number"), [("25544", 25544), ("zarya", 25544), ("1998-067", 25544)])
def test_an_object_is_shown_by_number_name_or_designator(home: Path, name: str, number: int) -> None:
    assert answer(home, "show", name)["norad_id"] == number


def test_an_object_that_several_names_could_mean_is_refused_with_their_names(home: Path) -> None:
    assert "4 objects have '' in their name or designator: 5 VANGUARD 1, 11 " in sda(home, "show", "").output
    assert "0 objects have 'nonsense' in their name" in sda(home, "show", "nonsense").output


def test_held_sets_are_listed_with_the_object_that_they_fit_and_released__44(home: Path) -> None:
    """A set of the space station that was published as object 11."""
    lake = lake_at(home / "lake")
    (wrong,) = sets_of([25544], segment_sha256="cd" * 32, segment_name="late.csv", epoch_time_ns=START_NS)
    commit(lake, ELEMENT_SETS, [{**wrong, "norad_id": 11}])
    held = {name: wrong[name] for name in ("segment_sha256", "segment_name", "record_number", "epoch_time_ns")}
    off = {"times_usual": 70.0, "radial_km": 3.0, "in_track_km": 4.0, "cross_track_km": 12.0}
    row = {**held, **off, "norad_id": 11, "reason": "unsettled", "outcome": "held", "held_since_ns": START_NS}
    commit(lake, HELD_ELEMENT_SETS, [row])
    (found,) = answer(home, "held", "--newer", "--fits")
    assert (found["norad_id"], found["set"], found["distance_km"]) == (11, "cdcdcdcdcdcd:0", 13.0)
    assert found["fits"].startswith("25544 (")
    assert "held (unsettled, 13.0 km off, 70 times the usual)" in sda(home, "show", "11").output
    refused = sda(home, "release", "late.csv:7")
    assert (refused.exit_code, "names 0 held sets" in refused.stderr) == (1, True)
    assert sda(home, "release", "late.csv:0", "--editor", "anna").exit_code == 0
    consume_edits(home)
    claim = next(each for each in answer(home, "show", "11")["claims"] if each["attribute"] == "released_sets")
    assert (claim["value"], claim["editor"]) == (f"{'cd' * 32}:0", "anna")
