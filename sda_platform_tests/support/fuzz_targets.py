"""What a fuzzer gives any bytes to: each decoder of what others send. A target raises for a defect and else returns.

A decoder never raises: what it cannot read is a row with its error. The two ways to cut a segment agree, and no record
gets lost. The corpus in ``data/fuzz`` has a ZIP for each target, whose inputs reach different code.
"""

import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from sda_platform.edge.frames import cut_stream, frames_of
from sda_platform.edge.packets import PacketProcessor
from sda_platform.formats.cutting import cut_records, pack_segment, split_records
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.format import Format, ObservationFormat, RecordFormat
from sda_platform.formats.reading import read_records
from sda_platform.formats.registry import FORMATS
from sda_platform.formats.segments import MetaError, describe_segment, parse_segment_meta
from sda_platform.history.errors import QueryRefused
from sda_platform.history.spark_query_text import refuse_calls
from sda_platform.http_gate import is_own_host, refusal_of
from sda_platform_tests.support.collectors import beacons, framed, radar_frames, telemetry
from sda_platform_tests.support.observations import decode_observations
from sda_platform_tests.support.sample_inputs import NOW_NS, OWN_SAMPLES, SAMPLES

CORPUS: Final = Path(__file__).parents[1] / "data/fuzz"
Target = Callable[[bytes], None]


def _decode(known: Format, data: bytes) -> None:
    records, cut = list(split_records(data, known.name)), cut_records(data, known.name)
    assert [each.number for each in records] == list(range(len(records)))
    assert [each.payload for each in records] == cut.payloads
    assert {row for row, each in enumerate(records) if each.error_kind} == set(cut.errors)
    if isinstance(known, ObservationFormat):
        rows = decode_observations(data, feed=known.zone, segment_format=known.name, sealed_time_ns=NOW_NS).num_rows
        assert rows == len(records)
    elif known.content == "element set":
        assert decode_element_sets(data, segment_format=known.name).num_rows == len(records)
    elif isinstance(known, RecordFormat):
        values, errors = read_records(records, known.name, known.zone)
        assert all((row in errors) == (value is None) for row, value in enumerate(values))


def _metadata(data: bytes) -> None:
    try:
        meta = parse_segment_meta(data)
    except MetaError:
        return
    assert parse_segment_meta(meta.to_json()) == meta


def _frames(data: bytes) -> None:
    buffer = np.frombuffer(data, np.uint8)
    for order in ("little", "big"):
        cut = cut_stream(buffer, is_big_endian=order == "big", max_bytes=1_000)
        payloads = [cut.frames.payload(row) for row in range(len(cut.frames))]
        assert framed(payloads, order) == data[: cut.rest]
        found = PacketProcessor(remembered=64).process(frames_of(payloads))
        assert sum(len(getattr(found, name)) for name in type(found).__slots__) == len(payloads)


def _query(data: bytes) -> None:
    try:
        refuse_calls(data.decode("utf-8", errors="replace"))
    except QueryRefused:
        return


def _request(data: bytes) -> None:
    head, _, rest = data.decode("latin-1").partition("\n")
    is_own_host(head, {"sda.example.org"})
    sent = [(name, value) for name, _, value in (line.partition(":") for line in rest.split("\n"))]
    if refusal_of("POST", sent) is None:
        hosts = [value for name, value in sent if name.lower() == "host"]
        assert len(hosts) <= 1 and is_own_host("".join(hosts), ())


TARGETS: Final[Mapping[str, Target]] = MappingProxyType(
    {
        **{each.name: partial(_decode, each) for each in FORMATS},
        "segment-metadata": _metadata,
        "frames-of-a-socket": _frames,
        "query-on-spark": _query,
        "http-request": _request,
    }
)
"""Each target by its name, which for a decoder is that of its format."""


def seeds(name: str) -> list[bytes]:
    """Sound inputs of a target, with which its corpus began."""
    frames = {"radar-frames": radar_frames(2), "isl-frames": beacons(2), "telemetry-frames": telemetry(2)}
    if name in frames:
        return [pack_segment(frames[name], [NOW_NS] * 2, name)]
    if name in SAMPLES or name in OWN_SAMPLES:
        return [(SAMPLES | OWN_SAMPLES)[name]]
    meta = describe_segment(
        b"", feed="radar", segment_format="radar-frames", sealed_time_ns=NOW_NS, sealed_wall_time_ns=NOW_NS
    )
    return {
        "segment-metadata": [meta.to_json().encode()],
        "frames-of-a-socket": [framed(telemetry(2), "big"), framed(beacons(2))],
        "query-on-spark": [b"SELECT count(*) FROM t WHERE `a` IN ('x', r'y') -- z\n/* c */ GROUP BY all"],
        "http-request": [b"sda.example.org:443\nHost: 127.0.0.1:3000\nOrigin: http://127.0.0.1:3000"],
    }[name]


def corpus(name: str) -> list[bytes]:
    """The inputs that are kept for a target."""
    path = CORPUS / f"{name}.zip"
    if not path.exists():
        return []
    with zipfile.ZipFile(path) as archive:
        return [archive.read(each) for each in archive.namelist()]
