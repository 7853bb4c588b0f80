"""The parameters of queries: what each means, which values it takes, and their description for OpenAPI."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sda_platform.serving.index import GREATEST_ID

_NUMBER: Final = r"[1-9][0-9]{0,17}"
_INSTANT: Final = r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"


@dataclass(frozen=True)
class Parameter:
    """One parameter: its meaning, and the JSON schema of its values."""

    text: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})

    @property
    def is_repeated(self) -> bool:
        """Whether a request may give it more than once."""
        return bool(self.schema["type"] == "array")

    def described(self, name: str, place: str) -> dict[str, Any]:
        """Describe the parameter for an OpenAPI document; ``place`` is query or path."""
        return {"name": name, "in": place, "description": self.text, "schema": dict(self.schema)}


def number(text: str, least: int = 0, most: int = GREATEST_ID) -> Parameter:
    """Declare a whole number of a range."""
    return Parameter(text, {"type": "integer", "minimum": least, "maximum": most})


def numbers(text: str) -> Parameter:
    """Declare a list of catalogue numbers, separated by commas."""
    return Parameter(text, {"type": "string", "pattern": f"^{_NUMBER}(,{_NUMBER})*$"})


def instant(text: str) -> Parameter:
    """Declare an instant, ISO 8601; UTC where it states no offset."""
    return Parameter(text, {"type": "string", "pattern": f"^{_INSTANT}$", "examples": ["2024-11-01T00:00:00Z"]})


def instants(text: str) -> Parameter:
    """Declare instants: the parameter may be repeated."""
    return Parameter(text, {"type": "array", "items": dict(instant("").schema)})


def choice(text: str, values: Sequence[str]) -> Parameter:
    """Declare a choice of words."""
    return Parameter(f"{text}: {', '.join(values)}.", {"type": "string", "enum": list(values)})


def seconds(text: str, least: float, most: float) -> Parameter:
    """Declare a time from ``least`` to ``most``, seconds."""
    return Parameter(text, {"type": "number", "minimum": least, "maximum": most})
