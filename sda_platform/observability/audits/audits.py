"""The audits: what runs every night, and on demand, over a lake that may be sound only by assumption."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sda_platform.delivery.checks import disagreements
from sda_platform.delivery.configured import subscriber_of
from sda_platform.lake.bypasses import bypasses
from sda_platform.lake.errors import LakeError, NotReplayable
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import Table
from sda_platform.landing.zone import LandingZone
from sda_platform.observability.audits.outcome import AuditOutcome, AuditScope
from sda_platform.observability.audits.restore_drill import drill
from sda_platform.orchestration.landing_balance import misplaced_segments
from sda_platform.orchestration.reconciling import reconcile
from sda_platform.orchestration.replaying import replay_lake
from sda_platform.orchestration.table_checks import unbalanced_commits
from sda_platform.recovery.examination import Depth
from sda_platform.recovery.repair import recover
from sda_platform.registry import TABLES, landing_zones
from sda_platform.replay.history import Span
from sda_platform.replay.shadow import temporary_shadow
from sda_platform.units import DAY_NS

_REPLAYABLE_NS = 7 * DAY_NS
_COMMITS_AT_ONCE = 20
_RECONCILED_COMMITS = 24
_SHOWN = 10


@dataclass(frozen=True)
class Audit:
    """An audit: what it shows when it passes, and whether it needs the engine."""

    name: str
    description: str
    needs_engine: bool
    run: Callable[[AuditScope], AuditOutcome]


def deep_verification(scope: AuditScope) -> AuditOutcome:
    """Read every column of every file, and compare consumed segments with the tables; nothing is repaired."""
    zones = landing_zones(scope.settings.landing_uri)
    found = recover(scope.lake, TABLES, zones, depth=Depth.COLUMNS, repair=False)
    problems = [
        f"{each.examination.table}: {problem}; `sda lake verify --deep` shows all, `--repair` repairs what can be"
        for each in found
        for problem in each.problems[:_SHOWN]
    ]
    commits, files = (sum(getattr(each.examination, name) for each in found) for name in ("commits_read", "files_seen"))
    return AuditOutcome(tuple(problems), {"tables": len(found), "commits_read": commits, "files_read": files})


def replay_sample(scope: AuditScope) -> AuditOutcome:
    """Make one commit of each table again, drawn from those of the week by the day's own seed."""
    draw = random.Random(scope.day_ns // DAY_NS)
    problems, replayed = [], 0
    with temporary_shadow(scope.lake.uri, "audit") as uri:
        for table in TABLES:
            commits = list(_commits(scope, table, _REPLAYABLE_NS))
            if not commits:
                continue
            sequence = draw.choice(commits).sequence
            span = Span(from_sequence=sequence, to_sequence=sequence)
            try:
                for each in replay_lake(scope.lake, f"{uri}/{table.name}", scope.resources, tables=[table], span=span):
                    replayed += 1
                    problems += [f"{table.name}: {line}" for line in each.differences[:_SHOWN]]
            except NotReplayable as error:
                problems.append(f"{table.name} sequence {sequence} cannot be replayed: {error}")
    return AuditOutcome(tuple(problems), {"commits_replayed": replayed}, is_done=bool(replayed))


def conservation(scope: AuditScope) -> AuditOutcome:
    """Follow every record of the day from landing to the subscriber: counts, keys, places of files, deliveries."""
    problems, reviewed = [], 0
    for table in TABLES:
        commits = list(_commits(scope, table, DAY_NS))
        reviewed += len(commits)
        for begin in range(0, len(commits), _COMMITS_AT_ONCE):
            problems += unbalanced_commits(scope.lake, table, commits[begin : begin + _COMMITS_AT_ONCE])
        zones = [LandingZone(scope.settings.landing_uri, feed) for feed in table.zones]
        problems += [f"{table.name}: {p}" for p in misplaced_segments(zones, [c.manifest for c in commits])]
    try:
        subscriber = subscriber_of(scope.settings)
        problems += disagreements(scope.lake, subscriber)
    except LakeError as error:
        problems.append(f"the subscriber did not answer: {error}")
    return AuditOutcome(tuple(problems), {"commits_reviewed": reviewed}, is_done=bool(reviewed))


def reconciliation(scope: AuditScope) -> AuditOutcome:
    """Compare every table with what follows from its inputs, for the newest commits of the day; repair is offered."""
    problems, compared = [], 0
    with temporary_shadow(scope.lake.uri, "audit") as uri:
        for table in TABLES:
            commits = list(_commits(scope, table, DAY_NS))[:_RECONCILED_COMMITS]
            if not commits:
                continue
            span = Span(from_sequence=commits[-1].sequence, to_sequence=commits[0].sequence)
            try:
                found = reconcile(
                    scope.lake, f"{uri}/{table.name}", scope.resources, tables=[table], span=span, apply=False
                )
            except LakeError as error:
                problems.append(f"{table.name} cannot be compared with its inputs: {error}")
                continue
            compared += len(commits)
            for each in found:
                remedy = each.refused or f"`sda lake reconcile {table.name} --apply` restores them"
                problems += [f"{table.name}: {line}; {remedy}" for line in each.differences[:_SHOWN]]
    return AuditOutcome(tuple(problems), {"commits_compared": compared}, is_done=bool(compared))


def restore_drill(scope: AuditScope) -> AuditOutcome:
    """Restore an older state of the lake elsewhere, verify it, and compare it with today's; see `restore_drill`."""
    return drill(scope)


def lineage(scope: AuditScope) -> AuditOutcome:
    """Find changes of rows that no commit of the platform made, in the day and since."""
    problems = [line for table in TABLES for line in bypasses(scope.lake.log(table), scope.day_ns - DAY_NS)]
    return AuditOutcome(tuple(problems), {"tables": len(TABLES)})


AUDITS: Sequence[Audit] = (
    Audit("deep_verification", "Every column of every data file reads as it was written.", False, deep_verification),
    Audit("conservation", "Every record of the day is in one place, from landing to subscriber.", False, conservation),
    Audit("lineage", "Every change of rows of the day names its run, code and inputs.", False, lineage),
    Audit(
        "restore_drill",
        "An older state of the lake opens elsewhere, verifies, and is part of today's.",
        False,
        restore_drill,
    ),
    Audit(
        "replay_sample",
        "A commit of each table, drawn from the week, replays bit for bit.",
        True,
        replay_sample,
    ),
    Audit("reconciliation", "Every table holds what follows from its inputs of the day.", True, reconciliation),
)
"""Every audit, in the order in which the nightly job runs them."""


def _commits(scope: AuditScope, table: Table, past_ns: int) -> Iterator[Commit]:
    """Yield the commits of ``table``, newest first, of the time ``past_ns`` before the end of the audited day."""
    log = scope.lake.log(table)
    for commit in log.commits_from(log.version()):
        if commit.manifest.as_of_ns <= scope.day_ns - past_ns:
            return
        if commit.manifest.as_of_ns <= scope.day_ns:
            yield commit
