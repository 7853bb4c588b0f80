"""The filters of the table of conjunctions: read from the address of the page, and shown as a form."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from sda_platform.clock import parse_span_ns
from sda_platform.conjunction.level_colours import LEVEL_COLOURS
from sda_platform.conjunction.selection import ORDERS, EventSelection, UnknownOperator, satellites_of
from sda_platform.foreign_text import Html
from sda_platform.formats.fleet import ProtectedObject
from sda_platform.html_elements import element, labelled

LEVELS: Final = tuple(LEVEL_COLOURS)
MOST_ROWS: Final = 10_000
_ROWS: Final = 200
_NAMES: Final = ("level", "satellite", "operator", "within", "text", "sort", "limit")
_LONGEST: Final = 200
_TITLES: Final = {
    "level": "Highest level", "tca": "Nearest TCA", "pc": "Largest Pc", "miss": "Nearest miss",
    "speed": "Greatest speed",
}  # fmt: skip


class WrongFilter(ValueError):
    """A filter in the address cannot be used; the text names it. Ignored, it would look as if it had selected."""


@dataclass(frozen=True)
class Filters:
    """What the address of the page asks for; empty texts select all."""

    level: tuple[str, ...] = ()
    satellite: str = ""
    operator: str = ""
    within: str = ""
    text: str = ""
    sort: str = ORDERS[0]
    limit: int = _ROWS

    @classmethod
    def of(cls, query: QueryParams) -> Self:
        """Read the address. Raises WrongFilter."""
        given = {name: query.getlist(name) for name in query}
        for name, values in given.items():
            if name not in _NAMES:
                raise WrongFilter(f"no filter is named {name[:40]!r}; there are {', '.join(_NAMES)}")
            if name != "level" and len(values) > 1:
                raise WrongFilter(f"{name} is given twice")
            if any(len(value) > _LONGEST for value in values):
                raise WrongFilter(f"{name} is longer than {_LONGEST} characters")
        levels = tuple(dict.fromkeys(each for each in given.pop("level", []) if each))
        _require_of("level", levels, LEVELS)
        texts = {name: values[0].strip() for name, values in given.items() if values[0].strip()}
        _require_of("sort", [texts.get("sort", ORDERS[0])], ORDERS)
        limit = texts.pop("limit", str(_ROWS))
        if not (limit.isascii() and limit.isdigit() and len(limit) < 10 and 0 < int(limit) <= MOST_ROWS):
            raise WrongFilter(f"limit is {limit[:40]!r}, must be a whole number from 1 to {MOST_ROWS:,}")
        return cls(levels, limit=int(limit), **texts)

    def selection(self, fleet: Iterable[ProtectedObject], now_ns: int) -> EventSelection:
        """Return what is selected of the conjunctions of ``now_ns``. Raises WrongFilter."""
        try:
            numbers = satellites_of(fleet, self.operator) if self.operator else None
            until_ns = now_ns + parse_span_ns(self.within) if self.within else None
        except UnknownOperator as error:
            raise WrongFilter(str(error)) from None
        except ValueError as error:
            raise WrongFilter(f"within: {error}") from None
        return EventSelection(frozenset(self.level), self.satellite, numbers, until_ns, self.text)

    @property
    def is_any(self) -> bool:
        """Whether something is filtered out."""
        return replace(self, sort=ORDERS[0], limit=_ROWS) != Filters()

    def query(self, **changes: object) -> str:
        """Return the address of the page with ``changes``, from the question mark on; a form's fields in one order."""
        wanted = replace(self, **changes) if changes else self  # type: ignore[arg-type]  # by the callers' keywords
        known: Mapping[str, object] = {**vars(wanted), "limit": "" if wanted.limit == _ROWS else wanted.limit}
        fields = [(name, each) for name in _NAMES for each in _values(known[name])]
        return f"?{urlencode([(name, str(each)) for name, each in fields if each != ''])}"

    def form(self, operators: Sequence[str]) -> Html:
        """Make the form; without a script it is sent by its button."""
        boxes = (
            element(
                "label",
                element("input", type="checkbox", name="level", value=level, checked=level in self.level),
                f" {level}",
            )
            for level in LEVELS
        )
        return element(
            "form",
            element("fieldset", element("legend", "Level"), *boxes),
            labelled("Satellite", _text("satellite", self.satellite, "number or part of a name")),
            labelled("Operator", _choice("operator", self.operator, {"": "all", **{each: each for each in operators}})),
            labelled("TCA within", _text("within", self.within, "3d, 12h, 90min", size=8)),
            labelled("Text", _text("text", self.text, "names, numbers, data, comments", type_="search")),
            labelled("First", _choice("sort", self.sort, _TITLES)),
            element("button", "Show", type="submit"),
            element("a", "Clear", href="./") if self.is_any else None,
            method="get",
            id="filters",
            role="search",
        )


def _values(value: object) -> Sequence[object]:
    return value if isinstance(value, tuple) else (value,)


def _require_of(name: str, values: Iterable[str], known: Sequence[str]) -> None:
    for value in values:
        if value not in known:
            raise WrongFilter(f"{name} is {value[:40]!r}, must be one of {', '.join(known)}")


def _text(name: str, value: str, hint: str, type_: str = "text", size: int = 18) -> Html:
    return element("input", type=type_, name=name, value=value, placeholder=hint, size=size, maxlength=_LONGEST)


def _choice(name: str, value: str, titles: Mapping[str, str]) -> Html:
    options = (element("option", title, value=each, selected=each == value) for each, title in titles.items())
    return element("select", *options, name=name)
