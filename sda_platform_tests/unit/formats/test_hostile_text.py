"""Text made to cost much: its cost grows with its length, not with the square of it.

Sizes are such that a quadratic way would need hours; a linear one needs milliseconds.
"""

import ast
import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants as ops  # type: ignore[attr-defined, unused-ignore]
from re import _parser as parser  # type: ignore[attr-defined, unused-ignore]
from typing import Any

import pytest

import sda_platform
from sda_platform import formats
from sda_platform.formats.cdm import read_cdm
from sda_platform.formats.cutting import count_records, split_records
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.json_fields import LONGEST_TEXT, finite, with_exponent
from sda_platform.formats.ndm import xml_messages
from sda_platform.formats.omm import csv_header
from sda_platform.formats.records import RawRecord
from sda_platform.formats.registry import FORMATS
from sda_platform.formats.stated_radius import hard_body_radius
from sda_platform.formats.tle import line_checksum
from sda_platform.formats.units import converted
from sda_platform.serving import puts
from sda_platform.serving.puts import accepted_sets

MANY = 400_000
ALPHABET = [chr(code) for code in range(256)]
# Of eight columns.
BOUNDED = {"sda_platform.formats.tle._EXPONENTIAL"}
PRODUCT = Path(sda_platform.__file__).parent


def patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Every pattern of the formats as it is compiled, and those that are written out in what reads from partners."""
    for found in pkgutil.walk_packages(formats.__path__, f"{formats.__name__}."):
        for name, value in vars(importlib.import_module(found.name)).items():
            yield from ((f"{found.name}.{name}", each) for each in within(value))
    yield from ((f"beginning of {known.name}", known.begins) for known in FORMATS if known.begins)
    for package in ("ingest", "edge", "landing", "serving"):
        for path in (PRODUCT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                match node:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[ast.Constant(value=text), *_]):
                        yield f"{path.name}:{node.lineno}", re.compile(text)


def within(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif type(value) in (tuple, list):
        for each in value:  # type: ignore[attr-defined]
            yield from within(each)


def characters(item: tuple[Any, Any]) -> frozenset[str] | None:
    """The characters that one item of a pattern matches, of Latin-1; None: it is more than one character."""
    op, argument = item
    if op not in (ops.LITERAL, ops.NOT_LITERAL, ops.IN, ops.ANY):
        return None
    if op is ops.LITERAL:
        return frozenset(chr(argument))
    one = parser.SubPattern(parser.State(), [item])
    compiled = re._compiler.compile(one, re.DOTALL)  # type: ignore[attr-defined]
    return frozenset(filter(compiled.fullmatch, ALPHABET))


class SharedRun(Exception):
    """Two repetitions of a pattern can divide a run of text between them."""


def after_all(sequence: Any, before: frozenset[str]) -> frozenset[str]:
    """Return what repetitions that may end here could also have taken. Raises SharedRun."""
    for op, argument in sequence:
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            least, most, repeated = argument
            before = after_repetition(least, most, repeated, before)
        elif op is ops.SUBPATTERN:
            before = after_all(argument[-1], before)
        elif op is ops.BRANCH:
            before = frozenset().union(*(after_all(way, before) for way in argument[1]))
        elif op not in (ops.AT, ops.ASSERT, ops.ASSERT_NOT):
            before = frozenset()
    return before


def after_repetition(least: int, most: int, repeated: Any, before: frozenset[str]) -> frozenset[str]:
    one = characters(repeated[0]) if len(repeated) == 1 else None
    is_long = most == ops.MAXREPEAT
    if one is None:
        after = after_all(repeated, after_all(repeated, before) if is_long else before)
    elif is_long and one & before:
        raise SharedRun
    else:
        after = one if is_long else frozenset()
    return after if least else before | after


def shares_runs(pattern: str | bytes, flags: int = 0) -> bool:
    try:
        after_all(parser.parse(pattern, flags), frozenset())
    except SharedRun:
        return True
    return False


@pytest.mark.parametrize("pattern", [r"\d+\.?\d*", r"a\s*(?:b)?\s*", r"(?:[^x]+|y)*", r"\[\s*[^\]]*?\s*\]"])
def test_the_search_for_shared_runs_finds_them(pattern: str) -> None:
    assert shares_runs(pattern)


def test_no_pattern_divides_a_run_of_text_between_two_repetitions() -> None:
    """Of n characters such a pattern tries n divisions, each of which costs n."""
    found = dict(patterns())
    assert len(found) > 60
    shared = [name for name, each in found.items() if shares_runs(each.pattern, each.flags & ~re.UNICODE)]
    assert set(shared) == BOUNDED


def test_numbers_and_instants_of_any_length_are_refused_at_once() -> None:
    digits = "1" * MANY
    assert with_exponent(digits) == digits
    assert hard_body_radius([f"HBR = {digits},1", "HBR" + " " * MANY, "HBR = 1 [" + " " * MANY], "OBJECT1")
    with pytest.raises(RecordError, match=r"BSTAR is '1111.*must be a number"):
        finite(digits, "BSTAR")
    with pytest.raises(RecordError, match="must be like"):
        parse_epoch_ns("2024-10-31T00:00:00." + "0" * 65)
    assert converted("1", "m" * MANY, "m") is None


@pytest.mark.parametrize("text", [" ", "\n", "\t\n", "<", "# a\n", "1 ", "[ ", '"', "<!--", "<?", "</ndm "])
def test_the_beginning_of_a_file_is_recognised_in_one_pass(text: str) -> None:
    data = text.encode() * (MANY // len(text)) + b"x"
    assert [known.name for known in FORMATS if known.begins and known.begins.search(data)] == []


OPEN_XML = (
    "<COMMENT>x</COMMENT>", "<observation>", "<observation><EPOCH>", "<EPOCH>", "<data>", "<body>", "<segment>", "<!--",
    "</ndm ", "<ndm ", "</ndm><!--", "</ndm><?", "<tdm ", "</tdm ", "<a:", "&",
)  # fmt: skip
OPEN_KVN = ("DATA_START\n", "META_START\n", "COMMENT x\n", "DATA_START\nDATA_STOPS\n", "TIME_SYSTEM ")
AROUND_XML = (
    ("", ""),
    ("<tdm><body>", "</body></tdm>"),
    ("<tdm><body><segment>", "</segment></body></tdm>"),
    ("<tdm><body><segment><data><observation/>", "</data></segment></body></tdm>"),
    ("<tdm><body><segment><data><observation>", "</observation></data></segment></body></tdm>"),
)
AROUND_KVN = (("", ""), ("CCSDS_TDM_VERS = 2.0\nMETA_START\nMETA_STOP\n", ""))
LEFT_OPEN = [
    *((name, before, mark, after) for name in ("tdm-xml",) for before, after in AROUND_XML for mark in OPEN_XML),
    *(("tdm-kvn", before, mark, after) for before, after in AROUND_KVN for mark in OPEN_KVN),
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("name", "before", "mark", "after"), LEFT_OPEN)
def test_what_is_left_open_is_searched_once(name: str, before: str, mark: str, after: str) -> None:
    data = (before + mark * (MANY // len(mark)) + after).encode()
    assert count_records(data, name) > 0


def test_the_line_of_a_record_in_pieces_is_found_without_a_look_at_each() -> None:
    pieces = tuple((line, 3 * line) for line in range(1, MANY))
    record = RawRecord(0, None, b"", line=7, pieces=pieces)
    assert sum(record.line_of(line) for line in range(1, MANY)) == 3 * sum(range(1, MANY))
    assert RawRecord(0, None, b"", line=7).line_of(2) == 8


@pytest.mark.parametrize("tag", ["omm", "segment"])
def test_a_message_or_segment_inside_another_is_refused_before_its_leaves_are_listed(tag: str) -> None:
    text = f"<omm>{f'<{tag}><a>1</a>' * 20_000}{f'</{tag}>' * 20_000}</omm>"
    with pytest.raises(RecordError, match=f"line 1: <{tag}> holds another <{tag}>"):
        list(xml_messages(text.encode(), "omm"))


def half_header(opening: str, mark: str, closing: str = "", size: int = 120_000) -> bytes:
    """A text of which one half is repeated by each of the small records in its other half."""
    return (opening.format("x" * size) + "".join(mark.format(n) for n in range(size // len(mark))) + closing).encode()


KVN_HEADER = "CCSDS_TDM_VERS = 2.0\nMETA_START\nCOMMENT {}\nMETA_STOP\nDATA_START\n"
XML_HEADER = "<tdm><body><segment><metadata>{}</metadata><data>"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("tdm-kvn", half_header(KVN_HEADER, "={}\n", "DATA_STOP\n")),
        ("oem-kvn", half_header("CCSDS_OEM_VERS = 2.0\nCOMMENT {}\n", "META_START\n")),
        ("oem-xml", half_header("<oem>{}<body>", "<segment></segment>", "</body></oem>")),
        ("tdm-xml", half_header(XML_HEADER, "<observation>{}</observation>", "</data></segment></body></tdm>")),
        (
            "sp3",
            b"#cP2024 "
            + b"x" * 120_000
            + b"\n* \n"
            + b"".join(b"P%c%02d\n" % (c, n) for c in range(65, 91) for n in range(100)),
        ),
    ],
)
def test_a_text_whose_records_would_repeat_its_half_is_one_refused_record(name: str, data: bytes) -> None:
    (record,) = split_records(data, name)
    assert record.payload == data.strip()
    assert "repeat what they have in common" in (record.error or "")


def test_measurements_repeat_a_header_of_some_kilobytes() -> None:
    data = half_header(KVN_HEADER, "RANGE = 2024-01-01T00:00:00.{:04} 1\n", "DATA_STOP\n", size=8000)
    data += half_header(KVN_HEADER, "RANGE = {} 1\n", "DATA_STOP\n", size=6000)
    records = list(split_records(data, "tdm-kvn"))
    assert len(records) > 600
    assert {record.error for record in records} == {None}


NUMBERS = (
    "ECCENTRICITY", "INCLINATION", "RA_OF_ASC_NODE", "ARG_OF_PERICENTER", "MEAN_ANOMALY", "BSTAR", "ELEMENT_SET_NO",
)  # fmt: skip
SET = {
    "OBJECT_NAME": "A",
    "OBJECT_ID": "1998-067A",
    "EPOCH": "2024-10-31T00:00:00",
    "MEAN_MOTION": "15.5",
    "CLASSIFICATION_TYPE": "U",
    "NORAD_CAT_ID": "25544",
    **dict.fromkeys(NUMBERS, "0"),
}
LINES = (
    "1 25544U 98067A   24305.00000000  .00000000  00000-0  00000-0 0    1",
    "2 25544  51.6000   0.0000 0010000   0.0000   0.0000 15.50000000    1",
)


def with_checksum(line: str) -> str:
    return f"{line:<68}"[:68] + str(line_checksum(f"{line:<68}"))


@pytest.mark.parametrize("keyword", ["OBJECT_NAME", "OBJECT_ID", "ORIGINATOR", "CLASSIFICATION_TYPE"])
@pytest.mark.parametrize("length", [LONGEST_TEXT, LONGEST_TEXT + 1])
def test_texts_of_columns_have_a_largest_length_in_every_format(keyword: str, length: int) -> None:
    values = {**SET, "ORIGINATOR": "X", keyword: "A" * length}
    csv = f"{','.join(values)}\n{','.join(values.values())}\n"
    contents = {"omm-json": f"[{json.dumps(values)}]", "omm-csv": csv}
    if keyword == "OBJECT_NAME":
        contents["tle"] = "\n".join([values[keyword], *map(with_checksum, LINES)])
    for name, content in contents.items():
        (row,) = decode_element_sets(content.encode(), segment_format=name).to_pylist()
        assert row["error_kind"] == (None if length == LONGEST_TEXT else "bad_length"), (name, row["error"])


@pytest.mark.parametrize(
    ("name", "begin", "record", "end"),
    [("tle", "", "x\n", ""), ("omm-json", "[", "1,", "1]"), ("omm-csv", "NORAD_CAT_ID,MEAN_MOTION\n", ",\n", "")],
)
def test_a_request_of_empty_records_is_refused_before_it_is_decoded(
    name: str, begin: str, record: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(puts, "decode_element_sets", pytest.fail)
    data = (begin + record * MANY + end).encode()
    sets, refused = accepted_sets(data, name, 0)
    assert sets == []
    assert [each.reason for each in refused] == [f"{len(data):,} bytes have more than 100,000 records"]


def test_a_header_line_without_an_end_is_not_kept() -> None:
    header = b"NORAD_CAT_ID,MEAN_MOTION," + b"x" * 2**16
    assert csv_header(header) == ()
    (error,) = decode_element_sets(header + b"\n1,2,3\n", segment_format="omm-csv")["error"].to_pylist()
    assert "line has 3 fields, its header has 0" in error


@pytest.mark.parametrize("keyword", ["OBJECT_NAME", "ORIGINATOR", "MESSAGE_ID"])
def test_names_in_messages_have_a_largest_length(keyword: str) -> None:
    text = (Path(__file__).parents[2] / "data" / "cdm" / "leo_debris.kvn").read_text()
    changed = re.sub(rf"(?m)^({keyword}\s*=).*", rf"\1 {'A' * (LONGEST_TEXT + 1)}", text, count=1)
    with pytest.raises(RecordError, match=rf"line \d+: {keyword} has 257 characters, at most 256"):
        read_cdm(changed.encode())
