"""Checks of the tables of package fusion."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.clock import iso
from sda_platform.formats.closures import Closure, usable_closures
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.silence import heard_by_now, silent_now
from sda_platform.fusion.sources import AWAITED, HEARD
from sda_platform.fusion.tables import FUSED_TRACKS, TRACK_MEMORY_NS
from sda_platform.fusion.watermarks import PIPELINE, first_open_window
from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.refused_rows import excused
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.list_settings import ClosureFile
from sda_platform.orbits.earth_parameters import published_span_ns
from sda_platform.orbits.sensing.sensors import SensorNetwork
from sda_platform.orchestration.backlog import Backlog, backlog_of
from sda_platform.orchestration.materialization import outcome_text
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.orchestration.step_order import AFTER_ALERTS
from sda_platform.orchestration.warning import warning
from sda_platform.recovery.verification import consumed_rows, current_keys, reviewed_span
from sda_platform.units import DAY_NS, SECOND_NS

# Watermarks trail by the slowest source's bound (optical, 30 s); beyond 120 s eviction stalls.
MAX_WATERMARK_LAG_S = 120.0
_PUBLISHED_AHEAD_NS = 30 * DAY_NS


@dg.asset_check(
    asset=FUSED_TRACKS.name,
    description="Every kind of source has reported, and no source is silent for longer than its feed allows.",
    op_tags=AFTER_ALERTS,
)
def sources_report(
    lake: LakeResource, landing: LandingResource, fusion: FusionResource, tasking: dg.ResourceParam[ClosureFile]
) -> dg.AssetCheckResult:
    """Lists kinds that never reported, which hold all windows open, and sensors that are silent and not closed."""
    wall_s = time.time()  # deterministic: a check, of no row
    backlogs = {feed.name: backlog_of(landing.zone(feed.name), wall_s) for feed in OBSERVATION_FEEDS}
    return check_silent_sensors(lake.open(), backlogs, fusion.network(), usable_closures(tasking.closure_file))


def check_silent_sensors(
    store: Lake,
    backlogs: Mapping[str, Backlog] | None = None,
    sensors: SensorNetwork | None = None,
    closures: Iterable[Closure] = (),
) -> dg.AssetCheckResult:
    """Return the outcome of `sources_report` now, by the rule of the vital, with the ``backlogs`` of landing zones."""
    now_ns = store.clock.now_ns()
    heard = heard_by_now(store, now_ns)
    silent = silent_now(store, heard, backlogs or {}, now_ns, sensors=sensors, closures=closures)
    found = [each.describe(now_ns) for each in silent]
    text = found[0] if found else None
    if len(silent) > 1:
        longest = max(silent, key=lambda each: each.lasted_s(now_ns))
        text = f"{len(silent)} sources silent, longest {longest.source} for {longest.lasted_s(now_ns):,.0f} s"
    return dg.AssetCheckResult(
        passed=not found,
        severity=dg.AssetCheckSeverity.ERROR,
        description=outcome_text(text or ""),
        metadata={"silent": len(found), **({"sources": found[:50]} if found else {})},
    )


@dg.asset_check(
    asset=FUSED_TRACKS.name,
    description="Windows close in time, so that open ones hold no more than (window + lateness) × rate observations.",
    op_tags=AFTER_ALERTS,
)
def state_is_bounded(lake: LakeResource, fusion: FusionResource) -> dg.AssetCheckResult:
    """The span of event time that is still open, and the observations in it."""
    return check_open_state(lake.open(), fusion)


def check_open_state(store: Lake, fusion: FusionResource) -> dg.AssetCheckResult:
    """Return the outcome of `state_is_bounded`: compares the open span, up to the newest event, with its limit.

    The limit is window + allowed lateness + the slowest kind's own lateness. To this come one window for alignment, and
    the idle time of a kind that has just become silent.
    """
    commit, lateness = store.log(FUSED_TRACKS).head().commit, fusion.lateness
    marks = commit.manifest.watermarks if commit else {}
    newest_ns = max((at for name, at in marks.items() if name.startswith(HEARD)), default=0)
    open_from_ns = min((at for name, at in marks.items() if name.startswith(AWAITED)), default=newest_ns)
    if PIPELINE in marks:
        open_from_ns = first_open_window(marks[PIPELINE], fusion.window_ns, lateness)
    promised_ns = 2 * fusion.window_ns + lateness.allowed_ns + lateness.idle_after_ns + max(lateness.bound_ns.values())
    open_s, promised_s = (span / SECOND_NS for span in (newest_ns - open_from_ns, promised_ns))
    facts: dict[str, Any] = {"open_s": open_s, "promised_s": promised_s, "open_from": iso(open_from_ns)}
    if open_s > promised_s:
        description = f"{open_s:,.0f} s of observations are open, the limit is {promised_s:g} s"
        return dg.AssetCheckResult(
            passed=False, severity=dg.AssetCheckSeverity.WARN, description=outcome_text(description), metadata=facts
        )
    held = store.log(OBSERVATIONS).rows(["sensor_time_ns"], ds.field("sensor_time_ns") >= open_from_ns).num_rows
    rate = held / open_s if open_s else 0.0
    return dg.AssetCheckResult(passed=True, metadata={**facts, "open_observations": held, "observations_per_s": rate})


@dg.asset_check(
    asset=FUSED_TRACKS.name,
    description="The Earth's orientation (UT1, polar motion) is published for a month from now.",
    op_tags=AFTER_ALERTS,
)
def earth_orientation_is_published(lake: LakeResource) -> dg.AssetCheckResult:
    """Warns a month before the installed data end: from then on sites turn by the last published value."""
    return check_earth_orientation(lake.open().clock.now_ns())


def check_earth_orientation(now_ns: int) -> dg.AssetCheckResult:
    """Return the outcome of `earth_orientation_is_published` at a time."""
    last_ns = published_span_ns()[1]
    is_near = now_ns + _PUBLISHED_AHEAD_NS > last_ns
    remedy = "update the package astropy-iers-data, else sites turn by its last value"
    return warning([f"the Earth's orientation is known until {iso(last_ns)}: {remedy}"] if is_near else [])


def insignificant_corrections(_store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Texts of applied corrections that are no larger than their uncertainty."""
    rows = log.rows_of(reviewed_span(commits), ["source_id", "offset_s", "correction_sigma_s", "is_applied"])
    prior_sigma_s = pc.fill_null(rows["correction_sigma_s"], float("inf"))
    unsure = rows.filter(pc.and_(rows["is_applied"], pc.less_equal(pc.abs(rows["offset_s"]), prior_sigma_s)))
    names = sorted(set(unsure["source_id"].to_pylist()))
    return [f"sensors corrected by insignificant biases: {', '.join(names)}"] if names else []


def stale_tracks(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Texts of tracks that are older than the newest current window fit of their object.

    Compares the current view, for the objects whose windows these commits consumed.
    """
    head = log.head()
    window = head.commit.manifest.window(FUSED_TRACKS.name) if head.commit else None
    written = consumed_rows(store, commits, FUSED_TRACKS, ["window_start_ns"])
    if head.commit is None or window is None or not written.num_rows:
        return []
    since_ns = max(pc.min(written["window_start_ns"]).as_py(), head.commit.manifest.as_of_ns - TRACK_MEMORY_NS)
    where = (ds.field("window_start_ns") >= since_ns) & (ds.field(COMMIT_SEQUENCE) <= window.upto_sequence)
    current = current_keys(store.log(FUSED_TRACKS), ["norad_id", "epoch_time_ns"], where=where)
    newest = current.group_by("norad_id").aggregate([("epoch_time_ns", "max")])
    tracks = log.rows(["norad_id", "epoch_time_ns"], version=head.version)
    both = newest.join(tracks, "norad_id", join_type="left outer")
    same = pc.fill_null(pc.equal(both["epoch_time_ns"], both["epoch_time_ns_max"]), False)
    older = both.filter(pc.invert(same)).sort_by("norad_id")["norad_id"]
    wrong = excused(log, commits, "norad_id", older).to_pylist()
    return [f"{len(wrong)} objects have newer windows than their tracks, such as {wrong[0]}"] if wrong else []
