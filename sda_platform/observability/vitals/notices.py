"""Notices: what a person gets about faults. Each begins once and is over once, with the faults of one side together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from sda_platform.observability.vitals.faults import RUNBOOK, Fault, Reading, VitalState, by_side, in_short

REPEAT_S: Final = 4 * 3600.0
"""After this time a fault that lasts is notified again; then after twice the pause, and so on up to a day."""
_LONGEST_PAUSE_S = 86_400.0
# Bounds a notice of very many subjects.
_MOST_DETAILS = 200


class NoticeState(StrEnum):
    """What a notice says of its faults."""

    BEGUN = "begun"
    LASTS = "lasts"
    OVER = "over"


@dataclass(frozen=True)
class Notice:
    """Faults of one vital and one side that began, last or are over together.

    ``id``: the idempotency key. ``text``: one line. ``subjects`` and ``details``: the faults one by one. ``at_s``: wall
    time, Unix seconds. ``repeats``: how often they were notified before. ``escalates``: for the second receiver.
    """

    id: str
    vital: str
    state: str
    side: str
    text: str
    at_s: float
    subjects: Sequence[str] = ()
    details: Sequence[str] = ()
    repeats: int = 0
    escalates: bool = False

    @property
    def runbook(self) -> str:
        """Return the address of the page that says what to do."""
        return f"{RUNBOOK}#{self.vital}"

    def __str__(self) -> str:
        return f"{self.state}: {self.vital} ({self.side}): {self.text}; see {self.runbook}"


@dataclass(frozen=True)
class FaultAge:
    """Since when a fault lasts, how often it was notified again, and when it will be (wall time, Unix seconds)."""

    since_s: float
    due_s: float
    repeats: int = 0

    def repeated(self, at_s: float, repeat_s: float) -> "FaultAge":
        """Return the age once it was notified again at ``at_s``."""
        pause_s = min(repeat_s * 2.0 ** (self.repeats + 1), _LONGEST_PAUSE_S)
        return FaultAge(self.since_s, at_s + pause_s, self.repeats + 1)


@dataclass(frozen=True)
class Lasting:
    """A reading, the wall time (Unix seconds) since which it has its state, and by subject the age of each fault."""

    reading: Reading
    since_s: float
    ages: Mapping[str, FaultAge] = field(default_factory=dict)

    def followed_by(self, reading: Reading, at_s: float, repeat_s: float) -> tuple["Lasting", list[Notice]]:
        """Return the state after ``reading`` at ``at_s``, and the notices of the difference.

        What is unknown now is neither begun nor over: what was red stays so until it is known again. A fault whose
        side changes begins again, because another person must act.
        """
        if reading.state is VitalState.UNKNOWN and self.reading.state is VitalState.RED:
            return self, []
        known = {fault.subject: fault for fault in self.reading.faults}
        ages: dict[str, FaultAge] = {}
        begun, due = list[Fault](), list[Fault]()
        for fault in reading.faults:
            age, before = self.ages.get(fault.subject), known.get(fault.subject)
            if age is None or before is None or before.side is not fault.side:
                begun.append(fault)
                age = FaultAge(at_s, at_s + repeat_s)
            elif at_s >= age.due_s:
                due.append(fault)
                age = age.repeated(at_s, repeat_s)
            ages[fault.subject] = age
        over = [fault for subject, fault in known.items() if subject not in ages]
        notices = [
            *_notices(reading, NoticeState.BEGUN, begun, ages, at_s),
            *_notices(reading, NoticeState.LASTS, due, ages, at_s),
            *_notices(self.reading, NoticeState.OVER, over, self.ages, at_s),
        ]
        since_s = self.since_s if reading.state is self.reading.state else at_s
        return Lasting(reading, since_s, ages), notices


def _notices(
    reading: Reading, state: NoticeState, faults: Sequence[Fault], ages: Mapping[str, FaultAge], at_s: float
) -> Iterator[Notice]:
    """One for each side; one more for the second receiver where it gets, or got, a repetition."""
    for side, group in by_side(faults).items():
        repeats = max(ages[fault.subject].repeats if fault.subject in ages else 0 for fault in group)
        notice = Notice(
            f"{reading.vital}/{state}/{side}/{at_s:.3f}",
            reading.vital,
            state,
            side,
            in_short(group, reading.many),
            at_s,
            tuple(fault.subject for fault in group[:_MOST_DETAILS]),
            tuple(fault.text for fault in group[:_MOST_DETAILS]),
            repeats,
        )
        yield notice
        if repeats:
            yield replace(notice, id=f"{notice.id}/escalated", escalates=True)
