"""What must hold for the fusion room's tables."""

from typing import Any

import dagster as dg
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.clock import NANOSECONDS_PER_SECOND, iso
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.sources import silences
from sda_platform.fusion.tables import FIRST_OPEN_WINDOW, FUSED_TRACKS
from sda_platform.fusion.watermarks import PIPELINE
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.checks import DataFreshness, table_checks
from sda_platform.lake.freshness import watermark
from sda_platform.lake.lake import Lake
from sda_platform.lake.resource import LakeResource
from sda_platform.lake.verification import broken_journals

# Watermarks trail by the slowest source's bound (optical, 30 s); beyond 120 s eviction stalls (DP3-O5).
MAX_WATERMARK_LAG_S = 120.0


@dg.asset_check(
    asset=FUSED_TRACKS.name,
    description="Every kind of source has reported, and no source is silent for longer than a healthy one would be.",
)
def sources_report(lake: LakeResource) -> dg.AssetCheckResult:
    """Names the dead: a kind that never reported holds all windows open, a sensor that fell silent sees nothing."""
    return told_silences(lake.open())


def told_silences(store: Lake) -> dg.AssetCheckResult:
    """The outcome of `sources_report` for the newest commit, at the mission clock's time."""
    commit, now_ns = store.log(FUSED_TRACKS).head().commit, store.clock.now_ns()
    found = [each.told(now_ns) for each in silences(commit.checkpoint.watermarks if commit else {}, now_ns)]
    return dg.AssetCheckResult(
        passed=not found,
        severity=dg.AssetCheckSeverity.ERROR,
        description="; ".join(found)[:1000] or None,
        metadata={"silent": len(found), **({"sources": found[:50]} if found else {})},
    )


@dg.asset_check(
    asset=FUSED_TRACKS.name,
    description="Windows close in time, so that open ones hold no more than (window + lateness) × rate observations.",
)
def state_is_bounded(lake: LakeResource, fusion: FusionResource) -> dg.AssetCheckResult:
    """The span of event time that is still open, and the observations in it (DP3-Q5, I21)."""
    return told_state(lake.open(), fusion)


def told_state(store: Lake, fusion: FusionResource) -> dg.AssetCheckResult:
    """The outcome of `state_is_bounded`: what is open ends at the newest observation, and is as long as promised.

    The promise is window + allowed lateness + the slowest kind's own lateness; one window more for alignment, and the
    idle time for a kind that has just fallen silent.
    """
    commit = store.log(FUSED_TRACKS).head().commit
    marks = commit.checkpoint.watermarks if commit else {}
    if FIRST_OPEN_WINDOW not in marks:
        return dg.AssetCheckResult(passed=True, metadata={"open_observations": 0})
    observed = store.log(OBSERVATIONS).rows(["sensor_time_ns"], ds.field("sensor_time_ns") >= marks[FIRST_OPEN_WINDOW])[
        "sensor_time_ns"
    ]
    lateness = fusion.lateness
    promised_ns = 2 * fusion.window_ns + lateness.allowed_ns + lateness.idle_after_ns + max(lateness.bound_ns.values())
    ends = pc.min_max(observed).as_py()
    oldest_ns, newest_ns = ends["min"] or 0, ends["max"] or 0
    open_s, promised_s = (newest_ns - oldest_ns) / NANOSECONDS_PER_SECOND, promised_ns / NANOSECONDS_PER_SECOND
    facts: dict[str, Any] = {
        "open_observations": len(observed),
        "open_s": open_s,
        "promised_s": promised_s,
        "observations_per_s": len(observed) / open_s if open_s else 0.0,
        "open_from": iso(oldest_ns),
        "complete_up_to": iso(marks[PIPELINE]) if PIPELINE in marks else "a kind of source never reported",
    }
    passed = open_s <= promised_s
    return dg.AssetCheckResult(
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN,
        description=None
        if passed
        else f"{open_s:,.0f} s of observations are open, no more than {promised_s:g} s may be",
        metadata=facts,
    )


checks = [
    table_checks(
        FUSED_TRACKS,
        balance=[broken_journals],
        freshness=DataFreshness("the watermark keeps up", MAX_WATERMARK_LAG_S, watermark(PIPELINE)),
    ),
    sources_report,
    state_is_bounded,
]
