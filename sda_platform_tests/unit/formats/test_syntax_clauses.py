"""The syntax chapters of the standards, clause by clause, in every family of messages; a row of the table each.

Sources: CCSDS 502.0-B-3, chapter 7 (orbit data), 503.0-B-2, chapter 4 (tracking data), 508.0-B-1, chapter 6
(conjunction data), 505.0-B-3, chapter 4 (XML), and CelesTrak's description of two-line element sets.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest

from sda_platform.formats.tle import line_checksum
from sda_platform_tests.support.message_texts import FIRST, KVN, SECOND, XML, errors_of, values_of

# A mandatory keyword of each kind, and one whose value is a number with a unit.
MANDATORY: dict[str, str] = {
    "omm": "OBJECT_NAME",
    "oem": "OBJECT_NAME",
    "opm": "OBJECT_NAME",
    "tdm": "PARTICIPANT_1",
    "cdm": "TCA",
}
LOWER = {kind: name.lower() for kind, name in MANDATORY.items()}
NUMBER: dict[str, str] = {
    "omm": "ECCENTRICITY",
    "oem": "INTERPOLATION_DEGREE",
    "opm": "X_DOT",
    "tdm": "",
    "cdm": "MISS_DISTANCE",
}


def with_value(text: str, keyword: str, value: Callable[[str], str]) -> str:
    """``text`` with another value of the first line of ``keyword``."""
    lines = text.split("\n")
    row = next(row for row, line in enumerate(lines) if line.partition("=")[0].strip() == keyword)
    name, _, old = lines[row].partition("=")
    lines[row] = f"{name}={value(old)}"
    return "\n".join(lines)


def other_number(text: str, kind: str, form: Callable[[float], str]) -> str:
    """``text`` with the number of its kind written by ``form``; tracking data have none in their metadata."""
    if not NUMBER[kind]:
        return text
    return with_value(text, NUMBER[kind], lambda old: f" {form(float(old.split()[0]))}")


def mandatory(text: str, kind: str, value: str) -> str:
    """``text`` with ``value`` for its mandatory keyword; # stands for the value that it has."""
    return with_value(text, MANDATORY[kind], lambda old: value.replace("#", old))


def created(text: str, value: str) -> str:
    """``text`` with another date of creation."""
    return with_value(text, "CREATION_DATE", lambda _: f" {value}")


def spread(text: str, sign: str) -> str:
    """``text`` with ``sign`` about each equals sign and before each line."""
    return "\n".join(
        sign + line.replace("=", f"{sign}={sign}", 1) if "=" in line else line for line in text.split("\n")
    )


# Clause, and the change that every message in KVN must survive.
ACCEPTED: list[tuple[str, Callable[[str, str], str]]] = [
    ("502 7.3.4, 508 6.2.1.4: blank lines anywhere", lambda text, _: "\n\n" + text.replace("\n", "\n\n")),
    ("502 7.3.3: lines end with CR LF", lambda text, _: text.replace("\n", "\r\n")),
    ("502 7.4.3: white space around keyword and equals sign", lambda text, _: spread(text, "  ")),
    ("502 7.4.3: tabs as white space", lambda text, _: spread(text, "\t")),
    ("502 7.4.4: white space at the end of a line", lambda text, _: text.replace("\n", "   \n")),
    ("502 7.4.3: no white space at all", lambda text, _: text.replace(" = ", "=")),
    ("502 7.8: comments after the version", lambda text, _: text.replace("\n", "\nCOMMENT a = b [c] \u00e9\n", 1)),
    ("502 7.8: a comment without text", lambda text, _: text.replace("\n", "\nCOMMENT\n", 1)),
    (
        "502 7.5.10: creation by day of year",
        lambda t, _: created(t, "2024-123T00:00:00Z"),
    ),
    (
        "502 7.5.10: creation to the nanosecond",
        lambda t, _: created(t, "2024-05-02T00:00:00.123456789"),
    ),
    (
        "502 7.7: no unit is the unit of the standard",
        lambda text, _: re.sub(r" \[[^\]]*\]", "", text),
    ),
    (
        "502 7.5: a number in exponential notation",
        lambda t, kind: other_number(t, kind, "{:E}".format),
    ),
    (
        "502 7.5: a number with a plus sign and leading zeros",
        lambda t, kind: (
            with_value(t, NUMBER[kind], lambda v: f" +00{abs(float(v.split()[0]))!r}") if NUMBER[kind] else t
        ),
    ),
    ("several messages in a file", lambda text, _: text.rstrip() + "\n" + text),
]
# Clause, the change that no message survives, and what the refusal states.
REFUSED: list[tuple[str, Callable[[str, str], str], Any]] = [
    ("502 7.5.1: a mandatory value is empty", lambda t, kind: mandatory(t, kind, " "), "is missing"),
    ("502 7.4.2: a keyword of no table", lambda t, kind: mandatory(t, kind, "#\nNO_KEYWORD = 1"), "NO_KEYWORD"),
    (
        "502 7.4.2: a keyword in lower case",
        lambda t, kind: t.replace(f"\n{MANDATORY[kind]}", f"\n{LOWER[kind]}", 1),
        LOWER,
    ),
    ("502 7.4.1: a keyword twice", lambda t, kind: mandatory(t, kind, f"#\n{MANDATORY[kind]} =#"), "twice"),
    ("502 7.4: a line that is no keyword and value", lambda t, kind: mandatory(t, kind, "#\nnonsense"), "nonsense"),
    ("502 7.5.10: a creation that is no instant", lambda t, _: created(t, "2024-13-01T00:00:00"), "CREATION_DATE"),
    ("the version does not come first", lambda t, _: "ORIGINATOR = X\n" + t, "begins with"),
    (
        "502 7.5: a number with a blank in it",
        lambda t, kind: other_number(t, kind, lambda _: "1 2") if NUMBER[kind] else t + "ANGLE_1 = x",
        "",
    ),
]


@pytest.mark.parametrize("kind", KVN)
@pytest.mark.parametrize(("clause", "change"), ACCEPTED, ids=[clause for clause, _ in ACCEPTED])
def test_clause_accepts(clause: str, change: Callable[[str, str], str], kind: str) -> None:
    del clause
    text = change(KVN[kind], kind)
    assert errors_of(text, f"{kind}-kvn") == []
    assert len(values_of(text, f"{kind}-kvn")) >= len(values_of(KVN[kind], f"{kind}-kvn"))


@pytest.mark.parametrize("kind", KVN)
@pytest.mark.parametrize(("clause", "change", "reason"), REFUSED, ids=[clause for clause, _, _ in REFUSED])
def test_clause_refuses(clause: str, change: Callable[[str, str], str], reason: Any, kind: str) -> None:
    del clause
    found = errors_of(change(KVN[kind], kind), f"{kind}-kvn")
    assert found
    assert (reason[kind] if isinstance(reason, dict) else reason) in found[0]


XML_ACCEPTED: list[tuple[str, Callable[[str, str], str]]] = [
    ("505 4.3.2: without a declaration", lambda text, _: text[text.index("?>") + 2 :]),
    ("505 4.3.3: inside an ndm", lambda t, _: "<ndm>" + t[t.index("?>") + 2 :] + "</ndm>"),
    ("505 4.3.5: a default namespace", lambda t, kind: t.replace(f"<{kind} ", f'<{kind} xmlns="urn:ccsds" ', 1)),
    ("505 4.2: comments of XML", lambda t, _: t.replace("<header>", "<!-- <cdm> --><header>", 1)),
    (
        "505 4.4: values with blanks and line ends around",
        lambda t, _: re.sub("<CREATION_DATE>(.*)<", "<CREATION_DATE>\\n \\1\\n<", t),
    ),
    ("505 4.4: units are optional", lambda t, _: re.sub(' units="[^"]*"', "", t)),
    ("505 4.2: entities of XML", lambda t, _: t.replace("<ORIGINATOR>", "<ORIGINATOR>A &amp; &#66; ", 1)),
    ("505 4.2: a section of characters", lambda t, _: t.replace("<ORIGINATOR>", "<ORIGINATOR><![CDATA[A<B]]>", 1)),
    ("505 4.2: everything on one line", lambda t, _: "".join(line.strip() for line in t.split("\n"))),
]


@pytest.mark.parametrize("kind", XML)
@pytest.mark.parametrize(("clause", "change"), XML_ACCEPTED, ids=[clause for clause, _ in XML_ACCEPTED])
def test_clause_of_xml_accepts(clause: str, change: Callable[[str, str], str], kind: str) -> None:
    del clause
    assert errors_of(change(XML[kind], kind), f"{kind}-xml") == []


@pytest.mark.parametrize("kind", XML)
@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("</header>", "", 1),
        lambda t: t.replace("<header>", "<!ENTITY x 'y'><header>", 1),
        lambda t: t[: len(t) // 2],
        lambda t: t.replace("<header>", "<header>&unknown;", 1),
    ],
)
def test_what_is_no_xml_is_refused(change: Callable[[str], str], kind: str) -> None:
    assert errors_of(change(XML[kind]), f"{kind}-xml") != []


def lines(first: str = FIRST, second: str = SECOND, name: str = "", end: str = "\n") -> str:
    checked = [f"{line[:68]}{line_checksum(line)}{line[69:]}" for line in (first, second)]
    return end.join([*([name] if name else []), *checked]) + end


def numbered(number: str) -> str:
    return lines(FIRST[:2] + number + FIRST[7:], SECOND[:2] + number + SECOND[7:])


@pytest.mark.parametrize(
    ("clause", "text", "reason"),
    [
        ("two lines", lines(), None),
        ("line 0: a name of 24 characters", lines(name="ISS (ZARYA)             "), None),
        ("line 0: Space-Track's 0 before the name", lines(name="0 ISS (ZARYA)"), None),
        ("columns beyond 69 are not read", lines(FIRST + " 123", SECOND + "x"), None),
        ("blanks at the end of lines", lines(end="   \n"), None),
        ("column 8: classification", lines(FIRST[:7] + "C" + FIRST[8:]), None),
        ("column 8: none", lines(FIRST[:7] + " " + FIRST[8:]), None),
        ("columns 10-17: no designator", lines(FIRST[:9] + "        " + FIRST[17:]), None),
        ("columns 3-7: Alpha-5", numbered("A5544"), None),
        ("columns 3-7: I and O are no letters", numbered("I5544"), "catalogue number"),
        ("columns 3-7: both lines have one number", lines(FIRST[:2] + "25545" + FIRST[7:]), "line 2 of"),
        ("column 63: SGP4-XP", lines(FIRST[:62] + "4" + FIRST[63:]), "SGP4-XP"),
        ("column 69: a wrong checksum", FIRST[:68] + "0\n" + SECOND + "\n", "checksum"),
        ("line 1 is too short", FIRST[:60] + "\n" + SECOND + "\n", "columns, must have 69"),
        ("line 2 is missing", FIRST + "\n", "not a line 1 followed by its line 2"),
        ("line 2 comes first", lines().split("\n")[1] + "\n" + lines().split("\n")[0] + "\n", "not a line 1"),
        ("columns 19-32: day 0", lines(FIRST[:20] + "000" + FIRST[23:]), "day of the year"),
        ("letters in a number", lines(second=SECOND[:8] + " 51.63x0" + SECOND[16:]), "inclination"),
    ],
)
def test_clause_of_two_lines(clause: str, text: str, reason: str | None) -> None:
    del clause
    found = errors_of(text, "tle")
    assert (found == []) if reason is None else (found and reason in found[0]), found


@pytest.mark.parametrize(
    ("text", "is_whole"), [("25544.0", True), ("25544.", True), ("025544", True), ("25544.5", False)]
)
def test_a_whole_number_may_have_a_point(text: str, is_whole: bool) -> None:
    data = with_value(KVN["omm"], "NORAD_CAT_ID", lambda _: f" {text}")
    assert (errors_of(data, "omm-kvn") == []) is is_whole
