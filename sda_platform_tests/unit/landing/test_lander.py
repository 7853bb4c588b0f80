"""`sda land`: files of any size and kind land once, in order, whatever is killed when; torn ones are refused whole."""

import bz2
import gzip
import json
import lzma
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from sda_platform import failpoints
from sda_platform.clock import MissionClock
from sda_platform.formats.cutting import split_records
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.registry import ZONES
from sda_platform.formats.segments import Sender
from sda_platform.lake.log_commits import Head
from sda_platform.landing import intake
from sda_platform.landing.lander import LandedFile, Lander
from sda_platform.landing.partner_bounds import PartnerBounds
from sda_platform.landing.partner_files import PartnerFileError
from sda_platform.landing.segments import LoadedSegment
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.crashes import crash_at, crashes
from sda_platform_tests.support.segments import START_NS, catalogue_ids, catalogue_of, committed, radar_segment

CLOCK = MissionClock(START_NS, 0, 0.0)
LIMIT = 2000
MESSAGES = Path(__file__).parents[2] / "data" / "omm"


def optical_line(number: int) -> bytes:
    return (
        b'{"obs_id":"o-%d","timestamp_ns":1730419200000000000,"ra_rad":1.0,"dec_rad":0.2,"sigma_arcsec":1.0,'
        b'"site_id":"maui"}\n' % number
    )


def optical(count: int) -> bytes:
    return b"".join(map(optical_line, range(count)))


def objects(count: int) -> bytes:
    return json.dumps(
        [{"MEAN_MOTION": 15.5, "NORAD_CAT_ID": n, "OBJECT_NAME": "x" * 40} for n in range(count)]
    ).encode()


def element_sets(count: int) -> bytes:
    return b"".join(b"NAME %d\n1 %05dU line one\n2 %05d line two\n" % (n, n, n) for n in range(count))


def kvn_messages(count: int) -> bytes:
    return b"".join(b"CCSDS_CDM_VERS = 1.0\nMESSAGE_ID = %d\n\n" % n for n in range(count))


def xml_messages(count: int) -> bytes:
    return b"<ndm>\n%b</ndm>\n" % b"".join(b'<cdm id="CCSDS_CDM_VERS">%d</cdm>\n' % n for n in range(count))


FILES = {
    "night.jsonl": ("optical", "optical-jsonl", optical(40)),
    "night.jsonl.gz": ("optical", "optical-jsonl", optical(40)),
    "night.jsonl.zst": ("optical", "optical-jsonl", optical(40)),
    "night.jsonl.bz2": ("optical", "optical-jsonl", optical(40)),
    "night.jsonl.xz": ("optical", "optical-jsonl", optical(40)),
    "pass.radar": ("radar", "radar-frames", radar_segment(90)),
    "pass.isl": ("isl", "isl-frames", radar_segment(90)),
    "sets.csv": ("elements", "omm-csv", catalogue_of(catalogue_ids()[:50])),
    "sets.json.gz": ("elements", "omm-json", objects(90)),
    "sets.3le": ("elements", "tle", element_sets(150)),
    "theirs.kvn": ("messages", "cdm-kvn", kvn_messages(150)),
    "theirs.cdm.gz": ("messages", "cdm-kvn", kvn_messages(150)),
    "theirs.xml.zst": ("messages", "cdm-xml", xml_messages(150)),
}


def packed(name: str, content: bytes) -> bytes:
    if name.endswith(".gz"):
        return gzip.compress(content)
    if name.endswith((".bz2", ".xz")):
        return bz2.compress(content) if name.endswith(".bz2") else lzma.compress(content)
    return zstandard.ZstdCompressor().compress(content) if name.endswith(".zst") else content


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def land(path: Path, *, limit: int = LIMIT, **options: Any) -> LandedFile:
    lander = Lander(str(path.parent / "landing"), CLOCK, segment_max_bytes=limit)
    return lander.land(path, **options)


def segments(folder: Path, feed: str) -> list[LoadedSegment]:
    """What waits, in the order of the records in the file."""
    zone = LandingZone(str(folder / "landing"), feed)
    waiting = sorted(zone.pending(), key=lambda s: int(Path(s.name).stem.rpartition("-")[2]))
    return [zone.read(segment) for segment in waiting]


def records(data: bytes, segment_format: str) -> list[bytes]:
    return [record.payload for record in split_records(data, segment_format)]


def landed_records(folder: Path, feed: str, segment_format: str) -> list[bytes]:
    found = segments(folder, feed)
    assert [segment.defect for segment in found] == [None] * len(found)
    return [payload for segment in found for payload in records(segment.data, segment_format)]


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_any_kind_lands_in_segments_whose_records_are_its_own(tmp_path: Path, name: str) -> None:
    feed, segment_format, content = FILES[name]
    done = land(write(tmp_path, name, packed(name, content)))
    assert landed_records(tmp_path, feed, segment_format) == records(content, segment_format)
    found = segments(tmp_path, feed)
    assert len(found) == len(done.segments) > 2
    assert max(len(segment.data) for segment in found) <= LIMIT
    assert (done.zone, done.records) == (feed, len(records(content, segment_format)))


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_fits_into_one_segment_is_that_segment(tmp_path: Path, name: str) -> None:
    feed, _, content = FILES[name]
    done = land(write(tmp_path, name, packed(name, content)), limit=2**20)
    (segment,) = segments(tmp_path, feed)
    assert (segment.name, segment.data) == (done.segments[0], content)
    assert segment.meta is not None
    assert segment.meta.sealed_time_ns == START_NS


@pytest.mark.parametrize("name", ["pass.radar", "sets.csv", "sets.json.gz"])
def test_a_lander_killed_at_any_point_goes_on_without_a_gap_or_a_repeat(tmp_path: Path, name: str) -> None:
    feed, segment_format, content = FILES[name]
    for n, killed in enumerate(crashes()):
        folder = tmp_path / str(n)
        folder.mkdir()
        path = write(folder, name, packed(name, content))
        with killed:
            land(path)
        found = landed_records(folder, feed, segment_format)
        assert found == records(content, segment_format)[: len(found)]
        land(path)
        assert landed_records(folder, feed, segment_format) == records(content, segment_format)
        assert len(list((folder / "landing" / ".lander").iterdir())) == 1, "and no partial file stays"
    assert n > 30


def test_what_is_consumed_between_two_attempts_is_not_landed_again(tmp_path: Path) -> None:
    """The lander was killed after a segment was sealed and before it wrote so; meanwhile the table took it."""
    path = write(tmp_path, "night.jsonl", optical(40))
    with crash_at("landing.sealed"):
        land(path)
    zone = LandingZone(str(tmp_path / "landing"), "optical")
    first = intake.take([zone], Head(), max_segments=10, max_bytes=10**6)
    intake.finish_last_commit([zone], committed(*first))
    land(path)
    rest = landed_records(tmp_path, "optical", "optical-jsonl")
    assert records(first[0].data, "optical-jsonl") + rest == records(optical(40), "optical-jsonl")


def test_the_progress_shows_how_many_records_were_read_and_that_the_file_is_finished(tmp_path: Path) -> None:
    path = write(tmp_path, "night.jsonl", optical(40))
    with crash_at("lander.progress_written"):
        land(path)
    progress = tmp_path / "landing" / ".lander"
    (told,) = (json.loads(p.read_text()) for p in progress.iterdir())
    assert (told["records_read"], told["segments"], told["finished"]) == (
        len(segments(tmp_path, "optical")[0].data.splitlines()),
        1,
        False,
    )
    land(path)
    (told,) = (json.loads(p.read_text()) for p in progress.iterdir())
    assert (told["schema_version"], told["records_read"], told["finished"], told["source"]) == (1, 40, True, str(path))


@pytest.mark.parametrize("other", ["night.jsonl", "again.jsonl", "again.jsonl.gz"])
def test_landing_a_finished_file_again_does_nothing_under_any_name_and_compression(tmp_path: Path, other: str) -> None:
    """F-dup: what counts is the content."""
    first = land(write(tmp_path, "night.jsonl", optical(40)))
    before = [segment.name for segment in segments(tmp_path, "optical")]
    again = land(write(tmp_path, other, packed(other, optical(40))), limit=LIMIT * 2)
    assert (again.segments, again.records) == ((), first.records)
    assert [segment.name for segment in segments(tmp_path, "optical")] == before


def test_a_file_that_grew_since_it_was_landed_lands_only_what_is_new(tmp_path: Path) -> None:
    """A log that a partner appends to every day: its earlier segments are the same bytes."""
    path = write(tmp_path, "night.jsonl", optical(100))
    first = land(path)
    zone = LandingZone(str(tmp_path / "landing"), "optical")
    taken = intake.take([zone], Head(), max_segments=100, max_bytes=10**6)
    intake.finish_last_commit([zone], committed(*taken))
    path.write_bytes(optical(120))
    again = land(path)
    assert 0 < len(again.segments) <= len(first.segments) // 2
    assert records(optical(120), "optical-jsonl")[-20:] == landed_records(tmp_path, "optical", "optical-jsonl")[-20:]


def test_rows_of_a_parquet_file_land_as_the_feed_s_text(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in optical(40).splitlines()]
    pq.write_table(pa.Table.from_pylist(lines), tmp_path / "night.parquet", row_group_size=7)
    sets = [
        {"NORAD_CAT_ID": n, "EPOCH": datetime(2024, 11, 1, 0, 0, n, tzinfo=UTC), "OBJECT_NAME": None} for n in range(40)
    ]
    pq.write_table(pa.Table.from_pylist(sets), tmp_path / "sets.parquet")
    assert land(tmp_path / "night.parquet").records == 40
    assert land(tmp_path / "sets.parquet", limit=500).records == 40
    assert [json.loads(r) for r in landed_records(tmp_path, "optical", "optical-jsonl")] == lines
    assert [json.loads(r) for r in landed_records(tmp_path, "elements", "omm-json")] == [
        {"NORAD_CAT_ID": n, "EPOCH": f"2024-11-01T00:00:{n:02d}"} for n in range(40)
    ]


def cuts(data: bytes) -> Iterator[bytes]:
    for length in {1, 5, len(data) // 3, len(data) // 2, len(data) - 9, len(data) - 4, len(data) - 1}:
        yield data[:length]


@pytest.mark.parametrize(
    "name",
    [
        "night.jsonl.gz",
        "night.jsonl.zst",
        "night.jsonl.bz2",
        "night.jsonl.xz",
        "night.jsonl",
        "sets.json.gz",
        "sets.csv",
    ],
)
def test_a_torn_file_is_refused_before_anything_has_landed_and_lands_once_when_it_is_whole(
    tmp_path: Path, name: str
) -> None:
    """F-torn: cut in the archive's header, data and trailer, in a row and before the last line feed."""
    feed, segment_format, content = FILES[name]
    path = tmp_path / name
    for torn in cuts(packed(name, content)):
        path.write_bytes(torn)
        with pytest.raises(PartnerFileError, match=r"cannot be read|breaks off|does not begin like") as refusal:
            land(path)
        assert str(path) in str(refusal.value)
    assert not (tmp_path / "landing").exists()
    path.write_bytes(packed(name, content))
    land(path)
    assert landed_records(tmp_path, feed, segment_format) == records(content, segment_format)


@pytest.mark.parametrize("packing", ["", ".xz"])
@pytest.mark.parametrize("name", ["omm_g7.kvn", "omm_g10.xml"])
def test_messages_in_kvn_and_xml_land_as_element_sets_byte_for_byte(tmp_path: Path, name: str, packing: str) -> None:
    content = (MESSAGES / name).read_bytes()
    path = write(tmp_path, name + packing, packed(packing, content))
    assert land(path, limit=2**20, is_complete=True).records == 1
    (segment,) = segments(tmp_path, "elements")
    assert segment.data == content
    assert segment.meta is not None
    (row,) = decode_element_sets(segment.data, segment_format=segment.meta.format).to_pylist()
    assert (row["error"], row["norad_id"]) == (None, 23581)


def test_a_torn_parquet_file_is_refused(tmp_path: Path) -> None:
    """F-torn: cut in the footer and in a page; F-corrupt: a bad page."""
    pq.write_table(pa.table({"obs_id": [f"o-{n}" for n in range(5000)]}), tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    middle = len(whole) // 2
    for torn in (*cuts(whole), whole[:50] + b"\xff" * 200 + whole[250:], whole[:middle] + whole[middle + 100 :]):
        with pytest.raises(PartnerFileError, match="cannot be read"):
            land(write(tmp_path, "b.parquet", torn))
    assert not (tmp_path / "landing").exists()


def test_a_flipped_bit_in_an_archive_is_found_before_anything_has_landed(tmp_path: Path) -> None:
    """F-corrupt: archives carry a checksum of what is in them."""
    data = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(optical(40)))
    for archive in (data, bytearray(gzip.compress(optical(40)))):
        archive[len(archive) // 2] ^= 4
        with pytest.raises(PartnerFileError, match="cannot be read past byte"):
            land(write(tmp_path, "night.jsonl.gz" if archive[0] == 0x1F else "night.jsonl.zst", bytes(archive)))
    assert not (tmp_path / "landing").exists()


def test_a_file_of_several_archives_one_after_the_other_is_read_to_its_end(tmp_path: Path) -> None:
    for name in ("a.jsonl.gz", "b.jsonl.zst"):
        parts = [packed(name, b"".join(map(optical_line, range(start, start + 20)))) for start in (0, 20)]
        assert land(write(tmp_path, name, b"".join(parts))).records == 40


@pytest.mark.parametrize("point", ["lander.examined", "lander.progress_written"])
def test_a_file_that_is_still_being_written_is_not_taken(tmp_path: Path, point: str) -> None:
    """A slow writer, and a file that is replaced: the reader sees it before it seals what it read."""
    path = write(tmp_path, "night.jsonl", optical(40))
    visits = 0

    def write_on(reached: str) -> None:
        nonlocal visits
        visits += reached == point
        if reached == point and visits == 1:
            with path.open("ab") as file:
                file.write(optical_line(40))

    failpoints.watch(write_on)
    try:
        with pytest.raises(PartnerFileError, match="changed while it was read; land it again once its writer has"):
            land(path)
    finally:
        failpoints.watch(None)
    assert len(segments(tmp_path, "optical")) == (point == "lander.progress_written")


def test_a_file_without_a_last_line_feed_lands_when_the_caller_says_that_it_is_complete(tmp_path: Path) -> None:
    path = write(tmp_path, "night.jsonl", optical(3)[:-1])
    with pytest.raises(PartnerFileError, match="give --complete"):
        land(path)
    assert land(path, is_complete=True).records == 3


def test_a_file_without_records_lands_as_nothing(tmp_path: Path) -> None:
    assert land(write(tmp_path, "night.jsonl", b"\n \n")) == LandedFile(
        str(tmp_path / "night.jsonl"), "optical", 0, (), bytes=3
    )


def test_a_hidden_file_s_segments_are_not_taken_for_partial_ones(tmp_path: Path) -> None:
    land(write(tmp_path, ".night.jsonl", optical(3)))
    assert len(landed_records(tmp_path, "optical", "optical-jsonl")) == 3


@pytest.mark.parametrize(
    ("name", "data", "options", "words"),
    [
        ("notes.docx", b"x", {}, "its name does not determine its format"),
        ("empty.jsonl", b"", {}, "is empty"),
        ("torn.jsonl.gz", b"\x1f\x8b\x08\x00broken", {}, "cannot be read"),
        ("rows.parquet", b"PAR1", {}, "cannot be read"),
        (
            "night.jsonl",
            b"{}\n",
            {"feed": "lidar"},
            f"unknown feed 'lidar'; the feeds are {', '.join(sorted(ZONES))}",
        ),
        ("night.jsonl", b"{}\n", {"feed": "radar"}, "feed radar does not carry format 'optical-jsonl'"),
    ],
)
def test_what_cannot_be_landed_is_refused_by_name_and_reason(
    tmp_path: Path, name: str, data: bytes, options: dict[str, Any], words: str
) -> None:
    path = write(tmp_path, name, data)
    with pytest.raises(PartnerFileError, match=words) as refusal:
        land(path, **options)
    assert str(path) in str(refusal.value)
    assert not (tmp_path / "landing").exists()


def test_a_file_that_was_landed_as_the_wrong_kind_can_be_landed_as_the_right_one__D4(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", optical(3))
    assert len(land(path, segment_format="tle").segments) == 1
    assert len(land(path).segments) == 1
    assert land(path).segments == land(path, segment_format="tle").segments == ()


def test_progress_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", optical(3))
    land(path)
    (progress,) = (tmp_path / "landing" / ".lander").iterdir()
    progress.write_text('{"schema_version": 99}')
    with pytest.raises(PartnerFileError, match=f"{progress}: is no progress of a landing: schema_version is 99"):
        land(path)


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_memory_is_bounded_by_the_segment_and_not_by_the_file(tmp_path: Path, suffix: str) -> None:
    content = optical(60_000)  # 7 MB
    path = write(tmp_path, f"night.jsonl{suffix}", packed(suffix, content))
    land(write(tmp_path, "warm.jsonl", optical(1)))
    tracemalloc.start()
    try:
        assert land(path, limit=2**17).records == 60_000
        assert tracemalloc.get_traced_memory()[1] < 5 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("most", [39, 40])
def test_the_records_of_all_segments_of_a_file_count(tmp_path: Path, most: int) -> None:
    lander = Lander(
        str(tmp_path / "landing"), CLOCK, segment_max_bytes=LIMIT // 4, bounds=PartnerBounds(records=most),
        sender=Sender("partner"),
    )  # fmt: skip
    path = write(tmp_path, "night.jsonl", optical(40))
    if most == 39:
        with pytest.raises(PartnerFileError, match="has more than 39 records; land it in parts"):
            lander.land(path)
        return
    done = lander.land(path)
    assert (done.records, len(done.segments) > 3) == (40, True)
