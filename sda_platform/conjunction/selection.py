"""Which conjunctions a list has, and in which order: the same words for the command line and the console."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sda_platform.conjunction.level_colours import ALERT_LEVELS
from sda_platform.conjunction.stated_precision import rounded
from sda_platform.formats.fleet import ProtectedObject

Fact = Mapping[str, Any]
_SEARCHED: Final = ("event_id", "norad_id_1", "object_name_1", "norad_id_2", "object_name_2", "rule", "stated_by",
                    "data_of_1", "data_of_2", "acknowledged_by", "assigned_to", "comment")  # fmt: skip


ORDERS: Final = ("level", "tca", "pc", "miss", "speed")
"""Orders by name: highest level, nearest TCA, largest Pc (ours or a received one), nearest miss, greatest speed."""


def sort_key(order: str, fact: Fact) -> Any:
    """Return the key that sorts alerts, or conjunctions with their level as ``risk``, in one of ORDERS."""
    # It loads compiled functions, which takes a second; the command line needs only the names of orders.
    from sda_platform.conjunction.alert_policy import largest_reported, urgency

    # An assessment has more digits than its alert, and both have one place.
    shown = {**fact, **rounded(fact)}
    first = {
        "level": 0,
        "tca": shown["tca_time_ns"],
        "pc": -largest_reported(shown),
        "miss": shown["miss_distance_km"],
        "speed": -(shown["relative_speed_km_s"] or 0.0),
    }
    return first[order], urgency(shown)


def first_places(levels: Iterable[str], limit: int | None) -> list[int]:
    """Return the places of what a list shows of conjunctions with these levels: the first, and every red one."""
    return [place for place, level in enumerate(levels) if limit is None or place < limit or level == ALERT_LEVELS[0]]


class UnknownOperator(ValueError):
    """No satellite of the fleet has this operator."""


@dataclass(frozen=True)
class EventSelection:
    """What a conjunction must have to be listed; what is empty or None selects all.

    Attributes:
        levels: its level is one of these.
        satellite: a catalogue number of one of its objects, or a part of its name, whatever the case.
        norad_ids: one of its objects is one of these.
        until_ns: its TCA is before this, ns since 1970.
        text: words that all occur in its names, numbers, id, rule, data or acknowledgement.
    """

    levels: frozenset[str] = frozenset()
    satellite: str = ""
    norad_ids: frozenset[int] | None = None
    until_ns: int | None = None
    text: str = ""

    def has(self, fact: Fact) -> bool:
        """Return whether an alert, or a conjunction with its level as ``risk``, is selected."""
        numbers = {fact["norad_id_1"], fact["norad_id_2"]}
        return (
            (not self.levels or fact["risk"] in self.levels)
            and (not self.satellite or self._is_of_satellite(fact, numbers))
            and (self.norad_ids is None or not self.norad_ids.isdisjoint(numbers))
            and (self.until_ns is None or fact["tca_time_ns"] < self.until_ns)
            and self._has_text(fact)
        )

    def _is_of_satellite(self, fact: Fact, numbers: set[Any]) -> bool:
        if self.satellite.isascii() and self.satellite.isdigit():
            return int(self.satellite) in numbers
        part = self.satellite.casefold()
        return any(part in (fact[f"object_name_{n}"] or "").casefold() for n in (1, 2))

    def _has_text(self, fact: Fact) -> bool:
        known = " ".join(str(fact.get(name) or "") for name in _SEARCHED).casefold() if self.text else ""
        return all(word in known for word in self.text.casefold().split())


def satellites_of(fleet: Iterable[ProtectedObject], operator: str) -> frozenset[int]:
    """Return the catalogue numbers of an operator's satellites, whatever the case. Raises UnknownOperator."""
    members = list(fleet)
    found = frozenset(each.norad_id for each in members if each.operator.casefold() == operator.casefold())
    if not found:
        known = ", ".join(sorted({each.operator for each in members if each.operator})) or "none"
        raise UnknownOperator(f"no satellite of the fleet has the operator {operator[:80]!r}; there are: {known}")
    return found
