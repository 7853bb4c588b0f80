"""The zones of a replay give what a commit consumed; a correction takes the place of one segment's bytes."""

from pathlib import Path

from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Head
from sda_platform.landing.zone import LandingZone
from sda_platform.replay.recorded_zones import RecordedZones
from sda_platform_tests.support.segments import land, radar_segment

BAD, GOOD, BETTER = radar_segment(3), radar_segment(2, first_track=9), radar_segment(5, first_track=50)


def test_a_corrected_segment_is_taken_under_its_name_with_other_records__DL6_I14(tmp_path: Path) -> None:
    zone = LandingZone(str(tmp_path), "radar")
    land(zone, "bad.seg", BAD)
    land(zone, "good.seg", GOOD)
    consumed = sorted((zone.read(each).ref(1) for each in zone.pending()), key=lambda each: each.name)
    zones = RecordedZones([zone], 2, 0, segments=consumed, corrected={consumed[0].sha256: BETTER})
    bad, good = zones.take(TableLog(RAW_RECORDS, str(tmp_path / "table")), Head())
    assert (bad.name, bad.data, bad.defect, good.data) == ("bad.seg", BETTER, None, GOOD)
    assert bad.meta is not None and bad.meta.records == 5, "else the decoder would refuse the segment"
    assert bad.sha256 == bad.meta.sha256 != consumed[0].sha256 and good.sha256 == consumed[1].sha256
