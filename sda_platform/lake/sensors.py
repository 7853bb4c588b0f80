"""Landing sensors: what waits in the zones becomes one run of a lane.

A tick lists file names: milliseconds, no JVM. Correctness does not depend on the run key — the table's log decides
what is new — so a tick may be lost or repeated. The run key is the batch's hash and an attempt: Dagster never runs a
key twice, so a failed batch needs a new attempt (`lake.attempts`).
"""

import hashlib
import time
from collections.abc import Sequence
from typing import Any

import dagster as dg

from sda_platform import faults
from sda_platform.lake.attempts import (
    ATTEMPT_TAG,
    BATCH_TAG,
    ZONE_TAG,
    Attempts,
    coming_run,
    unfinished_batch,
)
from sda_platform.lake.landing import LandingZone
from sda_platform.lake.resource import LandingResource
from sda_platform.lake.spark import LANE_TAG

_SHOWN = 3


def landing_sensor(feed: str, job: Any, lane: str, interval_s: int) -> dg.SensorDefinition:
    """The sensor of one landing zone; running from the start, because a platform that needs toggling does nothing."""

    @dg.sensor(
        name=f"{feed}_landing",
        job=job,
        minimum_interval_seconds=interval_s,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Starts a run of the {lane} lane when sealed segments wait in landing/{feed}.",
    )
    def sensor(context: dg.SensorEvaluationContext, landing: LandingResource) -> dg.SensorResult | dg.SkipReason:
        return request_landing(context, landing.zone(feed), job.name, lane)

    return sensor


def request_landing(
    context: dg.SensorEvaluationContext, zone: LandingZone, job_name: str, lane: str, *, wall_s: float | None = None
) -> dg.SensorResult | dg.SkipReason:
    """One run of ``lane`` for what waits in ``zone``, unless a run that will take it is on its way.

    A run that failed after it had emptied the zone left its work further down: it is asked for again as well.
    """
    names = zone.pending_names()
    batch = batch_hash(zone.pending_marks()) if names else unfinished_batch(context.instance, lane, zone.feed)
    if batch is None:
        return dg.SkipReason(f"{zone.feed}: no sealed segment is pending")
    waiting = f"{_described(names)} pending" if names else "no sealed segment is pending, but the last run failed"
    coming = coming_run(context.instance, lane, batch)
    if coming:
        return dg.SkipReason(f"{zone.feed}: {waiting}; run {coming[:8]} will take them")
    attempts = Attempts.of(context.instance, batch)
    refusal = attempts.refusal(time.time() if wall_s is None else wall_s)
    if refusal:
        return dg.SkipReason(f"{zone.feed}: {waiting}; {refusal}")
    attempt = attempts.made + 1
    tags = {LANE_TAG: lane, ZONE_TAG: zone.feed, BATCH_TAG: batch, ATTEMPT_TAG: str(attempt)}
    arrived = dg.AssetObservation(
        asset_key=["landing", zone.feed],
        metadata={"pending_segments": len(names), "newest": names[-1] if names else "none", "batch": batch},
    )
    faults.reach("sensor.decided")
    return dg.SensorResult(
        [dg.RunRequest(run_key=f"{batch}:{attempt}", job_name=job_name, tags=tags)],
        asset_events=[arrived] if attempt == 1 else [],
    )


def batch_hash(marks: Sequence[str]) -> str:
    """Identity of a set of waiting segments, by name and arrival."""
    return hashlib.sha256("\n".join(sorted(marks)).encode()).hexdigest()[:16]


def _described(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"{len(names)} segment{'s' if len(names) != 1 else ''} ({shown})"
