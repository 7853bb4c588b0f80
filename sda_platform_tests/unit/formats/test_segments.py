"""Segment metadata: what it states, that it survives JSON, how broken metadata is refused."""

import hashlib
import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.segments import MetaError, Origin, SegmentMeta, describe_segment, parse_segment_meta

META = SegmentMeta(
    feed="radar",
    format="radar-frames",
    bytes=144,
    records=2,
    sha256="0" * 64,
    sealed_time_ns=2,
    sealed_wall_time_ns=3,
)


def test_describe_counts_bytes_and_records_and_hashes() -> None:
    data = pack_records([b"a" * 60, b"b" * 60], [1, 2])
    meta = describe_segment(data, feed="radar", segment_format="radar-frames", sealed_time_ns=5, sealed_wall_time_ns=6)
    assert (meta.bytes, meta.records, meta.sha256) == (144, 2, hashlib.sha256(data).hexdigest())


@given(st.integers(0, 2**62), st.none() | st.integers(-(2**63), 2**63 - 1))
def test_metadata_survives_json(count: int, time_ns: int | None) -> None:
    meta = SegmentMeta("isl", "isl-frames", count, count, "f" * 64, 1, 2, time_ns, time_ns, time_ns)
    assert parse_segment_meta(meta.to_json()) == meta


def test_origins_survive_json_and_may_have_keys_of_newer_writers() -> None:
    meta = replace(META, origins=(Origin(1, "stations", "10.0.0.1:7"), Origin(1, "radar", is_conflict=True)))
    assert parse_segment_meta(meta.to_json()) == meta
    newer = json.loads(meta.to_json())
    newer["origins"][0]["port"] = 7
    assert parse_segment_meta(json.dumps(newer)) == meta


def test_unknown_keys_are_left_to_newer_readers() -> None:
    assert parse_segment_meta(json.dumps({**asdict(META), "compression": "none"})) == META


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"feed": None}, "feed is missing"),
        ({"feed": ""}, "non-empty"),
        ({"bytes": "144"}, "bytes must be"),
        ({"records": -1}, "negative"),
        ({"records": True}, "integer"),
        ({"sealed_time_ns": 2**63}, "64-bit"),
        ({"sha256": "xyz"}, "hexadecimal"),
        ({"schema_version": 2}, "schema_version"),
        ({"origins": 7}, "origins"),
        ({"origins": [7]}, "origins"),
        ({"origins": [{"records": 2}]}, "origins"),
        ({"origins": [{"records": 1, "source": "a"}]}, "origins must be runs of its 2 records"),
        ({"origins": [{"records": 3, "source": "a"}, {"records": -1, "source": "a"}]}, "origins must be runs"),
        ({"origins": [{"records": 2, "source": None}]}, "each with a source"),
    ],
)
def test_broken_metadata_is_refused_with_the_key_and_the_reason(change: dict[str, object], reason: str) -> None:
    with pytest.raises(MetaError, match=reason):
        parse_segment_meta(json.dumps({**asdict(META), **change}))


@given(st.text() | st.binary())
def test_any_text_is_metadata_or_a_meta_error(text: str | bytes) -> None:
    with pytest.raises(MetaError):
        parse_segment_meta(text)
