"""Service levels: what the platform promises, how much of it a day kept, and how fast its error budget burns.

An event is good or bad. The budget of a day is the share of events that may be bad; the burn rate of an hour is the
share of bad events in it over that share. A rate of 1 spends a day's budget in a day (Google SRE workbook, chapter 5).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import Table
from sda_platform.observability.lineage import oldest_reception_ns, stages
from sda_platform.observability.metrics.samples import KINDS
from sda_platform.registry import TABLES
from sda_platform.units import DAY_NS, HOUR_NS, SECOND_NS

ALERT_WITHIN_S = 30.0
"""From the reception of an observation to its alert at the subscriber (all tracks)."""
FRESH_WITHIN_MS = 30_000


@dataclass(frozen=True)
class Objective:
    """A promise: ``target`` is the share of events that must be good."""

    name: str
    target: float
    event: str
    good: str


OBJECTIVES = (
    Objective(
        "alert_latency",
        0.99,
        "an alert entry that rests on observations",
        "taken within 30 s of reception",
    ),
    Objective("freshness", 0.99, "a commit of the fusion", "every kind's median pipeline lag is at most 30 s"),
    Objective("loss", 0.9999, "a commit of a table", "no row of it is missing and no count unbalanced"),
    Objective("duplicates", 0.9999, "a commit of a table", "no key of it is there twice"),
    Objective("availability", 0.999, "a round of the watchdog", "no vital is red at the platform's side"),
)
_LOSS, _DUPLICATES = ("chain", "balance"), ("keys",)


@dataclass(frozen=True)
class ObjectiveEvents:
    """Good and all events of an objective at one instant, mission time (availability: wall time)."""

    objective: str
    at_ns: int
    good: float
    total: float


@dataclass(frozen=True)
class ServiceLevel:
    """An objective over a day: events, the share of good ones, budget left, burn rate of the last hour."""

    objective: Objective
    good: float
    total: float
    burn_rate: float

    @property
    def share(self) -> float:
        """The share of good events; 1 without any."""
        return self.good / self.total if self.total else 1.0

    @property
    def budget_left(self) -> float:
        """Share of the day's budget that is left; negative: overspent."""
        return 1.0 - (1.0 - self.share) / (1.0 - self.objective.target)

    @property
    def is_kept(self) -> bool:
        """Whether the day keeps the promise so far."""
        return self.share >= self.objective.target


def service_levels(events: Sequence[ObjectiveEvents], now_ns: int) -> list[ServiceLevel]:
    """Every objective over the day (UTC) of ``now_ns``. Pure."""
    midnight_ns = now_ns - now_ns % DAY_NS
    return [_level(objective, events, midnight_ns, now_ns) for objective in OBJECTIVES]


def _level(objective: Objective, events: Sequence[ObjectiveEvents], midnight_ns: int, now_ns: int) -> ServiceLevel:
    own = [each for each in events if each.objective == objective.name and midnight_ns <= each.at_ns <= now_ns]
    recent = [each for each in own if each.at_ns > now_ns - HOUR_NS]
    total = sum(each.total for each in recent)
    bad_share = 1.0 - sum(each.good for each in recent) / total if total else 0.0
    burn_rate = bad_share / (1.0 - objective.target)
    return ServiceLevel(objective, sum(each.good for each in own), sum(each.total for each in own), burn_rate)


def commit_events(commit: Commit, found: Mapping[int, set[str]], latency_s: float | None) -> Iterator[ObjectiveEvents]:
    """Yield the events of one commit. Pure.

    ``found``: by sequence, the promises that are broken according to findings. ``latency_s``: see `alert_latency_s`.
    """
    at_ns, broken = commit.manifest.as_of_ns, found.get(commit.sequence, set())
    yield ObjectiveEvents("loss", at_ns, float(not broken & set(_LOSS)), 1.0)
    yield ObjectiveEvents("duplicates", at_ns, float(not broken & set(_DUPLICATES)), 1.0)
    if commit.manifest.table == FUSED_TRACKS.name:
        lags = [commit.manifest.counts.get(f"{kind}_pipeline_lag_ms", 0) for kind in KINDS]
        yield ObjectiveEvents("freshness", at_ns, float(max(lags) <= FRESH_WITHIN_MS), 1.0)
    if latency_s is not None:
        sent = sent_entries(commit)
        taken = sent - commit.manifest.counts.get("refused", 0)
        yield ObjectiveEvents("alert_latency", at_ns, float(taken if latency_s <= ALERT_WITHIN_S else 0), float(sent))


def sent_entries(commit: Commit) -> int:
    """Count the alert entries that a commit sent; 0 for a commit of another table than `alert_deliveries`."""
    return commit.manifest.counts.get("sent", 0) if commit.manifest.table == ALERT_DELIVERIES.name else 0


def alert_latency_s(lake: Lake, commit: Commit) -> float | None:
    """Return seconds from the oldest reception that a delivery rests on until it was committed.

    The plan of the delivery has mission time; what came after it is wall time. None: the commit sent no alert, or rests
    on no observation.
    """
    if not sent_entries(commit):
        return None
    received_ns = oldest_reception_ns(lake, stages(lake, ALERT_DELIVERIES, commit))
    if received_ns is None:
        return None
    planned_wall_ns = lake.clock.wall_ns(commit.manifest.as_of_ns)
    sending_ns = max(commit.timestamp_ms * 1_000_000 - planned_wall_ns, 0) if planned_wall_ns else 0
    return (commit.manifest.as_of_ns - received_ns + sending_ns) / SECOND_NS


def broken_promises(lake: Lake, table: Table) -> dict[int, set[str]]:
    """Find broken promises by commit sequence, according to the findings of ``table``."""
    found: dict[int, set[str]] = {}
    for finding in lake.verdicts.read(lake.log(table)).findings:
        for sequence in range(finding.sequence, finding.last.sequence + 1):
            found.setdefault(sequence, set()).update(finding.problems)
    return found


def events_since(lake: Lake, since_ns: int, tables: Iterable[Table] = TABLES) -> Iterator[ObjectiveEvents]:
    """Yield the events of every commit whose mission time is ``since_ns`` or later."""
    for table in tables:
        found = broken_promises(lake, table)
        log = lake.log(table)
        for commit in log.commits_from(log.version()):
            if commit.manifest.as_of_ns < since_ns:
                break
            yield from commit_events(commit, found, alert_latency_s(lake, commit))
