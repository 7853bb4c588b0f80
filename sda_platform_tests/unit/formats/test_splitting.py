"""Cutting streams into segments: the same records in the same order, whatever the sizes of chunks and segments."""

import codecs
import json
import re
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.formats.cutting import looks_ended, split_records, split_stream
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.registry import known_format
from sda_platform.formats.text import as_text
from sda_platform_tests.support.sample_inputs import SAMPLES

# Any bytes but line breaks; blank lines, names of element sets and the beginnings of other encodings among them.
beginnings = st.sampled_from(
    [b"\0\0\0x", b"x\0x\0", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, b'<?xml encoding="latin-1"?>\xe4']
)
lines = (st.binary(max_size=30) | beginnings).map(lambda line: line.replace(b"\n", b" "))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_WRAPPING = re.compile(rb"^</?(ndm|body|data|tdm|segment)>?$|xml|xsi|id=|version=|http|encoding")


def element_set(name: bytes, number: int) -> bytes:
    return name.strip(b"12# ") + b"\n1 %05dU\n2 %05d\n" % (number, number)


def written(values: Sequence[object]) -> bytes:
    return json.dumps(values, ensure_ascii=False, indent=1).encode()


def framed(parts: list[bytes]) -> bytes:
    return pack_records(parts, range(len(parts)))


def kvn_message(body: bytes) -> bytes:
    return b"CCSDS_CDM_VERS = 1.0\n" + body[:20] + b"\n"


def oem_message(body: bytes) -> bytes:
    return b"CCSDS_OEM_VERS = 3.0\nMETA_START\n" + body.translate(None, b"\r")[:9] + b"x\n"


def xml_message(body: bytes) -> bytes:
    return b"<cdm>" + body.translate(None, b"<>") + b"</cdm>"


element_sets = st.builds(element_set, lines, st.integers(0, 99999))
CONTENTS = {
    "optical-jsonl": st.lists(lines, min_size=9).map(b"\n".join),
    "omm-csv": st.lists(lines, min_size=9).map(lambda rows: b"\r\n".join([b"", b"NAME,ID", *rows])),
    "tle": st.lists(element_sets | lines.map(lambda line: line + b"\n"), min_size=9).map(b"".join),
    "radar-frames": st.lists(st.binary(max_size=40), min_size=9).map(framed),
    "omm-json": st.lists(json_values, min_size=9).map(written),
    "cdm-kvn": st.lists(lines.map(kvn_message), min_size=9).map(b"".join),
    "omm-kvn": st.lists(lines.map(kvn_message), min_size=9).map(b"".join),
    "oem-kvn": st.lists(lines.map(oem_message), min_size=9).map(b"".join),
    "cdm-xml": st.lists(lines.map(xml_message), min_size=9).map(lambda rows: b"\n".join([b"<ndm>", *rows, b"</ndm>"])),
}


def chunked(content: bytes, size: int) -> Iterator[bytes]:
    return (content[start : start + size] for start in range(0, len(content), size))


def payloads(content: bytes, segment_format: str) -> list[bytes]:
    return [record.payload for record in split_records(content, segment_format)]


@pytest.mark.parametrize("segment_format", CONTENTS)
@given(st.data())
def test_the_segments_hold_the_records_of_the_stream_once_and_in_order(
    segment_format: str, data: st.DataObject
) -> None:
    content = data.draw(CONTENTS[segment_format])
    max_bytes = data.draw(st.integers(120, 300))
    segments = list(split_stream(chunked(content, data.draw(st.integers(1, 500))), segment_format, max_bytes))
    assert all(len(segment.removeprefix(codecs.BOM_UTF8)) <= max_bytes for segment in segments)
    expected = payloads(content, segment_format)
    if all(len(payload) <= 50 for payload in expected):
        assert [p for segment in segments for p in payloads(segment, segment_format)] == expected
    assert segments == list(split_stream([content], segment_format, max_bytes)), "however the stream is chunked"


@given(content=st.binary(), max_bytes=st.integers(20, 200), size=st.integers(1, 300))
@pytest.mark.parametrize(
    "segment_format", ["optical-jsonl", "tle", "radar-frames", "isl-frames", "cdm-kvn", "cdm-xml", "oem-kvn", "tdm-xml"]
)
def test_no_byte_is_lost_whatever_the_content(segment_format: str, content: bytes, max_bytes: int, size: int) -> None:
    segments = list(split_stream(chunked(content, size), segment_format, max_bytes))
    if known_format(segment_format).framing.is_text and len(content) > max_bytes:
        assert b"".join(map(as_text, segments)) == as_text(content)
    else:
        assert b"".join(segments) == content
    assert all(len(segment.removeprefix(codecs.BOM_UTF8)) <= max_bytes for segment in segments)


@pytest.mark.parametrize(
    ("broken", "good"),
    [
        (b'[{"a":1},{"a":2}', 2),
        (b'[{"a":1},{"a":2},', 2),
        (b'[{"a":1},{"a":2},{"a', 2),
        (b'[{"a":1} {"a":2}]' + b"x" * 50, 2),
        (b'[{"a":1},nonsense,{"a":2}]', 1),
        (b'[{"a":1}]trailing' + b"\xff" * 50, 1),
        (b"not json at all, but long enough to be cut", 0),
        (b"[" * 2000, 0),
    ],
)
def test_a_broken_json_document_lands_up_to_the_break_and_the_rest_fails_as_records(broken: bytes, good: int) -> None:
    """F-corrupt: an array that breaks off, and what is no array."""
    segments = list(split_stream(chunked(broken, 7), "omm-json", 16))
    records = [record for segment in segments for record in split_records(segment, "omm-json")]
    objects = [r for r in records if r.error is None and r.payload.startswith(b"{")]
    assert len(objects) == good
    assert any(r.error or not r.payload.startswith(b"{") for r in records)


@pytest.mark.parametrize(
    ("tail", "segment_format", "ended"),
    [
        (b'{"a":1}\n', "optical-jsonl", True),
        (b'{"a":1}', "optical-jsonl", False),
        (b"a,b\r\n1,2\r\n", "omm-csv", True),
        (b"a,b\r\n1,", "omm-csv", False),
        (b"2 00005", "tle", False),
        (b"[{}]\n \n", "omm-json", True),
        (b"[{}, ", "omm-json", False),
        (b"\x00", "radar-frames", True),
        (b"CNDOT_NDOT = 1.0 [m**2/s**2]\n", "cdm-kvn", True),
        (b"CNDOT_NDOT = 1.0 [m**2/s**2] ", "cdm-kvn", True),
        (b"CNDOT_NDOT = 1.0 [m**2/s**2", "cdm-kvn", False),
        (b"</cdm>\n</ndm>\n", "cdm-xml", True),
        (b"</cdm>\n</nd", "cdm-xml", False),
    ],
)
def test_a_stream_that_breaks_off_in_a_record_does_not_look_ended(
    tail: bytes, segment_format: str, ended: bool
) -> None:
    assert looks_ended(tail, segment_format) == ended


@pytest.mark.parametrize("name", ["tdm-xml", "oem-xml", "omm-xml", "cdm-xml", "opm-xml"])
def test_of_an_xml_file_with_one_broken_tag_every_word_is_in_a_record(name: str) -> None:
    """A broken <observation> used to vanish: its neighbours were records, and it was none."""
    sound = SAMPLES[name]
    tags = [found.start() for found in re.finditer(rb"<", sound)][:100]
    for at in tags:
        for broken in (sound[:at] + sound[at + 1 :], sound[: at + 2] + b"Z" + sound[at + 2 :]):
            kept = set(b" ".join(record.payload for record in split_records(broken, name)).split())
            lost = [word for word in broken.split() if word not in kept and not _WRAPPING.search(word)]
            assert lost == [], (at, lost)
