"""Element sets read by columns are those that are read one by one: equal values, and the same refusals."""

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.formats import element_sets
from sda_platform.formats.cutting import split_records
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.omm import read_omm_csv
from sda_platform.formats.tle import line_checksum
from sda_platform.formats.tle_writing import encode_tles
from sda_platform.simulation.reference import reference_catalogue

CSV = b"\n".join(reference_catalogue().split(b"\n")[:6]) + b"\n"
THREE_LINES = encode_tles([read_omm_csv(record) for record in split_records(CSV, "omm-csv")])
TWO_LINES = b"".join(line for line in THREE_LINES.splitlines(keepends=True) if line[:2] in (b"1 ", b"2 "))
# As CelesTrak sends three lines: names filled up with blanks, lines ended by two characters.
PADDED = b"\r\n".join(line if line[:2] in (b"1 ", b"2 ") else line.ljust(24) for line in THREE_LINES.splitlines())
# What a faulty writer may put there, and what two readers of numbers may understand in different ways.
NASTY = [
    b" ", b"-", b"+", b".", b"0", b"9", b"e", b"x", b"_", b",", b'"', b"\n", b"\r", b"\t", b"\x1c", b"\0",
    b"\xc3\xa9", b"nan", b"inf", b"1e400", b"0x1A", b"\xff", b"A", b"#", b"Z",
]  # fmt: skip


def same(data: bytes, segment_format: str) -> None:
    one_by_one = element_sets._one_by_one(list(split_records(data, segment_format)), segment_format)
    assert decode_element_sets(data, segment_format=segment_format).equals(one_by_one)


@pytest.mark.parametrize(
    ("data", "segment_format"),
    [
        (CSV, "omm-csv"),
        (THREE_LINES, "tle"),
        (TWO_LINES, "tle"),
        (PADDED, "tle"),
        (b"", "tle"),
        (b"", "omm-csv"),
    ],
)
@given(
    places=st.lists(st.tuples(st.floats(0, 1), st.sampled_from(NASTY), st.booleans()), max_size=3),
)
def test_whatever_is_changed_both_readers_agree(
    data: bytes, segment_format: str, places: Sequence[tuple[float, bytes, bool]]
) -> None:
    for share, content, replaces in places:
        at = round(share * len(data))
        data = data[:at] + content + data[at + (len(content) if replaces else 0) :]
    same(data, segment_format)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("EPHEMERIS_TYPE", kind) for kind in (b"2", b"3", b"4", b"6", b"")),
        ("ECCENTRICITY", b"1.0"),
        ("NORAD_CAT_ID", b"0x1A"),
        ("NORAD_CAT_ID", b"9007199254740993"),
        ("ELEMENT_SET_NO", b""),
        ("MEAN_MOTION", b""),
        ("MEAN_MOTION", b"nan"),
        ("MEAN_MOTION", b"+15.5"),
        ("BSTAR", b"1_0"),
        ("OBJECT_NAME", b""),
        ("OBJECT_NAME", b"  "),
        ("EPOCH", b"2024-306T00:00:00.5"),
        ("EPOCH", b"2024-11-01 00:00:00"),
        ("EPOCH", b"2024-11-01T00:00:00.1234567891"),
        ("EPOCH", b"2024-11-01T00:00:00Z"),
        ("EPOCH", b"2024-11-01"),
        ("EPOCH", b"1600-11-01T00:00:00"),
        ("EPOCH", b"2024-11-01T23:59:60"),
        ("EPOCH", b"2024-11-01T00:00:00+01:00"),
    ],
)
def test_an_unusual_value_is_read_or_refused_alike(column: str, value: bytes) -> None:
    header, first, *others = CSV.splitlines()
    fields = first.split(b",")
    fields[header.decode().split(",").index(column)] = value
    same(b"\n".join([header, b",".join(fields), *others]), "omm-csv")


def test_usual_records_are_read_by_columns() -> None:
    for data, segment_format in ((CSV, "omm-csv"), (THREE_LINES, "tle"), (TWO_LINES, "tle"), (PADDED, "tle")):
        records = list(split_records(data, segment_format))
        read = element_sets._READ_BY_COLUMNS[segment_format]
        assert read(pa.array([record.payload for record in records]), records[0].header) is not None
        assert decode_element_sets(data, segment_format=segment_format)["error"].null_count == 5


def test_lines_within_many_blanks_are_read_alike() -> None:
    data = b"\n".join(b" " * (13 * n) + line + b"\t" * (17 * n) for n, line in enumerate(THREE_LINES.splitlines()))
    same(data, "tle")
    assert decode_element_sets(data, segment_format="tle")["error"].null_count == 5


@pytest.mark.parametrize("name", [b"HEX 10X", b"0x1A", b"0 ISS", b"0  ISS", b"X"])
def test_many_records_with_an_odd_one_among_them_are_read_alike(name: bytes) -> None:
    lines = THREE_LINES.splitlines()
    copies = [each for number in range(100) for each in ([name, *lines[1:3]] if number == 70 else lines[:3])]
    same(b"\n".join(copies), "tle")
    header, first, second, *_ = CSV.splitlines()
    odd = name + second[second.index(b",") :]
    same(b"\n".join([header, *[first] * 70, odd, *[first] * 400]), "omm-csv")


def test_designators_of_any_kind_stand_beside_each_other() -> None:
    first, second = TWO_LINES.splitlines()[:2]
    sets = []
    for field in (b"58002B  ", b"        ", b"24001ABC", b"ANALYST ", b"99999 A ", b"00001A  ", b"57 01A  "):
        line = (first[:9] + field + first[17:]).decode()
        sets += [f"{line[:68]}{line_checksum(line)}".encode(), second]
    same(b"\n".join(sets), "tle")
    found = decode_element_sets(b"\n".join(sets), segment_format="tle")["international_designator"].to_pylist()
    assert found == ["1958-002B", None, "2024-001ABC", "ANALYST", "1999-999A", "2000-001A", "1957-001A"]


@pytest.mark.parametrize("kind", [" ", "0", "2", "4", "6"])
def test_an_ephemeris_type_of_another_theory_is_refused_in_two_lines(kind: str) -> None:
    first, second = TWO_LINES.decode().splitlines()[:2]
    changed = f"{first[:62]}{kind}{first[63:68]}"
    data = f"{changed}{line_checksum(changed)}\n{second}\n".encode()
    same(data, "tle")
    (error,) = decode_element_sets(data, segment_format="tle")["error"].to_pylist()
    assert (error is None) == (kind in " 0")


@pytest.mark.parametrize(
    ("data", "segment_format", "reason"),
    [
        (CSV.replace(b"OBJECT_NAME", b"EPOCH", 1), "omm-csv", "the header has 'EPOCH' twice"),
        (b'[{"NORAD_CAT_ID": 5, "NORAD_CAT_ID": 6}]', "omm-json", "'NORAD_CAT_ID' is given twice"),
    ],
)
def test_what_is_given_twice_is_refused(data: bytes, segment_format: str, reason: str) -> None:
    errors = decode_element_sets(data, segment_format=segment_format)["error"].to_pylist()
    assert all(reason in error for error in errors)
