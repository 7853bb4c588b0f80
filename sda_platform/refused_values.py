"""What a model refuses in what it was given, for people: the place of each value, and the reason."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import ValidationError


class RefusedValue(NamedTuple):
    """A value, which may be secret, its place, outermost name first, and why it is refused.

    The place is empty where values do not fit together.
    """

    place: tuple[str, ...]
    reason: str
    value: Any


def refused_values(error: ValidationError) -> Iterator[RefusedValue]:
    """Yield each value that ``error`` refuses."""
    for each in error.errors(include_url=False, include_context=False):
        yield RefusedValue(tuple(map(str, each["loc"])), each["msg"].removeprefix("Value error, "), each["input"])


def refusal_text(error: ValidationError) -> str:
    """Describe all that ``error`` refuses, on one line, without the values."""
    found = refused_values(error)
    return "; ".join(": ".join(filter(None, (".".join(each.place), each.reason))) for each in found)
