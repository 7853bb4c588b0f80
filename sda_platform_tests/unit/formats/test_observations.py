"""Sensor observations on the wire: golden bytes, round trips, physical limits, identity, and any bytes at all."""

import json
import uuid
from dataclasses import replace
from hashlib import sha256
from math import inf, nan, pi

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.formats.cutting import split_records
from sda_platform.formats.errors import ERROR_KINDS
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.observations import OBSERVATION_SCHEMA
from sda_platform.formats.optical import OBSERVER, OpticalRecord, encode_optical_record
from sda_platform.formats.radar import RADAR_FRAME_BYTES
from sda_platform_tests.support.observations import (
    GOLDEN_OPTICAL,
    SEALED_TIME_NS,
    SENSOR_TIME_NS,
    RadarReading,
    decode_isl,
    decode_observations,
    decode_optical,
    decode_radar,
    isl_payload,
    optical_records,
    radar_readings,
)

GOLDEN_RADAR = bytes.fromhex(
    "07000000 92100000 0000842018af0318 0000008087d63241 00000000007197c0"
    "000000000000f83f 000000000000e03f 00007041 0000803e 00000000"
)


def test_radar_frame_is_60_bytes_little_endian__E2() -> None:
    assert RADAR_FRAME_BYTES == 60
    assert RadarReading().payload() == GOLDEN_RADAR


def test_isl_frame_golden_bytes() -> None:
    head = "0100 03 00 33200400 0000842018af0318"
    position = "00000000f0b35a41 0000000000000000 00000000006af840"
    velocity = "0000000000000000 00000000004cbd40 0000000000002440"
    assert isl_payload() == bytes.fromhex(f"{head} {position} {velocity} 0000a040 0000803d 0000f042 00000000")


def test_optical_record_golden_bytes() -> None:
    assert encode_optical_record(OpticalRecord("m-1", SENSOR_TIME_NS, 1.5, -0.5, 1.0, "maui")) == GOLDEN_OPTICAL


@given(st.lists(radar_readings, max_size=8))
def test_radar_observations_survive_the_wire(readings: list[RadarReading]) -> None:
    rows = decode_radar(*(reading.payload() for reading in readings)).to_pylist()
    assert [row["error"] for row in rows] == [None] * len(readings)
    for row, reading in zip(rows, readings, strict=True):
        assert row["source_id"] == f"radar-{reading.array_id}"
        assert row["native_track_id"] == str(reading.target_track_id)
        assert row["sensor_time_ns"] == reading.timestamp_ns
        assert (row["range_m"], row["range_rate_m_s"]) == (reading.range_m, reading.range_rate_m_s)
        assert (row["azimuth_rad"], row["elevation_rad"]) == (reading.azimuth_rad, reading.elevation_rad)
        assert (row["range_sigma_m"], row["range_rate_sigma_m_s"]) == (
            reading.sigma_range_m,
            reading.sigma_rate_m_s,
        )


@given(st.lists(optical_records, max_size=6))
def test_optical_records_survive_the_wire(records: list[OpticalRecord]) -> None:
    rows = decode_optical(*(encode_optical_record(record) for record in records)).to_pylist()
    assert [row["error"] for row in rows] == [None] * len(records)
    for row, record in zip(rows, records, strict=True):
        assert row["source_id"] == f"optical-{record.site_id.removeprefix('optical-')}"
        assert row["native_track_id"] == record.obs_id
        assert row["received_time_ns"] == (record.received_ns or SEALED_TIME_NS)
        assert (row["right_ascension_rad"], row["declination_rad"]) == (record.ra_rad, record.dec_rad)
        assert row["angle_sigma_rad"] == pytest.approx(record.sigma_arcsec * pi / 648_000)
        assert (row["clock_quality"], row["clock_age_s"]) == (record.clock_quality, record.clock_age_s)
        assert [row[name] for name in ANGLE_REFERENCES] == [getattr(record, name) for name in ANGLE_REFERENCES]
        state = ("x_m", "y_m", "z_m", "vx_m_s", "vy_m_s", "vz_m_s", "position_sigma_m")
        assert [row[name] for name in state] == [getattr(record, name) for name in OBSERVER]


def test_an_unknown_reference_of_angles_is_an_error_that_names_the_known_ones() -> None:
    line = GOLDEN_OPTICAL.replace(b'"obs_id"', b'"angle_frame":"B1950","obs_id"')
    (row,) = decode_optical(line).to_pylist()
    assert row["error_kind"] == "out_of_range"
    assert "angle_frame is 'B1950', must be one of ('TEME', 'TOD', 'EME2000', 'ICRF', 'GCRF')" in row["error"]


def test_isl_reading_survives_the_wire_with_an_id_beyond_alpha_5() -> None:
    (row,) = decode_isl(isl_payload(norad_id=999_999_999)).to_pylist()
    assert row["error"] is None
    assert row["source_id"] == "isl-999999999"
    assert [row[name] for name in ("x_m", "y_m", "z_m")] == [7e6, 0.0, 1e5]
    assert [row[name] for name in ("vx_m_s", "vy_m_s", "vz_m_s")] == [0.0, 7500.0, 10.0]
    assert (row["clock_quality"], row["clock_age_s"]) == ("onboard_drift", 120.0)


@pytest.mark.parametrize(
    ("field", "value", "column"),
    [
        ("range_m", 0.0, "range_m"),
        ("range_m", -1.0, "range_m"),
        ("range_m", 1.1e9, "range_m"),
        ("range_m", nan, "range_m"),
        ("range_rate_m_s", 3.1e8, "range_rate_m_s"),
        ("range_rate_m_s", -inf, "range_rate_m_s"),
        ("azimuth_rad", 7.0, "azimuth_rad"),
        ("elevation_rad", 1.6, "elevation_rad"),
        ("sigma_range_m", 0.0, "range_sigma_m"),
        ("sigma_rate_m_s", nan, "range_rate_sigma_m_s"),
        ("timestamp_ns", SEALED_TIME_NS + 6_000_000_000, "sensor_time_ns"),
        ("timestamp_ns", 2**64 - 1, "sensor_time_ns"),
    ],
)
def test_impossible_radar_values_are_errors_that_say_what_and_why__DP5_I20(
    field: str, value: float, column: str
) -> None:
    bad = replace(RadarReading(), **{field: value}).payload()  # type: ignore[arg-type]
    good, broken = decode_radar(RadarReading().payload(), bad).to_pylist()
    assert good["error"] is None
    assert broken["error_kind"] == "out_of_range"
    assert column in broken["error"]
    assert broken["observation_id"] is None
    assert broken["payload"] == bad


@pytest.mark.parametrize(
    ("payload", "column"),
    [
        (isl_payload(position_m=(6.3e6, 0, 0)), "geocentric_distance_m"),
        (isl_payload(position_m=(1e200, 0, 0)), "geocentric_distance_m"),
        (isl_payload(velocity_m_s=(3e8, 0, 0)), "speed_m_s"),
        (isl_payload(velocity_m_s=(nan, 0, 0)), "speed_m_s"),
        (isl_payload(position_sigma_m=0.0), "position_sigma_m"),
        (isl_payload(clock_age_s=-1.0), "clock_age_s"),
        (isl_payload()[:2] + b"\x09" + isl_payload()[3:], "clock kind"),
    ],
)
def test_impossible_isl_values_are_errors__DP5_I20(payload: bytes, column: str) -> None:
    (row,) = decode_isl(payload).to_pylist()
    assert row["error_kind"] == "out_of_range"
    assert column in row["error"]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"dec_rad": 1.6}, "out_of_range"),
        ({"sigma_arcsec": 0}, "out_of_range"),
        ({"ra_rad": "1.5"}, "bad_field"),
        ({"ra_rad": True}, "bad_field"),
        ({"ra_rad": 10**400}, "out_of_range"),
        ({"timestamp_ns": 1.5}, "bad_field"),
        ({"timestamp_ns": -1}, "out_of_range"),
        ({"obs_id": "\ud800"}, "bad_field"),
        ({"obs_id": None}, "missing_field"),
        ({"site_id": ""}, "bad_field"),
        ({"clock_quality": "sundial"}, "out_of_range"),
    ],
)
def test_unusable_optical_fields_are_errors_that_name_the_field(change: dict[str, object], kind: str) -> None:
    (row,) = decode_optical(json.dumps({**json.loads(GOLDEN_OPTICAL), **change}).encode()).to_pylist()
    assert row["error_kind"] == kind
    assert next(iter(change)) in row["error"] or "declination" in row["error"] or "angle_sigma" in row["error"]


@pytest.mark.parametrize("line", [b"{", b"[1]", b"\xff{}", b'{"ra_rad": NaN}', b"[" * 100_000])
def test_lines_that_are_no_json_object_are_bad_json(line: bytes) -> None:
    assert decode_optical(line)["error_kind"].to_pylist() == ["bad_json"]


@pytest.mark.parametrize("length", [0, 59, 61, 64])
def test_radar_datagram_of_another_length_is_bad_length__DP1_E2(length: int) -> None:
    (row,) = decode_radar(bytes(length)).to_pylist()
    assert row["error_kind"] == "bad_length"
    assert str(length) in row["error"]


def test_observation_id_is_a_uuid5_of_the_reading_and_survives_redelivery__E1() -> None:
    payload = RadarReading().payload()
    first = decode_radar(payload, received_time_ns=SEALED_TIME_NS).to_pylist()[0]["observation_id"]
    again = decode_radar(payload, received_time_ns=SEALED_TIME_NS + 1).to_pylist()[0]["observation_id"]
    namespace = uuid.uuid5(uuid.NAMESPACE_URL, "urn:sda-platform:observation:1")
    name = f"radar|radar-7|4242|{SENSOR_TIME_NS}|{sha256(payload).hexdigest()}"
    assert first == again == str(uuid.uuid5(namespace, name))


def test_optical_record_polled_twice_keeps_its_id_though_the_collector_stamps_it_anew__E1() -> None:
    record = OpticalRecord("m-1", SENSOR_TIME_NS, 1.5, -0.5, 1.0, "maui", received_ns=SEALED_TIME_NS)
    polls = [record, replace(record, received_ns=SEALED_TIME_NS + 5)]
    ids = decode_optical(*map(encode_optical_record, polls))["observation_id"].to_pylist()
    assert ids[0] == ids[1] is not None


@given(st.lists(radar_readings, min_size=2, max_size=8, unique=True))
def test_different_observations_have_different_ids(readings: list[RadarReading]) -> None:
    ids = decode_radar(*(reading.payload() for reading in readings))["observation_id"].to_pylist()
    assert len(set(ids)) == len(readings)


@pytest.mark.parametrize(
    ("feed", "segment_format"), [("sonar", "radar-frames"), ("optical", "radar-frames"), ("radar", "avro")]
)
def test_a_feed_that_does_not_carry_the_format_has_only_unknown_format_rows(feed: str, segment_format: str) -> None:
    data = pack_records([RadarReading().payload()], [SEALED_TIME_NS])
    table = decode_observations(data, feed=feed, segment_format=segment_format, sealed_time_ns=SEALED_TIME_NS)
    assert table["error_kind"].to_pylist() == ["unknown_format"]


@pytest.mark.parametrize(
    ("feed", "segment_format"),
    [("radar", "radar-frames"), ("isl", "isl-frames"), ("optical", "optical-jsonl")],
)
@given(data=st.data())
def test_any_bytes_give_one_row_a_record_and_never_an_exception(
    feed: str, segment_format: str, data: st.DataObject
) -> None:
    payload = st.binary(max_size=120) | st.binary(min_size=60, max_size=60) | st.binary(min_size=80, max_size=80)
    framed = st.lists(payload, max_size=5).map(lambda payloads: pack_records(payloads, [0] * len(payloads)))
    lines = st.lists(st.text(max_size=60).map(str.encode) | payload, max_size=5).map(b"\n".join)
    segment = data.draw(st.binary(max_size=300) | framed | lines)
    table = decode_observations(
        segment, feed=feed, segment_format=segment_format, sealed_time_ns=data.draw(st.integers(0, 2**63 - 1))
    )
    assert table.schema == OBSERVATION_SCHEMA
    assert table.num_rows == len(list(split_records(segment, segment_format)))
    for row in table.to_pylist():
        assert (row["error_kind"] is None) == (row["observation_id"] is not None) == (row["error"] is None)
        assert row["error_kind"] in (None, *ERROR_KINDS)


@given(radar_readings, st.integers(0, 479))
def test_one_flipped_bit_never_raises_and_never_keeps_the_id(reading: RadarReading, bit: int) -> None:
    payload = bytearray(reading.payload())
    payload[bit // 8] ^= 1 << bit % 8
    whole, flipped = decode_radar(reading.payload(), bytes(payload)).to_pylist()
    assert whole["observation_id"] != flipped["observation_id"]


def test_a_torn_segment_keeps_its_whole_records() -> None:
    data = pack_records([RadarReading().payload()] * 2, [SEALED_TIME_NS] * 2)[:-1]
    table = decode_observations(data, feed="radar", segment_format="radar-frames", sealed_time_ns=SEALED_TIME_NS)
    assert table["error_kind"].to_pylist() == [None, "torn_record"]
    assert table["received_time_ns"].to_pylist() == [SEALED_TIME_NS, SEALED_TIME_NS]
