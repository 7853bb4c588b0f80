"""Backlog: what waits in a landing zone for the next batch, and the check that it does not wait too long."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from sda_platform.lake.table import Table
from sda_platform.landing.segments import WaitingSegment
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.resources import LandingResource
from sda_platform.orchestration.step_order import AFTER_ALERTS
from sda_platform.orchestration.warning import warning


@dataclass(frozen=True)
class Backlog:
    """Segments that wait, their bytes, and wall seconds since the first of them came (None: none waits)."""

    segments: int
    bytes: int
    oldest_s: float | None

    @property
    def metadata(self) -> dict[str, Any]:
        """The backlog as metadata of an event in the UI."""
        facts = {"backlog_segments": self.segments, "backlog_bytes": self.bytes}
        return facts if self.oldest_s is None else {**facts, "backlog_oldest_s": self.oldest_s}

    def __str__(self) -> str:
        age = "" if self.oldest_s is None else f", the oldest for {self.oldest_s:,.0f} s"
        waits = "segment waits" if self.segments == 1 else "segments wait"
        return f"{self.segments:,} {waits} ({self.bytes:,} bytes){age}"


def measured(waiting: Sequence[WaitingSegment], wall_s: float) -> Backlog:
    """Return the backlog that these segments are at the wall time ``wall_s``."""
    oldest_s = max((wall_s - segment.came_s for segment in waiting), default=None)
    return Backlog(len(waiting), sum(segment.bytes for segment in waiting), oldest_s)


def backlog_of(zone: LandingZone, wall_s: float) -> Backlog:
    """Return the backlog of ``zone``; reads the directory only, no file."""
    return measured(zone.waiting(zone.pending_names()), wall_s)


def backlog_check(table: Table) -> dg.AssetChecksDefinition:
    """Return the check of ``table`` that nothing waits in its zones for longer than the setting allows."""

    @dg.asset_check(
        asset=table.name,
        name="backlog",
        description="No segment has been pending in a landing zone for too long.",
        op_tags=AFTER_ALERTS,
    )
    def backlog(landing: LandingResource) -> dg.AssetCheckResult:
        wall_s, max_age_s = time.time(), landing.backlog_max_age_s
        found = {zone.feed: backlog_of(zone, wall_s) for zone in landing.zones(table.zones)}
        late = {feed: each for feed, each in found.items() if (each.oldest_s or 0.0) > max_age_s}
        facts = {f"{feed}_{name}": value for feed, each in found.items() for name, value in each.metadata.items()}
        return warning([f"{feed}: {each}" for feed, each in late.items()], {"max_age_s": max_age_s, **facts})

    return backlog
