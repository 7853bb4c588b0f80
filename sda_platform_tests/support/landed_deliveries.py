"""Deliveries of the same and of other bytes to a landing zone."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from upath import UPath

from sda_platform.clock import MissionClock
from sda_platform.formats.observations import decode_segments
from sda_platform.formats.segments import SegmentMeta
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.lake import without_session
from sda_platform.lake.table import Table
from sda_platform.landing.owners import Owners
from sda_platform.landing.table_zones import TableZones
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.landing_balance import miscounted_segments, misplaced_segments
from sda_platform.orchestration.landing_table import land as land_in
from sda_platform.recovery.verification import duplicate_keys, unbalanced_segments
from sda_platform_tests.campaign.process_home import DeltaRsLake
from sda_platform_tests.support.segments import START_NS, described, put, radar_segment

FEEDS = ("radar", "optical", "isl")
FUTURE_S = 4_000_000_000.0
Decode = Callable[[Sequence[tuple[bytes, SegmentMeta]]], pa.Table]


class Platform:
    """Zones and a bronze table of a home, emptied by the platform's own code; delta-rs is the engine."""

    def __init__(self, home: Path) -> None:
        self.root = home / "landing"
        self.lake = DeltaRsLake(str(home / "lake"), MissionClock(START_NS, 0, 0.0), without_session, "run")
        self.events: list[Any] = []
        self.owners = Owners()

    def zones(self, feeds: Sequence[str]) -> list[LandingZone]:
        return [LandingZone(str(self.root), feed) for feed in feeds]

    def zones_of(self, table: Table) -> TableZones:
        attempts = UPath(self.root) / ".decoding" / f"{table.name}.json"
        return TableZones(self.zones(table.zones), 8, 2**27, attempts, self.owners, FUTURE_S)

    def deliver(self, feed: str, name: str, data: bytes, *, segment_format: str | None = None, at: float = 1.0) -> None:
        zone = LandingZone(str(self.root), feed)
        put(zone, name, data)
        meta = described(data, feed, segment_format=segment_format, seconds=at)
        put(zone, f"{name}.meta.json", meta.to_json().encode())

    def run(self, decoder: Decode = decode_segments) -> None:
        land_in(self.lake, self, replace(RAW_RECORDS, zones=FEEDS), decoder, report=self.events.append)  # type: ignore[arg-type]
        self.must_balance()

    def drain(self) -> None:
        for _ in range(20):
            if not self.pending():
                return
            self.run()
        raise AssertionError(f"{self.pending()} wait still")

    def rows(self) -> list[tuple[str, str, int, str | None]]:
        columns = ["feed", "segment_name", "record_number", "error_kind"]
        return [tuple(row.values()) for row in self.lake.log(RAW_RECORDS).rows(columns).to_pylist()]

    def valid(self) -> Counter[str]:
        return Counter(f"{feed}/{name}" for feed, name, _, kind in self.rows() if kind is None)

    def dead(self) -> set[tuple[str, str | None]]:
        return {(f"{feed}/{name}", kind) for feed, name, _, kind in self.rows() if kind is not None}

    def pending(self) -> list[str]:
        return [f"{zone.feed}/{name}" for zone in self.zones(FEEDS) for name in zone.pending_files()]

    def counts(self) -> dict[str, int]:
        """What all commits counted, of segments."""
        totals: Counter[str] = Counter()
        for commit in self.lake.log(RAW_RECORDS).commits():
            totals.update({k.removesuffix("_segments"): v for k, v in commit.manifest.counts.items() if "seg" in k})
        return dict(totals)

    def must_balance(self) -> None:
        """The conservation of records and of segments, and the table's key."""
        log = self.lake.log(RAW_RECORDS)
        commits = log.commits()
        assert duplicate_keys(log, commits) == []
        assert unbalanced_segments(self.lake, log, commits) == []
        assert miscounted_segments(self.lake, log, commits) == []
        assert misplaced_segments(self.zones(FEEDS), [commit.manifest for commit in commits]) == []


A, B, C = (radar_segment(3, first_track=n) for n in (0, 100, 200))
