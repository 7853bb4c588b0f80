"""Landing zones: when a segment is there, what is wrong with it, and how it leaves."""

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from sda_platform.formats.records import FEED_FORMATS
from sda_platform.lake.checkpoint import SegmentRef
from sda_platform.lake.landing import LandingZone, segment_sha256, unknown_zones
from sda_platform_tests.segments import described, land, put, radar_segment

DATA = radar_segment(3)
OTHER = radar_segment(3, first_track=100)


@pytest.fixture
def zone(tmp_path: Path) -> LandingZone:
    return LandingZone(str(tmp_path), "radar")


def files(zone: LandingZone, place: str) -> dict[str, bytes]:
    folder = Path(str(zone.root)) / place
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())} if folder.exists() else {}


def ref(name: str) -> SegmentRef:
    return SegmentRef("radar", name, hashlib.sha256(DATA).hexdigest(), len(DATA), 3)


def test_a_sealed_segment_is_pending_and_reads_back_whole(zone: LandingZone) -> None:
    assert zone.pending() == []
    assert land(zone, "a", DATA)
    (segment,) = zone.pending()
    assert (segment.name, segment.meta, segment.defect) == ("a", described(DATA), None)
    assert zone.pending_names() == ["a"]
    assert zone.read(segment) == (DATA, None)


def test_data_without_metadata_is_not_there_yet(zone: LandingZone) -> None:
    put(zone, "a", DATA)
    assert (zone.pending(), zone.pending_names()) == ([], [])


def test_a_half_written_file_is_invisible(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    (Path(str(zone.root)) / "pending" / ".b.tmp").write_bytes(b"half")
    assert zone.pending_names() == ["a"]
    assert list(zone.orphans(2e9, 0)) == []


def test_segments_come_in_the_order_of_their_seals(zone: LandingZone) -> None:
    land(zone, "a", DATA, seconds=3)
    land(zone, "b", OTHER, seconds=2)
    assert [s.name for s in zone.pending()] == ["b", "a"]


def test_sealing_the_same_segment_again_changes_nothing(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    before = files(zone, "pending")
    assert not land(zone, "a", DATA)
    assert files(zone, "pending") == before


def test_sealing_what_was_consumed_is_refused_under_any_name(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    zone.acknowledge([ref("a")])
    assert not land(zone, "a", DATA)
    assert not land(zone, "b", DATA)
    assert files(zone, "pending") == {}


@pytest.mark.parametrize(
    ("data", "defect"),
    [
        (DATA[:-1], "a: truncated: has 215 bytes, metadata says 216"),
        (b"", "a: truncated: has 0 bytes, metadata says 216"),
        (DATA[:-1] + b"x", f"a: checksum differs from the metadata's {hashlib.sha256(DATA).hexdigest()[:12]}…"),
    ],
)
def test_data_that_is_not_what_its_metadata_promises_is_a_defect(zone: LandingZone, data: bytes, defect: str) -> None:
    zone.seal("a", data, described(DATA))
    assert zone.read(zone.pending()[0]) == (data, defect)


def test_metadata_without_data_is_a_defect(zone: LandingZone) -> None:
    put(zone, "a.meta.json", described(DATA).to_json().encode())
    assert zone.read(zone.pending()[0]) == (b"", "a: metadata without data")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"{", "a: metadata unreadable: not JSON"),
        (b"[]", "a: metadata unreadable: not a JSON object but a list"),
        (b"\xff\xfe", "a: metadata unreadable: not JSON"),
        (
            json.dumps({**asdict(described(DATA)), "sha256": "short"}).encode(),
            "a: metadata unreadable: sha256 is 'short'",
        ),
        (json.dumps({**asdict(described(DATA)), "records": -1}).encode(), "a: metadata unreadable: records is -1"),
        (described(DATA, "isl").to_json().encode(), "a: unknown feed 'isl' in the zone of radar"),
    ],
)
def test_metadata_that_cannot_be_used_is_a_defect_that_says_why(zone: LandingZone, text: bytes, reason: str) -> None:
    put(zone, "a", DATA)
    put(zone, "a.meta.json", text)
    (segment,) = zone.pending()
    data, defect = zone.read(segment)
    assert (data, segment.meta) == (DATA, None)
    assert defect is not None
    assert defect.startswith(reason)


def test_acknowledging_archives_by_content_and_can_be_repeated(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    for _ in range(3):
        zone.acknowledge([ref("a")])
        assert files(zone, "pending") == {}
        assert files(zone, "archive") == {hashlib.sha256(DATA).hexdigest(): DATA}
    assert zone.was_archived(hashlib.sha256(DATA).hexdigest())


def test_a_crash_between_dropping_the_metadata_and_moving_the_data_is_mended(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    (Path(str(zone.root)) / "pending" / "a.meta.json").unlink()
    zone.acknowledge([ref("a")])
    assert (files(zone, "pending"), files(zone, "archive")) == ({}, {hashlib.sha256(DATA).hexdigest(): DATA})


def test_a_defective_segment_goes_to_quarantine_with_its_bytes(zone: LandingZone) -> None:
    zone.seal("a", b"torn", described(DATA))
    told = SegmentRef("radar", "a", segment_sha256("radar", "a", b"torn", "a: truncated"), 4, 1, "a: truncated")
    zone.acknowledge([told])
    assert (files(zone, "pending"), files(zone, "archive")) == ({}, {})
    assert list(files(zone, "quarantine").values()) == [b"torn"]


def test_acknowledging_leaves_new_data_alone_that_came_under_an_old_name(zone: LandingZone) -> None:
    """A partner calls every day's file the same: yesterday's clean-up, repeated, must not take today's file."""
    land(zone, "catalogue.csv", DATA)
    zone.acknowledge([ref("catalogue.csv")])
    assert land(zone, "catalogue.csv", OTHER)
    zone.acknowledge([ref("catalogue.csv")])
    (segment,) = zone.pending()
    assert zone.read(segment) == (OTHER, None)
    assert files(zone, "archive") == {hashlib.sha256(DATA).hexdigest(): DATA}


def test_a_discarded_duplicate_leaves_nothing(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    zone.discard_duplicate("a")
    zone.discard_duplicate("a")
    assert files(zone, "pending") == {}


def test_orphans_are_told_once_their_grace_is_over(zone: LandingZone) -> None:
    land(zone, "whole", OTHER)
    put(zone, "lone", DATA)
    put(zone, "ghost.meta.json", described(DATA).to_json().encode())
    pending = Path(str(zone.root)) / "pending"
    for name in ("lone", "ghost.meta.json"):
        os.utime(pending / name, (1000, 1000))
    assert list(zone.orphans(1059, 60)) == []
    assert [(Path(o.path).name, o.reason, o.age_s) for o in zone.orphans(1060, 60)] == [
        ("ghost.meta.json", "metadata without data", 60),
        ("lone", "data without metadata", 60),
    ]


def test_directories_of_unknown_feeds_are_reported(tmp_path: Path) -> None:
    assert unknown_zones(str(tmp_path / "nowhere"), FEED_FORMATS) == []
    for name in (*FEED_FORMATS, "lidar"):
        (tmp_path / name).mkdir()
    (tmp_path / "README").write_text("a file is no zone")
    (orphan,) = unknown_zones(str(tmp_path), FEED_FORMATS)
    assert orphan.path.endswith("lidar")
    assert orphan.reason == "unknown feed 'lidar'; known are elements, isl, optical, radar"


@pytest.mark.parametrize("claimed", [2, 4])
def test_another_number_of_records_than_promised_is_a_defect(zone: LandingZone, claimed: int) -> None:
    land(zone, "a", DATA, records=claimed)
    assert zone.read(zone.pending()[0]) == (DATA, f"a: metadata says {claimed} records, found 3")


def test_what_was_replaced_after_a_crash_inside_the_clean_up_is_still_known_as_consumed(zone: LandingZone) -> None:
    land(zone, "a", DATA)
    (Path(str(zone.root)) / "pending" / "a.meta.json").unlink()
    assert land(zone, "a", OTHER)
    zone.acknowledge([ref("a")])
    assert zone.read(zone.pending()[0]) == (OTHER, None)
    assert zone.was_archived(hashlib.sha256(DATA).hexdigest())
