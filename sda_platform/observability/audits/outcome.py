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
    """The ``problems`` that were found, in words with what to do; none: it passed. ``facts`` are for the history."""

    problems: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """One line."""
        return f"{len(self.problems)} problems, such as {self.problems[0]}" if self.problems else "passed"
