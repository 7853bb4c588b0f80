"""Telemetry frames as rows: what the headers say, and why a frame cannot be used."""

from hypothesis import given
from hypothesis import strategies as st

from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.segments import SegmentMeta, describe_segment
from sda_platform.formats.telemetry import EMERGENCY_FLAG, INVALID_FLAG, TELEMETRY_FORMAT
from sda_platform.ingest.telemetry import decode
from sda_platform_tests.support.collectors import telemetry
from sda_platform_tests.support.segments import START_NS


def meta_of(data: bytes, segment_format: str = TELEMETRY_FORMAT) -> SegmentMeta:
    return describe_segment(
        data, feed="telemetry", segment_format=segment_format, sealed_time_ns=START_NS, sealed_wall_time_ns=START_NS
    )


def test_a_row_has_what_the_header_says_and_the_frame_as_received() -> None:
    frames = [*telemetry(2, first=7, satellite=9), *telemetry(1, first=9, satellite=9, flags=EMERGENCY_FLAG)]
    data = pack_records(frames, [START_NS, START_NS + 1, START_NS + 2])
    rows = decode(data, meta_of(data)).to_pylist()
    assert [(row["satellite_id"], row["frame_sequence"], row["is_emergency"]) for row in rows] == [
        (9, 7, False),
        (9, 8, False),
        (9, 9, True),
    ]
    assert [row["payload"] for row in rows] == frames
    assert [row["received_time_ns"] for row in rows] == [START_NS, START_NS + 1, START_NS + 2]
    assert all(row["frame_time_ns"] % 1_000_000 == 0 and row["error"] is None for row in rows)


def test_a_frame_that_cannot_be_used_says_why_and_affects_no_other() -> None:
    (good,) = telemetry(1)
    frames = [*telemetry(1, first=1, flags=INVALID_FLAG), good[:-1], good[:23], b"", good]
    data = pack_records(frames, [START_NS] * len(frames))
    rows = decode(data, meta_of(data)).to_pylist()
    assert [row["error_kind"] for row in rows] == ["bad_field", "bad_length", "bad_length", "bad_length", None]
    assert "the station found the frame invalid" in rows[0]["error"]
    assert [row["satellite_id"] is None for row in rows] == [True] * 4 + [False]
    (row,) = decode(good, meta_of(good, "radar-frames")).to_pylist()
    assert row["error_kind"] in {"torn_record", "unknown_format"}


@given(st.binary(max_size=200))
def test_no_bytes_make_the_decoder_fail(data: bytes) -> None:
    assert decode(data, meta_of(data)).num_rows == len(decode(data, meta_of(data)).column("payload"))
