"""A small platform on disk: what it consumes and decides, and its command line."""

from pathlib import Path

from click.testing import CliRunner

from sda_platform.cli.main import main
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS, land, radar_segment

ALERT = "a" * 8


def consume(home: Path, name: str) -> None:
    lake, zone = lake_at(home / "lake"), zone_of(home)
    land(zone, name, radar_segment(1, first_track=ord(name)))
    segment = zone.read(next(iter(zone.pending()))).ref(1)
    row = {"feed": "radar", "segment_sha256": segment.sha256, "segment_name": name, "record_number": 0}
    commit(lake, RAW_RECORDS, [row], segments=[segment])
    zone.acknowledge([segment])


def zone_of(home: Path) -> LandingZone:
    return LandingZone(str(home / "landing"), "radar")


def alert(lake: Lake, *steps: tuple[int, str, float]) -> None:
    rows = [
        {"event_id": ALERT, "sequence": s, "op": op, "collision_probability": p, "tca_time_ns": START_NS + 10**12}
        for s, op, p in steps
    ]
    commit(lake, CONJUNCTION_ALERTS, rows)


def sda(home: Path, *arguments: str) -> tuple[int, str]:
    answer = CliRunner().invoke(main, ["--home", str(home), *arguments])
    return answer.exit_code, " ".join(answer.output.split())
