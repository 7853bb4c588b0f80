"""Keywords of navigation data messages: what a section of a message may hold, and the check that it holds just that.

Which keywords a message has is in the module of the message. Here is the notation for them, and the one check.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from sda_platform.formats.errors import RecordError
from sda_platform.formats.instants import parse_epoch_ns
from sda_platform.formats.json_fields import finite, require_short, with_exponent
from sda_platform.formats.ndm import COMMENT, NAMES, USER_DEFINED, KeywordEntry

Kind = Literal["text", "number", "instant"]
_KINDS: Final[Mapping[str, Kind]] = {"#": "number", "@": "instant"}
_MARKS: Final = "!#@"


@dataclass(frozen=True, slots=True)
class Keyword:
    """One keyword and the unit that the standard gives it ("" for none)."""

    name: str
    unit: str = ""
    kind: Kind = "text"
    is_required: bool = False


def keywords(text: str) -> tuple[Keyword, ...]:
    """Keywords from words like ``X!#:km``: name, marks (! required, # number, @ instant), and unit."""
    found = []
    for word in text.split():
        marked, _, unit = word.partition(":")
        name = marked.rstrip(_MARKS)
        marks = marked[len(name) :]
        kind: Kind = next((_KINDS[mark] for mark in marks if mark in _KINDS), "text")
        found.append(Keyword(name, unit, kind, "!" in marks))
    return tuple(found)


def checked_section(entries: Iterable[KeywordEntry], known: Sequence[Keyword], name: str) -> tuple[KeywordEntry, ...]:
    """Order the entries of one section as the standard does, comments first; skip entries without a value.

    Raises RecordError, naming the line and the keyword: one that the section does not have, is given twice, or is
    required and missing. A value of another kind and another unit are refused as well.
    """
    places = {keyword.name: place for place, keyword in enumerate(known)}
    # Parsers refuse an empty comment in XML as an element without a value.
    comments = [entry for entry in entries if entry.keyword == COMMENT and entry.value]
    found: dict[str, KeywordEntry] = {}
    for entry in entries:
        if entry.keyword == COMMENT:
            continue
        if entry.keyword not in places and not _is_user_defined(entry, places):
            raise RecordError("bad_field", f"{entry.place}: {shown(entry.keyword)} is no keyword of {name}")
        if entry.keyword in found:
            raise RecordError("bad_field", f"{entry.place}: {entry.keyword} of {name} is given twice")
        found[entry.keyword] = entry
    for keyword in known:
        given = found.get(keyword.name)
        if given is not None and given.value:
            found[keyword.name] = _checked_value(given, keyword)
        elif keyword.is_required:
            raise RecordError("missing_field", f"{keyword.name} of {name} is missing")
    order = sorted((e for e in found.values() if e.value), key=lambda entry: places.get(entry.keyword, len(places)))
    return (*comments, *order)


def values_of(entries: Iterable[KeywordEntry]) -> dict[str, str]:
    """Return the values by keyword, without comments."""
    return {entry.keyword: entry.value for entry in entries if entry.keyword != COMMENT}


def shown(text: str) -> str:
    """``text`` for a message to a person: short, and ASCII."""
    return ascii(text)[1:-1][:40]


def _is_user_defined(entry: KeywordEntry, places: Mapping[str, int]) -> bool:
    return USER_DEFINED in places and entry.keyword.startswith(f"{USER_DEFINED}_")


def _checked_value(entry: KeywordEntry, keyword: Keyword) -> KeywordEntry:
    """Return the entry, a number as everybody reads it. Raises RecordError."""
    try:
        if keyword.kind == "number":
            finite(entry.value, keyword.name)
            entry = replace(entry, value=with_exponent(entry.value))
        elif keyword.kind == "instant":
            parse_epoch_ns(entry.value, keyword.name)
        elif keyword.name in NAMES:
            require_short(entry.value, keyword.name)
    except RecordError as error:
        raise RecordError(error.kind, f"{entry.place}: {error.text}") from None
    if entry.unit and entry.unit.lower() != keyword.unit.lower():
        allowed = f"in {keyword.unit}" if keyword.unit else "without a unit"
        raise RecordError(
            "bad_field", f"{entry.place}: {keyword.name} is in {ascii(entry.unit)[:40]}, must be {allowed}"
        )
    return entry
