"""`sda status`: where every table and landing zone stands, read from logs and directories, without an engine."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sda_platform.clock import NANOSECONDS_PER_SECOND, iso
from sda_platform.formats.records import FEED_FORMATS
from sda_platform.fusion.watermarks import PIPELINE
from sda_platform.ingest.checks import landing_orphans
from sda_platform.lake.backlog import Backlog, backlog_of
from sda_platform.lake.lake import Lake
from sda_platform.lake.landing import LandingZone
from sda_platform.lake.log import Head
from sda_platform.lake.table import Table
from sda_platform.registry import TABLES


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
    """What waits in one landing zone."""

    zone: str
    backlog: Backlog


@dataclass(frozen=True)
class PlatformStatus:
    """Everything `sda status` shows."""

    mission_time_utc: str
    tables: tuple[TableStatus, ...]
    zones: tuple[ZoneStatus, ...]
    orphans: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def platform_status(lake: Lake, landing_root: str, *, orphan_grace_s: float) -> PlatformStatus:
    """Read the state of all tables and zones; a table that does not exist yet has version -1."""
    now_ns, wall_s = lake.clock.now_ns(), time.time()
    heads = {table.name: lake.head(table) for table in TABLES}
    return PlatformStatus(
        iso(now_ns),
        tuple(_table(lake, table, heads, now_ns) for table in TABLES),
        tuple(ZoneStatus(feed, backlog_of(LandingZone(landing_root, feed), wall_s)) for feed in FEED_FORMATS),
        tuple(o.told(wall_s) for o in landing_orphans(landing_root, wall_s - orphan_grace_s)),
    )


def _table(lake: Lake, table: Table, heads: Mapping[str, Head], now_ns: int) -> TableStatus:
    head = heads[table.name]
    checkpoint = head.commit.checkpoint if head.commit else None
    mark = checkpoint.watermarks.get(PIPELINE) if checkpoint else None
    waiting = [heads[w.table].sequence - w.upto_sequence for w in checkpoint.windows] if checkpoint else []
    return TableStatus(
        table=table.name,
        group=table.group,
        rows=lake.log(table).row_count(),
        version=head.version,
        sequence=head.sequence,
        age_s=(now_ns - checkpoint.as_of_ns) / NANOSECONDS_PER_SECOND if checkpoint else None,
        as_of_utc=iso(checkpoint.as_of_ns) if checkpoint else None,
        watermark_utc=iso(mark) if mark else None,
        backlog=sum(waiting),
        last_run=checkpoint.run_id if checkpoint else None,
    )


def table_lines(tables: Sequence[TableStatus]) -> list[tuple[str, ...]]:
    """The tables as rows of text: table, rows, version, committed, watermark, backlog, last run."""
    return [
        (
            t.table,
            f"{t.rows:,}",
            "–" if t.version < 0 else str(t.version),
            "never" if t.age_s is None else f"{t.age_s:,.0f} s ago",
            t.watermark_utc[11:19] if t.watermark_utc else "–",
            str(t.backlog),
            (t.last_run or "–")[:8],
        )
        for t in tables
    ]
