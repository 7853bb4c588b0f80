"""What an audit needs and what it finds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sda_platform.lake.lake import Lake
from sda_platform.settings import Settings


@dataclass(frozen=True)
class AuditScope:
    """The platform that is audited. ``day_ns``: mission time at which the audited day (24 h) ends.

    ``resources`` are those of the definitions; a replay uses them.
    """

    settings: Settings
    lake: Lake
    resources: Mapping[str, Any]
    day_ns: int


@dataclass(frozen=True)
class AuditOutcome:
    """The ``problems`` that were found, in words with what to do. ``facts`` are for the history.

    ``skipped``: what was left out, and why. An audit that did nothing (``is_done`` False) has not passed.
    """

    problems: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    is_done: bool = True

    @property
    def has_passed(self) -> bool:
        """Whether something was audited, and no problem found."""
        return self.is_done and not self.problems

    @property
    def summary(self) -> str:
        """Summarize the outcome in one line."""
        left_out = f"; left out: {'; '.join(self.skipped)}" if self.skipped else ""
        if self.problems:
            return f"{len(self.problems)} problems, such as {self.problems[0]}{left_out}"
        return (
            f"passed{left_out}"
            if self.is_done
            else f"not done: {'; '.join(self.skipped) or 'there was nothing to audit'}"
        )
