"""What is decoded by columns equals what is decoded record by record, for any bytes."""

import json
import uuid
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sda_platform.formats.angle_references import ANGLE_REFERENCES
from sda_platform.formats.cutting import count_records, cut_records, join_cuts, split_records
from sda_platform.formats.errors import RecordError
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.identity import observation_ids
from sda_platform.formats.optical import (
    OBSERVER,
    RADIANS_PER_ARCSECOND,
    OpticalRecord,
    encode_optical_record,
    parse_optical_record,
)
from sda_platform.formats.optical_columns import decode_optical_records
from sda_platform.formats.records import NOT_STAMPED, CutRecords
from sda_platform.formats.registry import ZONES
from sda_platform_tests.support.observations import SENSOR_TIME_NS, optical_records

FORMATS = sorted({name for names in ZONES.values() for name in names})
PLAIN = [encode_optical_record(OpticalRecord(f"m-{n}", SENSOR_TIME_NS + n, 1.5, -0.5, 1.0, "maui")) for n in range(40)]

odd_numbers = st.one_of(
    st.sampled_from(["0", "-0", "-0.0", "0.0", "1", "1.50", "1e3", "1E+5", "1.", ".5", "01", "+1", "NaN", "-Infinity"]),
    st.sampled_from(["1e-5", "0.00001", "1e9", "1e16", "123456789012345678", "9223372036854775808", "1e400", "Inf"]),
    st.sampled_from(["5e-324", "2.2250738585072011e-308", "9007199254740993", "1" * 400, "1" * 5000, "0." + "1" * 900]),
    st.sampled_from(["nan", "null", "true", '"1.5"', "[1]", "{}"]),
)
numbers = odd_numbers | st.floats().map(json.dumps)
texts = st.text(max_size=4).map(json.dumps) | st.sampled_from(
    [
        '"maui"',
        '"optical-maui"',
        '""',
        '"a\\u0062"',
        '"\x7f"',
        '"\t"',
        '"é"',
        "null",
        "7",
        '"null"',
        '"gps_locked"',
        '"EME2000"',
        '"annual"',
        '"}\\n{"',
    ]
)
spaces = st.sampled_from(["", " ", "\r", "\t", "\x0b", "\x00", "\n"])
keys = st.sampled_from([*OpticalRecord.__slots__, "other", "obs\\u005fid"])


@st.composite
def mangled_lines(draw: st.DrawFn) -> bytes:
    """A plain record with keys dropped, repeated, added or given another value, and with space anywhere."""
    fields = [(key, json.dumps(value)) for key, value in json.loads(PLAIN[draw(st.integers(0, 39))]).items()]
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(fields) - 1))
        key = fields[at][0] if draw(st.booleans()) else draw(keys)
        fields[at] = (key, draw(numbers | texts))
    if draw(st.booleans()):
        fields.pop(draw(st.integers(0, len(fields) - 1)))
    space = draw(spaces)
    return ("{" + ",".join(f'"{key}":{space}{value}' for key, value in fields) + space + "}").encode(
        errors="surrogatepass"
    )


lines = st.one_of(
    mangled_lines(),
    optical_records.map(encode_optical_record),
    st.sampled_from(
        [b"{", b"}", b"{}", b"{}{}", b"[]", b"null", b"\xef\xbb\xbf{}", PLAIN[0] * 2, PLAIN[0][:40], b"\xff"]
    ),
    st.binary(max_size=20),
)


def cut_one_by_one(data: bytes, segment_format: str) -> list[tuple[object, ...]]:
    return [
        (r.number, r.payload, NOT_STAMPED if r.received_time_ns is None else r.received_time_ns, r.error_kind, r.error)
        for r in split_records(data, segment_format)
    ]


def as_rows(cut: CutRecords) -> list[tuple[object, ...]]:
    errors = [cut.errors.get(row) for row in range(len(cut))]
    columns = (cut.numbers.tolist(), cut.payloads, cut.received_time_ns.tolist(), errors)
    return [(n, p, t, e and e.kind, e and e.text) for n, p, t, e in zip(*columns, strict=True)]


@pytest.mark.parametrize("segment_format", [*FORMATS, "avro"])
@given(data=st.data())
def test_columns_of_records_are_the_records__for_any_bytes(segment_format: str, data: st.DataObject) -> None:
    framed = st.tuples(st.lists(st.binary(max_size=3), max_size=5), st.integers(0, 2**64 - 1)).map(
        lambda drawn: pack_records(drawn[0], [drawn[1]] * len(drawn[0]))
    )
    equal = st.lists(st.binary(min_size=4, max_size=4), max_size=5).map(
        lambda payloads: pack_records(payloads, range(len(payloads)))
    )
    segments = data.draw(
        st.lists(st.binary(max_size=60) | framed | equal | st.lists(lines, max_size=4).map(b"\n".join), max_size=4)
    )
    cuts = [cut_records(segment, segment_format) for segment in segments]
    expected = [cut_one_by_one(segment, segment_format) for segment in segments]
    assert [as_rows(cut) for cut in cuts] == expected
    assert [count_records(segment, segment_format) for segment in segments] == list(map(len, expected))
    assert as_rows(join_cuts(cuts)) == [row for rows in expected for row in rows]


def optical_one_by_one(payload: bytes) -> tuple[object, ...]:
    try:
        r = parse_optical_record(payload)
    except RecordError as error:
        return error.kind, error.text
    source = r.site_id if r.site_id.startswith("optical-") else f"optical-{r.site_id}"
    angles = (repr(r.ra_rad), repr(r.dec_rad), repr(r.sigma_arcsec * RADIANS_PER_ARCSECOND), repr(r.clock_age_s))
    identity = encode_optical_record(OpticalRecord(**{f: getattr(r, f) for f in r.__slots__ if f != "received_ns"}))
    references = (getattr(r, name) for name in ANGLE_REFERENCES)
    own = tuple(repr(float("nan") if getattr(r, name) is None else getattr(r, name)) for name in OBSERVER)
    return source, r.obs_id, r.timestamp_ns, *angles, *own, r.clock_quality, r.received_ns, *references, identity


@given(st.lists(lines, max_size=6), st.integers(0, 40), st.integers(0, 40))
@example([b"{}" + PLAIN[0]], 0, 40)
@example([PLAIN[0] + b"\n" + PLAIN[1]], 0, 40)
@example(
    [PLAIN[0].replace(b"1.5", b"1e-5"), PLAIN[0].replace(b"1.5", b"1e9"), PLAIN[0].replace(b"1.5", b"12e8")], 0, 40
)
@example([PLAIN[0].replace(b'"maui"', b'"maui",\n"other":1')], 0, 40)
@example([PLAIN[0].replace(b'"maui"', b'"maui","angle_frame":"ICRF","angle_refraction":null')], 0, 40)
@example([PLAIN[0].replace(b'"maui"', b'"maui","angle_aberration":"annual","angle_refraction":"included"')], 0, 40)
def test_optical_columns_are_the_records_one_by_one__for_any_lines(odd: list[bytes], at: int, plain: int) -> None:
    payloads = [*PLAIN[:at][:plain], *odd, *PLAIN[at:][:plain]]
    got = decode_optical_records(payloads)
    angles = ("right_ascension_rad", "declination_rad", "angle_sigma_rad", "clock_age_s")
    state = ("x_m", "y_m", "z_m", "vx_m_s", "vy_m_s", "vz_m_s", "position_sigma_m")
    nothing = np.full(len(payloads), np.nan)
    values = [[repr(v) for v in got.values.get(name, nothing).tolist()] for name in (*angles, *state)]
    assert got.received_time_ns is not None
    assert got.identity is not None
    columns = (
        got.source_id.to_pylist(),
        got.native_track_id.to_pylist(),
        got.sensor_time_ns.tolist(),
        *values,
        got.clock_quality.to_pylist(),
        got.received_time_ns.to_pylist(),
        *(got.angle_references[name].to_pylist() for name in ANGLE_REFERENCES),
        got.identity,
    )
    rows = list(zip(*columns, strict=True))
    told = {row: (error.kind, error.text) for row, error in got.errors.items()}
    assert [told.get(n, row) for n, row in enumerate(rows)] == [optical_one_by_one(payload) for payload in payloads]


@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9), st.integers(-(2**63), 2**63 - 1), st.binary())))
def test_observation_ids_are_those_of_uuid5__E1(readings: list[tuple[str, str, int, bytes]]) -> None:
    encodable = [r for r in readings if (r[0] + r[1]).encode(errors="ignore").decode() == r[0] + r[1]]
    sources, natives, times, payloads = zip(*encodable, strict=True) if encodable else ((),) * 4
    ids = observation_ids(
        "radar",
        pa.array(sources, pa.string()),
        pa.array(natives, pa.string()),
        pa.array(np.array(times, np.int64)),
        payloads,
    )
    namespace = uuid.uuid5(uuid.NAMESPACE_URL, "urn:sda-platform:observation:1")
    assert ids.to_pylist() == [
        str(uuid.uuid5(namespace, f"radar|{source}|{native}|{time}|{sha256(payload).hexdigest()}"))
        for source, native, time, payload in encodable
    ]
