"""Element sets read by columns are those that are read one by one: equal values, and the same refusals."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.formats import element_sets
from sda_platform.formats.cutting import split_records
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.omm import read_omm_csv
from sda_platform.formats.tle_writing import encode_tles
from sda_platform.simulation.reference import reference_catalogue

CSV = b"\n".join(reference_catalogue().split(b"\n")[:6]) + b"\n"
THREE_LINES = encode_tles([read_omm_csv(record) for record in split_records(CSV, "omm-csv")])
TWO_LINES = b"".join(line for line in THREE_LINES.splitlines(keepends=True) if line[:2] in (b"1 ", b"2 "))
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
    [(CSV, "omm-csv"), (THREE_LINES, "tle"), (TWO_LINES, "tle"), (b"", "tle"), (b"", "omm-csv")],
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
        ("EPHEMERIS_TYPE", b"4"),
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
    for data, segment_format in ((CSV, "omm-csv"), (THREE_LINES, "tle"), (TWO_LINES, "tle")):
        records = list(split_records(data, segment_format))
        read = element_sets._READ_BY_COLUMNS[segment_format]
        assert read([record.payload for record in records], records[0].header) is not None
        assert decode_element_sets(data, segment_format=segment_format)["error"].null_count == 5
