"""Characters that control a display are refused in any text field of any format, where records are decoded."""

import json
import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

from sda_platform.formats.cutting import split_records
from sda_platform.formats.element_sets import decode_element_sets
from sda_platform.formats.format import ObservationFormat
from sda_platform.formats.plain_text import rows_with_controls
from sda_platform.formats.reading import read_records
from sda_platform.formats.registry import FORMATS, known_format
from sda_platform_tests.support.observations import decode_observations
from sda_platform_tests.support.sample_inputs import NOW_NS, OWN_SAMPLES, SAMPLES
from sda_platform_tests.support.sampling import sampled

ALL = {**SAMPLES, **OWN_SAMPLES}
CONTROLS = {
    "escape": "\x1b", "bell": "\x07", "delete": "\x7f", "eight-bit escape": "\x9b", "right to left": "\u202e",
    "isolate": "\u2066", "line separator": "\u2028",
}  # fmt: skip
_WITHOUT_KEPT_WORDS = ("stk-ephemeris", "cpf", "sp3")
"""Formats of whose samples no word of four letters is kept."""
_WORD = re.compile(r"[A-Za-z][A-Za-z -]{2,}[A-Za-z]")


def read(data: bytes, name: str) -> tuple[list[str], str]:
    """The reasons for which records of the file are refused, and all text that the others keep."""
    known = known_format(name)
    if isinstance(known, ObservationFormat):
        rows = decode_observations(data, feed=known.zone, segment_format=name, sealed_time_ns=NOW_NS)
    elif known.content == "element set":
        rows = decode_element_sets(data, segment_format=name)
    else:
        values, errors = read_records(list(split_records(data, name)), name, known.zone)
        return [error.text for error in errors.values()], repr([value for value in values if value is not None])
    kept = [row for row in rows.drop_columns(["payload"]).to_pylist() if row["error"] is None]
    return [error for error in rows["error"].to_pylist() if error], repr(kept)


def injected(data: bytes, name: str, letter: str) -> Iterator[tuple[str, bytes]]:
    """The file with ``letter`` in each of its words: names, comments, keywords, values of text."""
    text = data.decode()
    written = json.dumps(letter)[1:-1] if "json" in name else letter
    if name.endswith("-xml") and ord(letter) >= ord(" "):
        written = f"&#x{ord(letter):x};"
    places = [found for found in _WORD.finditer(text) if not (name == "tle" and text[found.start() - 1] == " ")]
    for place in places:
        middle = place.start() + 2
        yield place[0], f"{text[:middle]}{written}{text[middle:]}".encode()


def test_every_text_format_has_a_sample() -> None:
    assert {each.name for each in FORMATS if each.framing.is_text} == set(ALL)


@pytest.mark.parametrize("control", sampled(CONTROLS, "escape", "right to left"))
@pytest.mark.parametrize("name", ALL)
def test_a_control_character_in_any_word_is_refused_or_read_by_nothing__41(name: str, control: str) -> None:
    assert read(ALL[name], name)[0] == []
    outcomes = [(word, *read(data, name)) for word, data in injected(ALL[name], name, CONTROLS[control])]
    assert [word for word, _, kept in outcomes if repr(CONTROLS[control])[1:-1] in kept] == []
    if name in _WITHOUT_KEPT_WORDS:
        return
    # XML has no such characters, or takes them as blanks.
    words = ["cannot be read as XML"] if name.endswith("xml") else []
    words.append("which controls a display")
    assert any(word in reason for _, reasons, _ in outcomes for reason in reasons for word in words)


@pytest.mark.parametrize("name", ["tle", "omm-csv"])
def test_a_large_file_is_refused_only_where_the_character_is(name: str) -> None:
    """Large files are read by columns."""
    lines = SAMPLES[name].splitlines(keepends=True)
    head, records = (lines[:1], lines[1:]) if name == "omm-csv" else ([], lines)
    data = b"".join([*head, *(records * 400)])
    count = len(list(split_records(data, name)))
    word = next(found for found in _WORD.finditer(records[0].decode()))
    wrong = records[0][: word.start() + 2] + b"\x1b" + records[0][word.start() + 2 :]
    spoilt = b"".join([*head, *(records * 200), wrong, *records[1:], *(records * 199)])
    reasons, _ = read(spoilt, name)
    assert (len(reasons), len(list(split_records(spoilt, name)))) == (1, count)
    assert "U+001B, which controls a display" in reasons[0]


def test_people_may_write_several_lines_in_a_comment() -> None:
    (record,) = split_records(
        OWN_SAMPLES["acknowledgements-jsonl"].replace(b'"seen"', b'"seen\\n\\tby me"'), "edits-jsonl"
    )
    values, errors = read_records([record], "acknowledgements-jsonl", "acknowledgements")
    assert (values[0].comment, errors) == ("seen\n\tby me", {})


def test_columns_of_text_are_examined_at_once() -> None:
    columns = {"a": pa.array(["ok", None, "x\x1by", "é"]), "n": pa.array([1, 2, 3, 4])}
    assert {row: error.text for row, error in rows_with_controls(columns).items()} == {
        2: "a is 'x\\x1by': it has the character U+001B, which controls a display"
    }
