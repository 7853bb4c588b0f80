"""`sda status`: the state of every table and landing zone, read from logs and directories, without an engine."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any

import pyarrow.dataset as ds

from sda_platform.clock import iso
from sda_platform.dead_letters.tables import DEAD_LETTERS
from sda_platform.formats.registry import ZONES
from sda_platform.fusion.watermarks import PIPELINE
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Head
from sda_platform.lake.table import Table
from sda_platform.lake.unconsumed import unconsumed_commits
from sda_platform.landing.decoding import fate_of
from sda_platform.landing.zone import LandingZone
from sda_platform.observability.red_tables import RedTable, red_tables
from sda_platform.observability.vitals.faults import Reading
from sda_platform.orchestration.backlog import Backlog, backlog_of
from sda_platform.orchestration.dispositions import RECORD_KINDS
from sda_platform.registry import TABLES
from sda_platform.units import DAY_NS, SECOND_NS


@dataclass(frozen=True)
class TableStatus:
    """One table. ``backlog`` counts upstream commits not consumed; ages are in seconds of mission time."""

    table: str
    group: str
    rows: int
    version: int
    sequence: int
    age_s: float | None
    as_of_utc: str | None
    watermark_utc: str | None
    backlog: int
    last_run: str | None


@dataclass(frozen=True)
class ZoneStatus:
    """What waits in one landing zone, and what became of the segments of the last day of mission time."""

    zone: str
    backlog: Backlog
    acknowledged: int = 0
    duplicate: int = 0
    conflict: int = 0
    quarantined: int = 0


@dataclass(frozen=True)
class DeadLetterStatus:
    """Dead letters of one kind that were received within the last day of mission time, and mostly from whom."""

    kind: str
    disposition: str
    letters: int
    source: str
    newest_utc: str


@dataclass(frozen=True)
class PlatformStatus:
    """Everything `sda status` shows."""

    mission_time_utc: str
    tables: tuple[TableStatus, ...]
    zones: tuple[ZoneStatus, ...]
    letters: tuple[DeadLetterStatus, ...]
    vitals: tuple[Reading, ...]
    red: tuple[RedTable, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the status for JSON; ``orphans`` and ``failures`` (silent sources) are also problems of two vitals."""
        problems = {each.vital: each.problems for each in self.vitals}
        lists = {"orphans": problems.get("no_orphans_wait", ()), "failures": problems.get("sources_report", ())}
        vitals = [each.to_dict() for each in self.vitals]
        return {**asdict(self), "vitals": vitals, **{key: list(found) for key, found in lists.items()}}


def platform_status(lake: Lake, landing_root: str, vitals: Sequence[Reading]) -> PlatformStatus:
    """Read the state of all tables and zones, and take the ``vitals``; a table that does not exist has version -1."""
    now_ns, wall_s = lake.clock.now_ns(), time.time()
    fates = _fates(lake, now_ns - DAY_NS)
    return PlatformStatus(
        iso(now_ns),
        table_states(lake),
        tuple(_zone(LandingZone(landing_root, feed), fates[feed], wall_s) for feed in ZONES),
        tuple(letters_of_day(lake, now_ns)),
        tuple(vitals),
        red_tables(lake),
    )


def table_states(lake: Lake) -> tuple[TableStatus, ...]:
    """Read the state of all tables."""
    heads = {table.name: lake.head(table) for table in TABLES}
    return tuple(_table(lake, table, heads, lake.clock.now_ns()) for table in TABLES)


def _fates(lake: Lake, since_ns: int) -> Mapping[str, Counter[str]]:
    """By landing zone, how many segments that were consumed since then became what (`fate_of`)."""
    found: dict[str, Counter[str]] = {feed: Counter() for feed in ZONES}
    for log in (lake.log(table) for table in TABLES if table.zones):
        for commit in takewhile(lambda c: c.manifest.as_of_ns >= since_ns, log.commits_from(log.version())):
            for segment in commit.manifest.segments:
                found[segment.zone][fate_of(segment)] += 1
    return found


def _zone(zone: LandingZone, fates: Mapping[str, int], wall_s: float) -> ZoneStatus:
    return ZoneStatus(zone.feed, backlog_of(zone, wall_s), **fates)


def _watermarks(head: Head) -> Mapping[str, int]:
    return head.commit.manifest.watermarks if head.commit else {}


def letters_of_day(lake: Lake, now_ns: int) -> Iterator[DeadLetterStatus]:
    """Count the dead letters of the day before ``now_ns`` by kind, the most first."""
    columns = ["error_kind", "feed", "source_id", "received_time_ns"]
    rows = lake.log(DEAD_LETTERS).rows(columns, ds.field("received_time_ns") > now_ns - DAY_NS).to_pylist()
    for kind, count in Counter(row["error_kind"] for row in rows).most_common():
        alike = [row for row in rows if row["error_kind"] == kind]
        entry = RECORD_KINDS.get(kind)
        yield DeadLetterStatus(
            kind,
            entry.disposition.value if entry else "unknown",
            count,
            Counter(row["source_id"] or row["feed"] for row in alike).most_common(1)[0][0],
            iso(max(row["received_time_ns"] for row in alike)),
        )


def _table(lake: Lake, table: Table, heads: Mapping[str, Head], now_ns: int) -> TableStatus:
    head = heads[table.name]
    manifest = head.commit.manifest if head.commit else None
    mark = _watermarks(head).get(PIPELINE)
    return TableStatus(
        table=table.name,
        group=table.group,
        rows=lake.log(table).row_count(),
        version=head.version,
        sequence=head.sequence,
        age_s=(now_ns - manifest.as_of_ns) / SECOND_NS if manifest else None,
        as_of_utc=iso(manifest.as_of_ns) if manifest else None,
        watermark_utc=iso(mark) if mark else None,
        # What has no commit yet may have looked, and found nothing to commit.
        backlog=sum(unconsumed_commits(table, heads).values()) if manifest else 0,
        last_run=manifest.run_id if manifest else None,
    )
