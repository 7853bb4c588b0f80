"""The commits of a day as events of the objectives, judged by the findings of now, whenever those were made."""

from contextlib import suppress
from dataclasses import dataclass, field

from deltalake.exceptions import DeltaError

from sda_platform.lake.errors import LakeError
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import Table
from sda_platform.observability.objectives import ObjectiveEvents, alert_latency_s, broken_promises, commit_events
from sda_platform.registry import TABLES
from sda_platform.units import DAY_NS


@dataclass
class _TableDay:
    """The commits of one table and their events, by sequence, as ``found`` judges them."""

    commits: dict[int, tuple[Commit, float | None]] = field(default_factory=dict)
    events: dict[int, list[ObjectiveEvents]] = field(default_factory=dict)
    found: dict[int, set[str]] = field(default_factory=dict)

    def add(self, commit: Commit, latency_s: float | None) -> None:
        """Take one more commit."""
        self.commits[commit.sequence] = (commit, latency_s)
        self.events[commit.sequence] = list(commit_events(commit, self.found, latency_s))

    def judge(self, found: dict[int, set[str]]) -> None:
        """Judge those commits anew of which a finding is new, gone or different."""
        before, self.found = self.found, found
        for sequence in self.commits.keys() & (found.keys() | before.keys()):
            if found.get(sequence) != before.get(sequence):
                self.add(*self.commits[sequence])

    def forget(self, before_ns: int) -> None:
        """Drop the commits of before the day."""
        for sequence in [n for n, (commit, _) in self.commits.items() if commit.manifest.as_of_ns < before_ns]:
            del self.commits[sequence], self.events[sequence]


class DayOfEvents:
    """Follows the commits of the day (UTC, mission time) of every table of ``lake``."""

    def __init__(self, lake: Lake, now_ns: int) -> None:
        self._lake = lake
        self._days = {table.name: _TableDay() for table in TABLES}
        midnight_ns = now_ns - now_ns % DAY_NS
        for table in TABLES:
            log = lake.log(table)
            for commit in log.commits_from(log.version()):
                if commit.manifest.as_of_ns < midnight_ns:
                    break
                self.add(commit, alert_latency_s(lake, commit))

    def add(self, commit: Commit, latency_s: float | None) -> None:
        """Take one more commit; ``latency_s``: see `alert_latency_s`."""
        self._days[commit.manifest.table].add(commit, latency_s)

    def until(self, now_ns: int) -> list[ObjectiveEvents]:
        """Return the events of the day of ``now_ns``, by the findings of now."""
        for table in TABLES:
            self._judge(table, now_ns - now_ns % DAY_NS)
        return [event for day in self._days.values() for events in day.events.values() for event in events]

    def _judge(self, table: Table, midnight_ns: int) -> None:
        day = self._days[table.name]
        day.forget(midnight_ns)
        # Findings that cannot be read now leave the last judgement; what cannot be read is a fault of its own.
        with suppress(LakeError, DeltaError, OSError):
            day.judge(broken_promises(self._lake, table) if day.commits else {})
