"""A sensor's own CSV by every way in, with the mapping of its columns from the home; and the example of the guide."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sda_platform.cli.data.convert import convert_file
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.edge.config import CollectorConfig
from sda_platform.edge.service import run_collector
from sda_platform.edge.sources import documents
from sda_platform.formats.segments import Sender
from sda_platform.ingest.decoding import decode
from sda_platform.landing.first_lines import MappingError, Mappings
from sda_platform.landing.lander import Lander
from sda_platform.landing.partner_bounds import PartnerBounds
from sda_platform.landing.partner_files import PartnerFileError
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.sample_inputs import MAPPED, NOW_NS, SAMPLES

CLOCK = MissionClock.starting_at(NOW_NS, rate=0.0)
TOML = """
separator = ";"
sensor = "RADAR-31"
object = { column = "Target" }
time = { column = "UT", format = "iso" }

[fields]
range = { column = "Rng", unit = "m" }
range_rate = { column = "Rdot", unit = "m/s" }
azimuth = { column = "Az", unit = "rad" }
elevation = { column = "El", unit = "deg" }
range_sigma = { value = 15.0, unit = "m" }
"""
GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "add-a-sensor.md"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "mappings").mkdir()
    write(tmp_path, TOML)
    CLOCK.save(tmp_path)
    return tmp_path


def write(home: Path, toml: str, name: str = "tenerife.toml") -> None:
    (home / "mappings" / name).write_text(toml)


def rows(home: Path) -> list[dict[str, Any]]:
    """The observations of the pending segments of tracking data."""
    zone = LandingZone(str(home / "landing"), "tracking")
    loaded = [zone.read(segment) for segment in zone.pending()]
    found: list[dict[str, Any]] = decode([(each.data, each.meta) for each in loaded if each.meta]).to_pylist()
    return found


def arrive(way: str, home: Path, data: bytes, name: str) -> None:
    root, mappings, path = str(home / "landing"), Mappings.of(home), home / name
    path.write_bytes(data)
    if way == "land":
        done = CliRunner().invoke(main, ["--home", str(home), "land", str(path)])
        assert done.exit_code == 0, done.output
    elif way == "pull":
        arguments = ("tracking", "tdm-kvn", CLOCK, root, "pulled", PartnerBounds(), Sender("web"), name, mappings)
        documents.seal_document(data, *arguments)
    else:
        Lander(root, CLOCK, bounds=PartnerBounds(), mappings=mappings).land(
            path, feed="tracking", segment_format="mapped-csv" if way == "upload with a format" else None
        )


@pytest.mark.parametrize("way", ["land", "folder or upload", "upload with a format", "pull"])
def test_by_every_way_in_it_becomes_what_its_mapping_states(way: str, home: Path) -> None:
    arrive(way, home, MAPPED, "night.csv")
    lander = Lander(str(home / "other" / "landing"), CLOCK)
    (home / "own.csv").write_bytes(SAMPLES["mapped-csv"])
    lander.land(home / "own.csv")
    found, expected = rows(home), rows(home / "other")
    assert [row["error"] for row in found] == [None, None]
    assert [row["observation_id"] for row in found] == [row["observation_id"] for row in expected]
    assert (found[0]["range_m"], found[0]["range_sigma_m"]) == (1_204_300.5, 15.0)


def test_an_edited_mapping_concerns_what_lands_later_and_is_in_the_segment(home: Path) -> None:
    arrive("land", home, MAPPED, "night.csv")
    write(home, TOML.replace('"Rng", unit = "m"', '"Rng", unit = "cm"').replace("15.0", "20.0"))
    assert [row["range_m"] for row in rows(home)] == [1_204_300.5, 1_202_150.5]
    arrive("land", home, MAPPED, "night.csv")
    assert len(rows(home)) == 4, "with another mapping it is another landing"
    zone = LandingZone(str(home / "landing"), "tracking")
    units = {json.loads(zone.read(s).data.partition(b"\n")[0][11:])["fields"]["range"]["unit"] for s in zone.pending()}
    assert units == {"m", "cm"}


def test_it_is_converted_to_a_tracking_data_message(home: Path) -> None:
    (home / "night.csv").write_bytes(MAPPED)
    done = convert_file(home / "night.csv", "kvn", mappings=Mappings.of(home))
    assert (done.records, b"RANGE = 2024-11-01T00:00:00.250000 1204.3005" in done.data) == (2, True)
    shown = CliRunner().invoke(main, ["--home", str(home), "convert", str(home / "night.csv"), "--to", "kvn"])
    assert shown.output_bytes == done.data or shown.stdout_bytes == done.data


def test_files_in_an_archive_each_have_their_header(home: Path) -> None:
    with zipfile.ZipFile(home / "nights.zip", "w") as archive:
        archive.writestr("a.csv", MAPPED)
        archive.writestr("b.csv", MAPPED.replace(b"2024-11-01T00", b"2024-11-01T01"))
    arrive("pull", home, (home / "nights.zip").read_bytes(), "nights.zip")
    assert [row["error"] for row in rows(home)] == [None] * 4


@pytest.mark.parametrize("way", ["folder or upload", "pull"])
def test_what_no_mapping_or_several_fit_is_refused_with_the_reasons(way: str, home: Path) -> None:
    refusals = (PartnerFileError, documents.UnexpectedContent)
    with pytest.raises(refusals, match=r"tenerife\.toml: column 'Rng' is not in the header"):
        arrive(way, home, MAPPED.replace(b"Rng", b"Range"), "night.csv")
    write(home, TOML, "canary.toml")
    with pytest.raises(refusals, match=r"canary\.toml and tenerife\.toml both fit"):
        arrive(way, home, MAPPED, "night.csv")
    write(home, f'files = "canary-*.csv"\n{TOML}', "canary.toml")
    arrive(way, home, MAPPED, "night.csv")
    assert len(rows(home)) == 2


def test_a_mapping_that_cannot_be_used_stops_the_start_and_refuses_the_file(home: Path) -> None:
    write(home, TOML.replace('unit = "rad"', 'unit = "furlong"'))
    reason = r"tenerife\.toml: .*fields\.azimuth: unit is 'furlong', must be one of 'deg'"
    with pytest.raises(MappingError, match=reason):
        run_collector(home / "collect.toml", landing_root=str(home / "landing"), home=home)
    started = CliRunner().invoke(main, ["--home", str(home), "up"])
    assert (started.exit_code, re.search(reason, " ".join(started.output.split())) is not None) == (1, True)
    with pytest.raises(PartnerFileError, match=reason):
        arrive("folder or upload", home, MAPPED, "night.csv")
    arrive("folder or upload", home, SAMPLES["tdm-kvn"], "other.txt")
    assert [row["error"] for row in rows(home)] == [None]


@pytest.mark.parametrize("bad", ["separator = ", TOML.replace('"iso"', '"of the day"'), "[fields]\n"])
@pytest.mark.parametrize("way", ["folder or upload", "pull"])
def test_a_mapping_that_cannot_be_used_keeps_no_file_from_one_that_fits(way: str, bad: str, home: Path) -> None:
    write(home, bad, "canary.toml")
    arrive(way, home, MAPPED, "night.csv")
    assert [row["error"] for row in rows(home)] == [None, None]
    refusals = (PartnerFileError, documents.UnexpectedContent)
    with pytest.raises(refusals, match=r"fits \(cannot be used: .*canary\.toml: [a-z]") as refused:
        arrive(way, home, MAPPED.replace(b"Rng", b"Range"), "other.csv")
    assert "Value error" not in str(refused.value)


def test_a_source_that_is_pulled_may_have_a_mapping() -> None:
    pulled = {"kind": "pull", "url": "https://radar.example/night.csv", "zone": "tracking", "format": "mapped-csv"}
    assert CollectorConfig.model_validate({"sources": {"night": pulled}}).sources["night"].kind == "pull"


def test_the_example_of_the_guide_works(home: Path) -> None:
    """[add-a-sensor.md] Its mapping, its file, and the first observation that it states."""
    section = GUIDE.read_text().partition("## A CSV with columns of its own")[2]
    toml, csv = (re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL)[1] for kind in ("toml", "text"))  # type: ignore[index]
    write(home, toml)
    path = home / "teide_20241101.csv"
    path.write_text(csv)
    output = CliRunner().invoke(main, ["--home", str(home), "land", str(path)]).output.replace("\n", " ")
    assert (
        f"optical-teide is not in the list of sensors, so that no fit uses what it observes: add it to {home}" in output
    )
    first = rows(home)[0]
    assert (first["error"], first["source_id"], first["native_track_id"]) == (None, "optical-teide", "T-0042")
    assert (first["sensor_time_ns"], first["right_ascension_rad"] > 0) == (1_730_427_330_500_000_000, True)
    assert first["angle_sigma_rad"] == pytest.approx(1.2 / 206_264.806, rel=1e-6)
