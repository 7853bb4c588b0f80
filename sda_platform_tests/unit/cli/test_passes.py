"""`sda passes`: from a file of element sets, as JSON and as a table."""

import itertools
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sda_platform.cli.main import main
from sda_platform.runtime.platform_home import take_lock
from sda_platform.simulation.reference import reference_catalogue

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
    found = json.loads(passes("--catalog", str(catalogue), *SITE, "--min-elevation", "5", "--json").output)
    assert len(found) > 10
    assert {tuple(each) for each in found} == {("norad_id", "aos_utc", "tca_utc", "los_utc", "max_elevation_deg")}
    assert [each["aos_utc"] for each in found] == sorted(each["aos_utc"] for each in found)
    assert all(each["aos_utc"] <= each["tca_utc"] <= each["los_utc"] for each in found)
    assert min(each["max_elevation_deg"] for each in found) >= 5


def test_one_object_has_its_passes_once_by_the_set_in_force(catalogue: Path) -> None:
    found = json.loads(passes("--catalog", str(catalogue), *SITE, "--object", "25544", "--json").output)
    assert {each["norad_id"] for each in found} == {25544}
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
        found.append(passes("--catalog", str(path), *SITE, "--json").output)
    assert len(json.loads(found[0])) > 1
    assert found[1] == found[2] == found[0]


def test_a_person_gets_a_table(catalogue: Path) -> None:
    answer = passes("--catalog", str(catalogue), *SITE, "--object", "25544")
    assert answer.exit_code == 0 and "culmination" in answer.output and "25544" in answer.output


def test_without_a_catalogue_the_message_names_the_remedy(tmp_path: Path) -> None:
    take_lock(tmp_path).close()
    answer = CliRunner().invoke(main, ["--home", str(tmp_path), "passes", *SITE])
    assert (answer.exit_code, "--catalog" in answer.output, "Traceback" in answer.output) == (1, True, False)
