"""Texts as programs and people write them: names like lines, exponents of Fortran, comments in other encodings."""

import re

import numpy as np
import pytest

from sda_platform.catalog.ephemeris_decoding import decode as decode_ephemerides
from sda_platform.formats.conversion import converted
from sda_platform.formats.cutting import cut_records, split_records, split_stream
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.tle import line_checksum
from sda_platform.orbits.earth_orientation import frame_of
from sda_platform_tests.support.message_texts import FIELD, FIRST, KVN, SECOND, XML, errors_of, values_of
from sda_platform_tests.support.segments import described

NAMES = ["1 WEB SAT", "2 WEB", "1", "2 2024 SAT", "1KUNS-PF", "1 HOPPER 3", "2 KIDS 1999", "0 1 WEB"]


def one_set(name: str | None = None) -> str:
    return "".join(f"{line}\n" for line in ([] if name is None else [name]) + [FIRST, SECOND])


@pytest.mark.parametrize("name", NAMES)
def test_a_name_may_begin_like_a_line_of_elements__41(name: str) -> None:
    text = one_set(name) + one_set("OTHER") + one_set() + one_set(name)
    data = text.encode()
    read = decode_element_sets(data, segment_format="tle")
    assert read["error"].null_count == 4
    stated = name.removeprefix("0 ")
    assert read["object_name"].to_pylist() == [stated, "OTHER", None, stated]
    expected = [record.payload for record in split_records(data, "tle")]
    assert cut_records(data, "tle").payloads == expected
    segments = list(split_stream([data[:7], data[7:]], "tle", 160))
    assert [record.payload for each in segments for record in split_records(each, "tle")] == expected
    written = converted(data, "tle", "tle").data.decode()
    assert values_of(written, "tle") == values_of(text, "tle")
    assert "\n1 25544U" in f"\n{written}"
    assert not re.search(r"^[12] (?!25544)", written, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "text",
    [
        FIRST[:30] + "\n" + one_set(),
        SECOND[:20] + "\n" + one_set(),
        FIRST + "\n" + one_set(),
        SECOND + "\n" + one_set(),
    ],
)
def test_a_torn_line_of_elements_is_no_name_of_the_next_set__41(text: str) -> None:
    (problem,) = errors_of(text, "tle")
    assert "not a line 1 followed by its line 2" in problem
    assert [each.object_name for each in values_of(text, "tle") if each] == [None]


def test_a_blank_derivative_of_the_mean_motion_is_zero_as_other_blanks__41() -> None:
    line = FIRST[:33] + " " * 10 + FIRST[43:]
    (read,) = values_of(f"{line[:68]}{line_checksum(line)}\n{SECOND}\n", "tle")
    assert read.mean_motion_dot_rev_per_day2 == 0.0


def fortran(text: str) -> str:
    """``text`` with a D exponent for each number that has a point, in every message; not in times."""
    return re.sub(
        r"(?<![\w.:-])(-?\d+\.\d+)(?![\w.:-])", lambda found: f"{float(found[1]):.17E}".replace("E", "D"), text
    )


@pytest.mark.parametrize("kind", KVN)
def test_exponents_of_fortran_are_numbers_in_every_message__41(kind: str) -> None:
    head, text = KVN[kind].split("\n", 1)  # the version is no number
    changed = f"{head}\n{fortran(text)}"
    assert changed.count("D+") > 1
    assert errors_of(changed, f"{kind}-kvn") == []
    written = converted(changed.encode(), f"{kind}-kvn", f"{kind}-xml").data.decode()
    assert not re.search(r"\dD[+-]\d", written)
    numbers = [
        np.array([float(word) for word in re.findall(r">\s*([+-]?\d+(?:\.\d+)?(?:E[+-]\d+)?)\s*<", each)])
        for each in (written, XML[kind])
    ]
    assert errors_of(written, f"{kind}-xml") == []
    np.testing.assert_allclose(numbers[0], numbers[1], rtol=1e-15)


@pytest.mark.parametrize("kind", KVN)
def test_comments_may_be_in_any_encoding_and_other_text_may_not__41(kind: str) -> None:
    lines = KVN[kind].split("\n")
    comment = "\n".join([lines[0], "COMMENT caf\xe9", *lines[1:]]).encode("latin-1")
    assert errors_of(comment, f"{kind}-kvn") == []
    name = re.sub("(ORIGINATOR *= *)", "\\1\xc9", KVN[kind], count=1).encode("latin-1")
    (problem,) = errors_of(name, f"{kind}-kvn")
    assert "is not UTF-8 text" in problem


def ephemeris_error(text: str) -> str | None:
    data = text.encode()
    (row,) = decode_ephemerides(data, described(data, "ephemerides", segment_format="oem-kvn")).to_pylist()
    error: str | None = row["error"]
    return error


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("META_STOP", "META_STOP\nDATA_START", None),
        ("COVARIANCE_START", "DATA_STOP\nCOVARIANCE_START", None),
        ("2024-05-03T00:03", "COMMENT between\n2024-05-03T00:03", None),
        ("2024-05-03T00:00:00.000 ", "2024-124T00:00:00Z\t", None),
        ("2024-05-03T00:00:00.000 ", "2024-05-03T02:00:00+02:00 ", None),
        ("EME2000", "J2000", None),
        ("EME2000", "ICRF3", None),
        ("EME2000", "wgs84", None),
        ("EME2000", "MOD", "REF_FRAME is 'MOD', must be one of GCRF"),
        ("COV_REF_FRAME = TNW", "COV_REF_FRAME = RSW_INERTIAL", None),
        ("COV_REF_FRAME = TNW", "COV_REF_FRAME = RSW_ROTATING", "COV_REF_FRAME is 'RSW_ROTATING'"),
        ("= EARTH", "= 399", None),
        ("= EARTH", "= EARTH BARYCENTER", "must be EARTH"),
        ("META_START", "DATA_START\nMETA_START", "DATA_START"),
    ],
)
def test_ephemerides_as_programs_write_them__41(old: str, new: str, reason: str | None) -> None:
    text = (FIELD / "052-oem-covariance-tnw.oem").read_text()
    assert old in text
    error = ephemeris_error(re.sub(r"OBJECT_ID *=.*", "OBJECT_ID = 25544", text.replace(old, new, 1)))
    assert error is None if reason is None else reason in str(error)


@pytest.mark.parametrize(("number", "value"), [("T0001", 270001), ("25544", 25544), ("025544.0", 25544)])
def test_catalogue_numbers_of_mean_elements_may_be_alpha_5__41(number: str, value: int) -> None:
    text = re.sub("NORAD_CAT_ID *=.*", f"NORAD_CAT_ID = {number}", KVN["omm"])
    assert [each.norad_id for each in values_of(text, "omm-kvn")] == [value]


def test_frames_by_their_names_in_practice__41() -> None:
    names = {
        "itrf-97": "ITRF",
        "ITRF2000": "ITRF",
        "WGS-84": "ITRF",
        "GCRF1": "GCRF",
        "j2000": "EME2000",
        " TOD ": "TOD",
    }
    assert {name: frame_of(name) for name in names} == names
    assert [frame_of(name) for name in ("", "MOD", "J2000.0", "ICRFX", "GTOD")] == [None] * 5
