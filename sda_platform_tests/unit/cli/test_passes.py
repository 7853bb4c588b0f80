"""`sda passes`: from a file of element sets, as JSON and as a table."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sda_platform.cli.main import main
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.runtime.platform_home import take_lock
from sda_platform.simulation.reference import reference_catalogue

FIELD = Path(__file__).parents[2] / "data" / "field"

SITE = ("--lat", "50", "--lon", "7", "--alt-m", "100", "--start", "2024-11-01T00:00:00Z", "--hours", "6")


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some objects, the ISS among them with two element sets."""
    header, *lines = reference_catalogue().splitlines(keepends=True)
    iss = next(line for line in lines if b"ISS (ZARYA)" in line)
    older = iss.replace(b"2024-10-31", b"2024-10-21").replace(b"2024-11-01", b"2024-10-21")
    assert older != iss
    path = tmp_path_factory.mktemp("passes") / "some.csv"
    path.write_bytes(b"".join([header, older, iss, *lines[:: len(lines) // 40]]))
    return path


def passes(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["passes", *arguments])


def test_passes_are_listed_by_rise_with_the_named_fields__PW27(catalogue: Path) -> None:
    found = json.loads(passes("--catalog", str(catalogue), *SITE, "--min-elevation", "5", "--json").stdout)
    assert len(found) > 10
    assert {tuple(each) for each in found} == {
        ("norad_id", "aos_utc", "tca_utc", "los_utc", "max_elevation_deg", "elements_epoch_utc", "elements_age_days")
    }
    assert [each["aos_utc"] for each in found] == sorted(each["aos_utc"] for each in found)
    assert all(each["aos_utc"] <= each["tca_utc"] <= each["los_utc"] for each in found)
    assert min(each["max_elevation_deg"] for each in found) >= 5


def test_one_object_has_its_passes_once_by_the_set_in_force(catalogue: Path) -> None:
    found = json.loads(passes("--catalog", str(catalogue), *SITE, "--object", "25544", "--json").stdout)
    assert {each["norad_id"] for each in found} == {25544}
    refused = passes("--catalog", str(catalogue), *SITE, "--object", "25544", "--object", "99999", "--json")
    assert (refused.exit_code, refused.stdout, refused.stderr) == (1, "", "Error: no element set of 99999\n")
    assert all(one["los_utc"] < other["aos_utc"] for one, other in itertools.pairwise(found))


def test_of_two_sets_of_one_epoch_the_higher_set_number_counts_whatever_their_order(
    catalogue: Path, tmp_path: Path
) -> None:
    header, older, iss, *_ = catalogue.read_bytes().splitlines(keepends=True)
    names = header.decode().strip().split(",")
    facts = dict(zip(names, iss.decode().strip().split(","), strict=True))
    superseded = {**facts, "ELEMENT_SET_NO": "1", "MEAN_ANOMALY": "0"}
    line = ",".join(superseded[name] for name in names).encode() + b"\n"
    found = []
    for number, lines in enumerate([[older, iss], [line, iss, older], [iss, line, older]]):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(b"".join([header, *lines]))
        found.append(passes("--catalog", str(path), *SITE, "--json").stdout)
    assert len(json.loads(found[0])) > 1
    assert found[1] == found[2] == found[0]


def test_a_person_gets_a_table(catalogue: Path) -> None:
    answer = passes("--catalog", str(catalogue), *SITE, "--object", "25544")
    assert answer.exit_code == 0 and "culmination" in answer.output and "25544" in answer.output


def test_without_a_catalogue_the_message_names_the_remedy(tmp_path: Path) -> None:
    take_lock(tmp_path).close()
    answer = CliRunner().invoke(main, ["--home", str(tmp_path), "passes", *SITE])
    assert (answer.exit_code, "--catalog" in answer.output, "Traceback" in answer.output) == (1, True, False)


def field_passes(
    name: str, latitude: str, longitude: str, start: str, hours: str, mask: str
) -> tuple[list[dict[str, Any]], str]:
    """The passes of an object of `data/field`, and the lines beside them."""
    site = ("--lat", latitude, "--lon", longitude, "--start", start, "--hours", hours, "--min-elevation", mask)
    done = passes("--catalog", str(FIELD / name), *site, "--json")
    assert done.exit_code == 0
    return json.loads(done.stdout), done.stderr


def test_an_object_that_decayed_long_ago_has_no_passes_and_a_line_says_why_field_040() -> None:
    where = ("040-ghost-after-decay-passes.tle", "60", "25")
    found, lines = field_passes(*where, "2024-01-01T00:00:00Z", "24", "10")
    assert len(found) == 6
    assert "that of 45110 is 134.2 days from its epoch" in lines and "its set of" not in lines
    assert {each["elements_age_days"] > 130 for each in found} == {True}
    for year in ("2024", "2025"):
        found, lines = field_passes(*where, f"{year}-12-17T00:00:00Z", "24", "10")
        assert found == []
        assert "45110: its set of 2023-08-20" in lines
        assert "usable at no time" in lines


def test_an_object_that_decays_within_the_search_keeps_its_passes_before_that_field_041() -> None:
    where = ("041-decay-within-window-flock.tle", "45", "10", "2015-08-07T06:00:00Z")
    before, lines = field_passes(*where, "80", "0")
    assert (len(before), lines) == (17, "")
    found, lines = field_passes(*where, "120", "0")
    assert [each["tca_utc"][:19] for each in found[:17]] == [each["tca_utc"][:19] for each in before]
    assert found[-1]["los_utc"] < "2015-08-10T21:42" < "2015-08-12"
    assert "usable until 2015-08-10T21:41" in lines


def test_each_set_of_an_object_gives_the_passes_of_its_time(tmp_path: Path) -> None:
    """Two sets in one file give what each gives alone in its half, and a pass across their border is one."""
    header, *lines = reference_catalogue().splitlines(keepends=True)
    iss = next(line for line in lines if b"ISS (ZARYA)" in line)
    epoch = iss.split(b",")[2]
    hours = [f"2024-11-01T{hour:02d}:{minute:02d}:00".encode() for hour in range(1, 23) for minute in (0, 20, 40)]
    sets = [iss, *(iss.replace(epoch, each).replace(b"25544", b"25544") for each in hours)]
    path = tmp_path / "history.csv"
    path.write_bytes(b"".join([header, *sets]))
    site = (*SITE[:6], "--start", "2024-11-01T00:00:00Z", "--hours", "24", "--min-elevation", "0", "--json")
    found = json.loads(passes("--catalog", str(path), *site).stdout)
    assert len({each["elements_epoch_utc"] for each in found}) == len(found) > 3
    assert {each["elements_age_days"] < 20 / 1440 + 0.001 for each in found[1:]} == {True}
    assert all(one["los_utc"] < other["aos_utc"] for one, other in itertools.pairwise(found))


def test_a_stated_decay_ends_an_object(tmp_path: Path) -> None:
    sets = [dict(json.loads(each)) for each in _iss_as_json()]
    path = tmp_path / "gp.json"
    path.write_text(json.dumps([{**sets[0], "DECAY_DATE": "2024-11-01"}]))
    assert decode_element_sets(path.read_bytes(), segment_format="omm-json")["decay_time_ns"].to_pylist() == [
        1_730_505_600_000_000_000
    ]
    site = (*SITE[:6], "--start", "2024-11-01T00:00:00Z", "--hours", "72", "--min-elevation", "0", "--json")
    done = passes("--catalog", str(path), *site)
    found = json.loads(done.stdout)
    assert len(found) > 3
    assert max(each["los_utc"] for each in found) < "2024-11-02"
    assert "usable until 2024-11-02T00:00:00.000Z" in done.stderr
    assert "the object has decayed, as the source" in done.stderr


def _iss_as_json() -> list[str]:
    header, *lines = reference_catalogue().decode().splitlines()
    iss = next(line for line in lines if "ISS (ZARYA)" in line)
    return [json.dumps(dict(zip(header.split(","), iss.split(","), strict=True)))]
