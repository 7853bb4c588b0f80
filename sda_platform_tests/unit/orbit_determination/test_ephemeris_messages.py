"""Refined ephemerides as messages: the platform itself reads from them what the table has."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from sda_platform.catalog.ephemeris_decoding import decode
from sda_platform.catalog.tables import EPHEMERIDES_FEED
from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.formats.element_set import OWN_ORIGINATOR
from sda_platform.formats.segments import describe_segment
from sda_platform.orbit_determination.tables import REFINED_EPHEMERIDES
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.refined_paths import refined_row
from sda_platform_tests.support.scenes import START_NS

SAME = ("norad_id", "object_name", "usable_from_ns", "usable_until_ns", "state_time_ns", "covariance_time_ns")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    commit(lake_at(tmp_path / "lake"), REFINED_EPHEMERIDES, [refined_row(), refined_row(5, object_name=None)])
    return tmp_path


@pytest.mark.parametrize(("name", "segment_format"), [("iss.oem", "oem-kvn"), ("iss.xml", "oem-xml")])
def test_what_is_written_is_read_with_every_digit(home: Path, name: str, segment_format: str) -> None:
    done = CliRunner().invoke(main, ["--home", str(home), "catalog", "ephemeris", "25544", str(home / name)])
    assert done.exit_code == 0, done.output
    assert "5 states from 2024-11-01T06:00:00" in done.output
    data = (home / name).read_bytes()
    meta = describe_segment(
        data, feed=EPHEMERIDES_FEED, segment_format=segment_format, sealed_time_ns=1, sealed_wall_time_ns=1
    )
    (read,) = decode(data, meta).to_pylist()
    assert read["error_kind"] is None, read["error"]
    expected = refined_row()
    assert {column: read[column] for column in SAME} == {column: expected[column] for column in SAME}
    assert read["originator"] == OWN_ORIGINATOR
    assert read["reference_frame"] == "TEME"
    assert read["state"] == expected["state"], "TEME of date is what the platform works in: no digit changes"
    assert read["covariance"] == pytest.approx(expected["covariance"], rel=1e-9)


def test_an_object_without_an_ephemeris_is_named(home: Path) -> None:
    done = CliRunner().invoke(main, ["--home", str(home), "catalog", "ephemeris", "7", str(home / "7.oem")])
    assert done.exit_code == 1
    assert "no ephemeris of object 7" in done.output
    assert not (home / "7.oem").exists()


def test_an_object_without_a_name_is_named_by_its_number(home: Path) -> None:
    done = CliRunner().invoke(main, ["--home", str(home), "catalog", "ephemeris", "5", str(home / "5.oem")])
    assert done.exit_code == 0, done.output
    lines = (home / "5.oem").read_text().splitlines()
    assert [line.split() for line in lines if line.startswith("OBJECT_NAME")] == [["OBJECT_NAME", "=", "5"]]
