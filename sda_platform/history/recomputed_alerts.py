"""What alerts would be without an input, or with a corrected one: its commits made again in a shadow, and compared.

Everything that read the input is made again, however indirectly, from its first such commit to the newest, down to the
alerts. Segments that the platform itself landed, such as the element sets that it publishes, stay as they were.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.clock import iso
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.history.impact import SHA256, Impact
from sda_platform.lake.correction_log import INSERT, RETRACT
from sda_platform.lake.errors import InvalidRequest
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.orchestration.recomputing import recompute
from sda_platform.orchestration.replaying import Progress
from sda_platform.replay.counterfactual import OtherInput

Verdict = Literal["unchanged", "changed", "vanished", "new"]
_WITHDRAWN = "withdrawn"
_PAIR = ("event_id", "norad_id_1", "norad_id_2")
_STATE = ("risk", "collision_probability", "miss_distance_km", "tca_time_ns", "highest_risk", "status")


@dataclass(frozen=True)
class AlertState:
    """The newest revision of an alert. ``status``: open, closed, or withdrawn; ``revisions``: how many there were."""

    risk: str
    collision_probability: float | None
    miss_distance_km: float
    tca_time_ns: int
    highest_risk: str | None
    status: str | None
    revisions: int


@dataclass(frozen=True)
class RecomputedAlert:
    """An alert as it is and as it would be; None where there is, or would be, none. ``rests_on_it``: by its rows."""

    event_id: str
    norad_id_1: int
    norad_id_2: int
    rests_on_it: bool
    before: AlertState | None
    after: AlertState | None

    @property
    def verdict(self) -> Verdict:
        """Whether level, Pc, miss, TCA or status would differ; the number of revisions does not count."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "vanished"
        return "unchanged" if self.before == replace(self.after, revisions=self.before.revisions) else "changed"

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison of one alert for JSON."""
        sides = {name: None if side is None else vars(side) for name, side in self.sides().items()}
        pair = {name: getattr(self, name) for name in _PAIR}
        return {**pair, "verdict": self.verdict, "rests_on_it": self.rests_on_it, **sides}

    def sides(self) -> dict[str, AlertState | None]:
        """Return both states of the alert, by name."""
        return {"before": self.before, "after": self.after}


@dataclass(frozen=True)
class RecomputedImpact:
    """Alerts that rest on an input, and those that would differ; ``commits``: how many were made again, by table.

    ``since_ns``: from when on the input was left out, mission time; None: from its begin.
    """

    alerts: tuple[RecomputedAlert, ...]
    commits: Mapping[str, int]
    since_ns: int | None = None

    @property
    def counts(self) -> dict[Verdict, int]:
        """Count the alerts by verdict."""
        verdicts: tuple[Verdict, ...] = ("unchanged", "changed", "vanished", "new")
        return {each: sum(alert.verdict == each for alert in self.alerts) for each in verdicts}

    @property
    def summary(self) -> str:
        """Summarize the comparison in one line."""
        return ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison of all alerts for JSON."""
        since = None if self.since_ns is None else iso(self.since_ns)
        alerts = [each.to_dict() for each in self.alerts]
        return {"since_utc": since, "commits": self.commits, "counts": self.counts, "alerts": alerts}


def recompute_impact(
    live: Lake,
    tables: Mapping[str, Table],
    impact: Impact,
    shadow_uri: str,
    resources: Mapping[str, Any],
    *,
    corrected: bytes | None = None,
    since_ns: int | None = None,
    report: Progress = lambda *_: None,
) -> RecomputedImpact:
    """Recompute the alerts without the input of ``impact``, or with other bytes of a segment (``corrected``).

    The newest commits of the live lake when it begins are the last that are made again. A sensor may be left out
    ``since_ns`` alone, mission time; what it brought before stays. Raises InvalidRequest for a correction of another
    input and for the begin of one, NotReplayable where something that is needed has expired.
    """
    if since_ns is not None and impact.kind != "sensor":
        raise InvalidRequest(f"{impact.name} is a {impact.kind}: only a sensor can be left out from a time on")
    since = _since(tables, impact) if since_ns is None else list(_later(live, _since(tables, impact), since_ns))
    if corrected is not None:
        if impact.kind != "segment":
            raise InvalidRequest(f"{impact.name} is a {impact.kind}: only a segment can be corrected, by its bytes")
        landed = [table for table, _ in since if table.zones]
        other = OtherInput(corrected={each.sha256: corrected for each in _segments(live, landed, impact.name)})
    elif {"'", "\\"} & set(impact.name):
        raise InvalidRequest(f"{impact.name}: write the SHA-256 of this segment, its name has a quote or a backslash")
    else:
        other = OtherInput(left_out=impact.conditions)
    made = recompute(live, shadow_uri, resources, since=since, other=other, report=report)
    first = {table.name: sequence for table, sequence in since}
    commits = {name: log.head().sequence - first[name] + 1 for name, log in made.items()}
    if (fork := made.get(CONJUNCTION_ALERTS.name)) is None:
        return RecomputedImpact((), commits, since_ns)
    resting = {row["event_id"] for row in impact.alerts}
    return RecomputedImpact(
        tuple(compare_alerts(live.log(CONJUNCTION_ALERTS), fork, first[fork.table.name], resting)), commits, since_ns
    )


def _since(tables: Mapping[str, Table], impact: Impact) -> list[tuple[Table, int]]:
    """From which commit on each table is made again: those that lead to the alerts, inputs before consumers."""
    needed, found = {CONJUNCTION_ALERTS.name}, [CONJUNCTION_ALERTS]
    while found:
        fresh = [source for source in found.pop().inputs if source.name not in needed]
        needed |= {source.name for source in fresh}
        found += fresh
    return [(tables[each.table], each.sequences[0]) for each in impact.tables if each.table in needed]


def _later(live: Lake, since: Sequence[tuple[Table, int]], since_ns: int) -> Iterator[tuple[Table, int]]:
    """Yield the tables with a commit at ``since_ns`` or later, and the first such: none before that of ``since``."""
    for table, first in since:
        log, found = live.log(table), None
        for commit in log.commits_from(log.version()):
            if commit.sequence < first or commit.manifest.as_of_ns < since_ns:
                break
            found = commit.sequence
        if found is not None:
            yield table, found


def _segments(live: Lake, landed: Sequence[Table], name: str) -> Iterator[SegmentRef]:
    """Yield the consumed segments that ``name``, or a SHA-256, names."""
    is_hash = SHA256.fullmatch(name) is not None
    for table in landed:
        for commit in live.log(table).commits(None):
            yield from (
                s for s in commit.manifest.segments if s.name == name or (is_hash and s.sha256.startswith(name))
            )


def compare_alerts(live: TableLog, fork: TableLog, first: int, resting: set[str]) -> Iterator[RecomputedAlert]:
    """Compare alerts with a revision from commit ``first`` on; yield those that rest on the input or differ."""
    is_later = ds.field(COMMIT_SEQUENCE) >= first
    later = [log.rows(["event_id"], is_later).column("event_id") for log in (live, fork)]
    events = sorted({each for column in later for each in pc.unique(column).to_pylist()} | resting)
    before, after = (_states(log, events, fork.head().sequence) for log in (live, fork))
    for event in events:
        (pair, was), (other_pair, would_be) = before.get(event, (None, None)), after.get(event, (None, None))
        objects = pair or other_pair
        if objects is None:
            continue
        found = RecomputedAlert(event, *objects, event in resting, was, would_be)
        if found.rests_on_it or found.verdict != "unchanged":
            yield found


def _states(log: TableLog, events: list[str], upto: int) -> dict[str, tuple[tuple[int, int], AlertState]]:
    """Return the objects and the state after commit ``upto`` of each alert that was ever issued, by its event."""
    columns = [*_PAIR, *_STATE, "sequence", "op"]
    where = ds.field("event_id").isin(events) & (ds.field(COMMIT_SEQUENCE) <= upto)
    rows = log.rows(columns, where).sort_by([("sequence", "ascending")]).to_pylist()
    found: dict[str, tuple[tuple[int, int], AlertState]] = {}
    for row in (each for each in rows if each["op"] == INSERT):
        state = AlertState(**{name: row[name] for name in _STATE}, revisions=row["sequence"] + 1)
        found[row["event_id"]] = (row["norad_id_1"], row["norad_id_2"]), state
    for row in (each for each in rows if each["op"] == RETRACT):
        pair, state = found[row["event_id"]]
        if row["sequence"] == state.revisions - 1:
            found[row["event_id"]] = pair, replace(state, status=_WITHDRAWN)
    return found
