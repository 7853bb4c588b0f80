"""What a sensor stamps is compared with the mission clock, which `sda now` prints."""

from pathlib import Path

from click.testing import CliRunner

from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.formats.framing.container import pack_records
from sda_platform.ingest import decoding as observations
from sda_platform.units import SECOND_NS
from sda_platform_tests.support.segments import START_NS, described, radar_payloads


def test_a_time_of_another_clock_is_refused_with_the_reason_and_what_to_do() -> None:
    data = pack_records([radar_payloads(1)[0]], [START_NS - 3600 * SECOND_NS])
    (row,) = observations.decode([(data, described(data))]).to_pylist()
    assert row["error_kind"] == "out_of_range"
    assert "after its reception at 2024-10-31T23:00:00.000Z by the mission clock" in row["error"]
    assert "`sda now`" in row["error"]


def test_the_mission_time_is_that_of_the_home(tmp_path: Path) -> None:
    MissionClock(START_NS, 0, 0.0).save(tmp_path)
    now, in_ns = (CliRunner().invoke(main, ["--home", str(tmp_path), "now", *more]).output for more in ([], ["--ns"]))
    assert (now, in_ns) == ("2024-11-01T00:00:00.000Z\n", f"{START_NS}\n")
