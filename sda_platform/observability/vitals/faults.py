"""Faults: what is wrong, of which subject, and who must act. The state of a vital follows from its faults."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

RUNBOOK: Final = "docs/reference/vitals.md"
"""The page that has a section of each vital's name: when it is red, and what to do."""
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


class VitalState(StrEnum):
    """Unknown: the process that has this information does not run here."""

    GREEN = "green"
    RED = "red"
    UNKNOWN = "unknown"


class Side(StrEnum):
    """Who must act on a fault."""

    SOURCES = "sources"
    COLLECTORS = "collectors"
    PLATFORM = "platform"
    SUBSCRIBER = "subscriber"
    MACHINE = "machine"


@dataclass(frozen=True)
class Fault:
    """What is wrong with ``subject``, and the side at fault: the unit of an alarm.

    ``subject`` names the same thing as long as the fault lasts. ``lasted_s``: for how long, where that is known.
    """

    subject: str
    side: Side
    text: str
    lasted_s: float | None = None

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "Fault":
        """Return the fault that ``asdict`` made into ``content``."""
        return cls(**{**content, "side": Side(content["side"])})


@dataclass(frozen=True)
class Reading:
    """The state of one vital, and its faults. ``many`` is what several of them are called."""

    vital: str
    state: VitalState
    faults: tuple[Fault, ...] = ()
    many: str = "faults"

    @property
    def side(self) -> str:
        """The side at fault; empty without one. Of several the first fault names it."""
        return self.faults[0].side if self.faults else ""

    @property
    def text(self) -> str:
        """The faults in short: the only one as it is, several by their number and the longest of each side."""
        return "; ".join(in_short(group, self.many) for group in by_side(self.faults).values())

    @property
    def problems(self) -> list[str]:
        """Return the text of every fault."""
        return [each.text for each in self.faults]

    def to_dict(self) -> dict[str, Any]:
        """Return the reading for JSON."""
        shown = {"vital": self.vital, "state": self.state, "side": self.side, "text": self.text}
        return {**shown, "faults": [asdict(each) for each in self.faults]}

    def __str__(self) -> str:
        return f"{self.vital} ({self.side}): {self.text}" if self.faults else f"{self.vital}: {self.state}"


def red(vital: str, faults: Sequence[Fault], many: str = "faults") -> Reading:
    """Return the reading of a vital that has these ``faults``; green without any."""
    return Reading(vital, VitalState.RED if faults else VitalState.GREEN, tuple(faults), many)


def by_side(faults: Iterable[Fault]) -> dict[Side, list[Fault]]:
    """``faults`` by the side that must act, in their order."""
    found: dict[Side, list[Fault]] = {}
    for fault in faults:
        found.setdefault(fault.side, []).append(fault)
    return found


def in_short(faults: Sequence[Fault], many: str) -> str:
    """Describe ``faults`` of one vital and side in one line."""
    if len(faults) == 1:
        return faults[0].text
    longest = max(faults, key=lambda each: each.lasted_s or 0.0)
    if longest.lasted_s is None:
        return f"{len(faults):,} {many}, such as {longest.subject}"
    return f"{len(faults):,} {many}, longest {longest.subject} {duration(longest.lasted_s)}"


def duration(seconds: float) -> str:
    """A length of time as people say it: 45 s, 29 min, 7 h, 3 days."""
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:,.0f} s"
    if seconds < 2 * _HOUR_S:
        return f"{seconds / _MINUTE_S:,.0f} min"
    return f"{seconds / _HOUR_S:,.0f} h" if seconds < 2 * _DAY_S else f"{seconds / _DAY_S:,.0f} days"
