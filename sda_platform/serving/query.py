"""The query language of Space-Track's API: which rows, in which order, how many, and with which fields.

A query is a path of names and values: ``NORAD_CAT_ID/25544,43013/EPOCH/>now-7/orderby/EPOCH desc/limit/10``. A value is
compared as the field is: as a number, an instant, a day, or a text of any case. ``null-val`` is a field without value,
``now-7`` the time seven days ago; a day is its beginning.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from sda_platform.clock import parse_iso_ns
from sda_platform.formats.satcat import with_leading_zero
from sda_platform.serving.requests import BadRequest
from sda_platform.units import DAY_NS

T = TypeVar("T")
NULL: Final = "null-val"
NUMBER, WHOLE, INSTANT, DAY, TEXT = "double", "bigint", "datetime", "date", "varchar(80)"
"""The types of fields, by the names of Space-Track's `modeldef`."""
_NOW: Final = re.compile(r"now(?:([+-])(\d{1,6}(?:\.\d{1,9})?))?", re.ASCII | re.IGNORECASE)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_MOST_DIGITS: Final = 40
_LIMIT: Final = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?", re.ASCII)
_RANGE: Final = "--"
_PARTS: Final = (
    "class",
    "orderby",
    "limit",
    "format",
    "distinct",
    "predicates",
    "metadata",
    "emptyresult",
    "favorites",
)
MOST_PATTERNS: Final = 20
"""Patterns and ranges of a field that each row is compared with; equal values are looked up, in any number."""
MOST_COMPARISONS: Final = 40
"""Comparisons of each row that a query may ask for: the patterns and ranges of all fields, and one for equal values."""


@dataclass(frozen=True)
class QueryField:
    """One field of a class: its type, and how its value is found: a number, ns since 1970, or text; None: no value."""

    name: str
    kind: str
    value: Callable[[Any], Any]
    text: Callable[[Any], str] = str
    """Writes a value."""

    def stated(self, row: Any) -> str | None:
        """Write the value of a row."""
        found = self.value(row)
        return None if found is None else self.text(found)


Test = Callable[[Any], bool]


@dataclass(frozen=True)
class FieldCondition:
    """What the value of a field must be; ``values`` are those that it must equal one of, where that is all.

    ``comparisons``: with how many patterns, ranges and sets of values a row is compared.
    """

    field: QueryField
    is_met: Test
    values: tuple[Any, ...] | None = None
    low: Any = None
    high: Any = None
    comparisons: int = 1


@dataclass
class Query:
    """A query, read: all conditions hold for a row. ``limit`` and ``offset`` count rows, ``fields`` are those shown."""

    name: str
    conditions: list[FieldCondition] = field(default_factory=list)
    order: list[tuple[QueryField, bool]] = field(default_factory=list)
    """Fields, and whether descending."""
    limit: int | None = None
    offset: int = 0
    fields: Sequence[QueryField] = ()
    format: str = "json"
    group: str | None = None
    is_distinct: bool = False
    has_metadata: bool = False

    def chosen(self, rows: Iterable[T]) -> list[T]:
        """Return the rows that the query asks for, in its order."""
        found = [row for row in rows if all(each.is_met(each.field.value(row)) for each in self.conditions)]
        for each, is_descending in reversed(self.order):  # a sort keeps the order of what is equal
            found.sort(key=partial(_order_of, each), reverse=is_descending)
        if self.is_distinct:
            found = list({tuple(each.stated(row) for each in self.fields): row for row in reversed(found)}.values())[
                ::-1
            ]
        return found[self.offset :][: self.limit]

    def condition(self, name: str) -> FieldCondition | None:
        """Return the condition on a field, where there is one alone."""
        found = [each for each in self.conditions if each.field.name == name]
        return found[0] if len(found) == 1 else None


def parsed(path: Sequence[str], classes: Mapping[str, Sequence[QueryField]], now_ns: int) -> Query:
    """Read a query from the parts of its path, decoded. Raises BadRequest, which names the part."""
    parts = list(path)
    if len(parts) % 2:
        raise BadRequest(f"{parts[-1][:40]!r} has no value: a query is a path of names and values")
    pairs = [(name, value) for name, value in zip(parts[::2], parts[1::2], strict=True)]
    named = [value for name, value in pairs if name.lower() == "class"]
    if len(named) != 1 or named[0].lower() not in classes:
        raise BadRequest(f"give one class: {', '.join(classes)}")
    fields = {each.name: each for each in classes[named[0].lower()]}
    query = Query(named[0].lower(), fields=tuple(fields.values()))
    for name, value in pairs:
        if name.lower() in _PARTS:
            _take(query, name.lower(), value, fields)
        else:
            query.conditions.append(condition(_known(fields, name), value, now_ns))
    if sum(each.comparisons for each in query.conditions) > MOST_COMPARISONS:
        raise BadRequest(f"the query compares each row more than {MOST_COMPARISONS} times; ask in several queries")
    return query


def condition(of: QueryField, text: str, now_ns: int) -> FieldCondition:
    """Read what a value must be. Raises BadRequest."""
    alternatives = [_alternative(of, each, now_ns) for each in text.split(",")]
    if len(alternatives) == 1:
        return alternatives[0]
    wanted = tuple(value for each in alternatives for value in each.values or ())
    tests = [each.is_met for each in alternatives if each.values is None]
    if len(tests) > MOST_PATTERNS:
        raise BadRequest(f"{of.name} has more than {MOST_PATTERNS} patterns and ranges; ask for some at a time")
    if wanted:
        tests.append(_equals(of, frozenset(wanted)))
    values = wanted if len(wanted) == len(alternatives) else None
    return FieldCondition(of, lambda value: any(test(value) for test in tests), values, comparisons=len(tests))


def _alternative(of: QueryField, text: str, now_ns: int) -> FieldCondition:
    if text.lower() == NULL:
        return FieldCondition(of, lambda value: value is None)
    if text.startswith("<>"):
        others = text[2:]
        if others.lower() == NULL:
            return FieldCondition(of, lambda value: value is not None)
        unwanted = _value(of, others, now_ns)
        return FieldCondition(of, lambda value: value is not None and _compared_as(of, value) != unwanted)
    if text.startswith("~~"):
        part = text[2:].strip("%").upper()
        return FieldCondition(of, lambda value: value is not None and part in of.text(value).upper())
    if text.startswith("^"):
        begin = text[1:].upper()
        return FieldCondition(of, lambda value: value is not None and of.text(value).upper().startswith(begin))
    if text[:1] in ("<", ">"):
        bound = _value(of, text[1:], now_ns)
        if text[0] == "<":
            return FieldCondition(of, lambda value: value is not None and _compared_as(of, value) < bound, high=bound)
        return FieldCondition(of, lambda value: value is not None and _compared_as(of, value) > bound, low=bound)
    if _RANGE in text:
        low, high = (_value(of, each, now_ns) for each in text.split(_RANGE, 1))
        return FieldCondition(of, lambda v: v is not None and low <= _compared_as(of, v) <= high, low=low, high=high)
    wanted = _value(of, text, now_ns)
    return FieldCondition(of, _equals(of, {wanted}), (wanted,))


def _equals(of: QueryField, wanted: Set[Any]) -> Test:
    return lambda value: value is not None and _compared_as(of, value) in wanted


def _compared_as(of: QueryField, value: Any) -> Any:
    return value // DAY_NS * DAY_NS if of.kind == DAY else _folded(value)


def _order_of(of: QueryField, row: Any) -> tuple[bool, Any]:
    """Return what a row is sorted by; nothing is before everything."""
    value = _folded(of.value(row))
    return value is not None, 0 if value is None else value


def _folded(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


def _value(of: QueryField, text: str, now_ns: int) -> Any:
    """``text`` as a value of a field. Raises BadRequest."""
    if of.kind == TEXT:
        return text.upper()
    if of.kind in (NUMBER, WHOLE):
        if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
            raise BadRequest(f"{of.name} is {text[:40]!r}, must be a number")
        return float(text) if of.kind == NUMBER or not text.isdigit() else int(text)
    found = _NOW.fullmatch(text)
    try:
        if found:
            days = float(found[2] or 0) * (-1 if found[1] == "-" else 1)
            time_ns = now_ns + round(days * DAY_NS)
        else:
            time_ns = parse_iso_ns(with_leading_zero(text))
    except (ValueError, OverflowError):
        raise BadRequest(f"{of.name} is {text[:40]!r}, must be a day, an instant, or like now-7") from None
    return time_ns // DAY_NS * DAY_NS if of.kind == DAY else time_ns


def _require_once(part: str, names: Sequence[str]) -> None:
    """Raise BadRequest where a name is repeated: each repetition would be sorted by, or written, once more."""
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise BadRequest(f"{part} names {repeated} twice")


def _take(query: Query, name: str, value: str, fields: Mapping[str, QueryField]) -> None:
    if name == "orderby":
        query.order = [_ordered(fields, each) for each in value.split(",")]
        _require_once(name, [each.name for each, _ in query.order])
    elif name == "limit":
        found = _LIMIT.fullmatch(value)
        if found is None:
            raise BadRequest(f"limit is {value[:40]!r}, must be a number of rows, or that and an offset: 10,20")
        query.limit, query.offset = int(found[1]), int(found[2] or 0)
    elif name == "predicates":
        names = [] if value.lower() in ("all", "") else value.split(",")
        query.fields = tuple(_known(fields, each) for each in names) or query.fields
        _require_once(name, [each.name for each in query.fields])
    elif name == "format":
        query.format = value.lower()
    elif name == "favorites":
        query.group = value
    elif name in ("distinct", "metadata"):
        if value.lower() not in ("true", "false"):
            raise BadRequest(f"{name} is {value[:40]!r}, must be true or false")
        is_true = value.lower() == "true"
        query.is_distinct, query.has_metadata = (
            (is_true, query.has_metadata) if name == "distinct" else (query.is_distinct, is_true)
        )


def _ordered(fields: Mapping[str, QueryField], text: str) -> tuple[QueryField, bool]:
    name, _, direction = text.strip().partition(" ")
    if direction.strip().lower() not in ("", "asc", "desc"):
        raise BadRequest(f"orderby is {text[:40]!r}, must be a field, and asc or desc")
    return _known(fields, name), direction.strip().lower() == "desc"


def _known(fields: Mapping[str, QueryField], name: str) -> QueryField:
    if name.strip().upper() not in fields:
        raise BadRequest(f"no field is named {name[:40]!r}; the fields are {', '.join(fields)}")
    return fields[name.strip().upper()]
