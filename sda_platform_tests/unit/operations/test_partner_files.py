"""`sda land`: which zone and format a file goes to, and what is refused with which words."""

import gzip
from pathlib import Path

import pytest

from sda_platform.clock import MissionClock
from sda_platform.formats.segments import parse_segment_meta
from sda_platform.ingest.partner_files import PartnerFileError, land_file
from sda_platform_tests.segments import START_NS, radar_segment

CLOCK = MissionClock(START_NS, 0, 0.0)
RECORD = (
    b'{"obs_id":"o-1","timestamp_ns":1730419200000000000,"ra_rad":1.0,"dec_rad":0.2,"sigma_arcsec":1.0,'
    b'"site_id":"maui"}\n'
)


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "data", "zone", "records"),
    [
        ("night.jsonl", RECORD * 3, "optical", 3),
        ("pass.radar", radar_segment(4), "radar", 4),
        ("night.jsonl.gz", gzip.compress(RECORD), "optical", 1),
    ],
)
def test_a_file_lands_data_first_metadata_last(tmp_path: Path, name: str, data: bytes, zone: str, records: int) -> None:
    landed = land_file(write(tmp_path, name, data), str(tmp_path / "landing"), CLOCK)
    pending = tmp_path / "landing" / zone / "pending"
    meta = parse_segment_meta((pending / f"{landed.segment}.meta.json").read_text())
    assert (landed.zone, landed.records, landed.is_new) == (zone, records, True)
    assert (meta.records, meta.bytes, meta.sealed_time_ns) == (
        records,
        len((pending / landed.segment).read_bytes()),
        START_NS,
    )


def test_landing_the_same_bytes_again_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, "night.jsonl", RECORD)
    first = land_file(path, str(tmp_path / "landing"), CLOCK)
    second = land_file(path, str(tmp_path / "landing"), CLOCK)
    assert (first.segment, first.is_new, second.is_new) == (second.segment, True, False)
    assert len(list((tmp_path / "landing" / "optical" / "pending").iterdir())) == 2


@pytest.mark.parametrize(
    ("name", "data", "options", "words"),
    [
        ("notes.docx", b"x", {}, "cannot tell its format"),
        ("empty.jsonl", b"", {}, "is empty"),
        ("torn.jsonl.gz", b"\x1f\x8b\x08\x00broken", {}, "cannot be read"),
        ("night.jsonl", RECORD, {"feed": "lidar"}, "unknown feed 'lidar'; the feeds are elements, isl, optical, radar"),
        ("night.jsonl", RECORD, {"feed": "radar"}, "feed radar does not carry format 'optical-jsonl'"),
    ],
)
def test_what_cannot_be_landed_is_refused_by_name_and_reason(
    tmp_path: Path, name: str, data: bytes, options: dict[str, str], words: str
) -> None:
    path = write(tmp_path, name, data)
    with pytest.raises(PartnerFileError, match=words) as refusal:
        land_file(path, str(tmp_path / "landing"), CLOCK, **options)
    assert str(path) in str(refusal.value)
    assert not (tmp_path / "landing").exists()
