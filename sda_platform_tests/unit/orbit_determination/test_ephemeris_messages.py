"""Refined ephemerides as messages: the platform itself reads from them what the table has."""

from pathlib import Path
from typing import Any

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
from sda_platform_tests.support.scenes import SECOND_NS, START_NS

SAME = ("norad_id", "object_name", "usable_from_ns", "usable_until_ns", "state_time_ns", "covariance_time_ns")


def row(norad_id: int = 25544, **changed: Any) -> dict[str, Any]:
    times = [START_NS + n * 60 * SECOND_NS + 1 for n in range(5)]
    states = [[7000.1 + n, 450 * n - 1 / 3 * n, 12.5, 0.1, 7.5, 1e-3 * n] for n in range(5)]
    lower = [[float(1 + i) if i == j else 1e-4 * (i + j) / 3 for i in range(6) for j in range(i + 1)]] * 2
    facts = {
        "norad_id": norad_id,
        "object_name": "ISS (ZARYA)",
        "international_designator": "1998-067A",
        "epoch_time_ns": times[0],
        "usable_from_ns": times[0],
        "usable_until_ns": times[3],
        "state_time_ns": times,
        "state": [value for state in states for value in state],
        "covariance_time_ns": [times[0], times[4]],
        "covariance": [value for each in lower for value in each],
        "position_sigma_m": 12.25,
        "published_epoch_ns": START_NS,
        "published_sigma_m": 900.0,
        "windows": 20,
        "arc_s": 600.0,
        "held_back_windows": 3,
        "held_back_rms": 1.04,
        "published_held_back_rms": 9.5,
        "as_of_ns": times[4],
    }
    return {**facts, **changed}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    commit(lake_at(tmp_path / "lake"), REFINED_EPHEMERIDES, [row(), row(5, object_name=None)])
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
    expected = row()
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
