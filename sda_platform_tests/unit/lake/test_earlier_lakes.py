"""Lakes that earlier versions of the platform wrote: `data/lakes/vN.tar.gz`, by their own code, with landing zones.

Each has two segments in `raw_records`, and `observations` that consumed them.
"""

import tarfile
from pathlib import Path
from shutil import copytree

import pytest
from click.testing import CliRunner

from sda_platform.cli.main import main
from sda_platform.clock import MissionClock
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.errors import OtherSchemaVersion
from sda_platform.lake.lake import Lake
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.delta_tables import commit, lake_at
from sda_platform_tests.support.segments import START_NS, land, radar_segment

LAKES = Path(__file__).parents[2] / "data" / "lakes"
GONE = "consensus_campaign"
"""A table of earlier platforms, which this one does not have."""
REBUILD = ("lake", "verify", "--repair", "--rebuild", "all")


def opened(home: Path, version: int) -> Lake:
    with tarfile.open(LAKES / f"v{version}.tar.gz") as archive:
        # Python has filters since 3.11.4; before, it extracts as it stands.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(home)
    MissionClock(START_NS, 0, 0.0).save(home)
    return lake_at(home / "lake")


def sda(home: Path, *arguments: str) -> tuple[int, str]:
    answer = CliRunner().invoke(main, ["--home", str(home), *arguments])
    return answer.exit_code, " ".join(answer.output.split())


def goes_on(home: Path, lake: Lake, consumed_before: int) -> None:
    """One more segment lands; the chain holds, and the observations consume what they have not consumed."""
    zone = LandingZone(str(home / "landing"), "radar")
    land(zone, "c", radar_segment(1, first_track=7))
    segment = zone.read(next(iter(zone.pending()))).ref(1)
    commit(lake, RAW_RECORDS, [{"segment_sha256": segment.sha256, "segment_name": "c"}], segments=[segment])
    zone.acknowledge([segment])
    window = lake.plan(OBSERVATIONS).window(RAW_RECORDS)
    assert (window.after_sequence, window.upto_sequence) == (consumed_before, 3)
    commit(lake, OBSERVATIONS, windows=lake.plan(OBSERVATIONS).windows)
    assert lake.log(RAW_RECORDS).rows(["segment_name"]).num_rows == 3
    assert sda(home, "lake", "verify", "--deep")[0] == 0


def test_a_lake_of_the_previous_release_opens_and_goes_on_P1_14(tmp_path: Path) -> None:
    lake = opened(tmp_path, 6)
    copytree(tmp_path / "lake" / "observations", tmp_path / "lake" / GONE)
    assert sda(tmp_path, "lake", "verify", "--deep")[0] == 0
    goes_on(tmp_path, lake, consumed_before=2)
    code, answer = sda(tmp_path, *REBUILD)
    assert (code, f"set {GONE} aside" in answer) == (0, True), answer


@pytest.mark.parametrize("version", [3, 4, 5])
def test_an_older_lake_keeps_what_was_landed_and_is_made_anew_from_it_P1_14(tmp_path: Path, version: int) -> None:
    lake = opened(tmp_path, version)
    with pytest.raises(OtherSchemaVersion, match="observations: commit 1 was made by an earlier version"):
        lake.plan(OBSERVATIONS)
    code, told = sda(tmp_path, "lake", "verify", "--repair")
    assert (code, f"Run `sda {' '.join(REBUILD)}`" in told) == (1, True), told
    code, answer = sda(tmp_path, *REBUILD)
    assert (code, "set observations aside" in answer) == (0, True), answer
    assert lake.log(RAW_RECORDS).head().sequence == 2, "what was landed stays, however old its segments are"
    goes_on(tmp_path, lake_at(tmp_path / "lake"), consumed_before=0)
