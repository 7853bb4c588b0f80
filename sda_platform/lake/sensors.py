"""Landing sensors: what waits in the zones becomes one run of a lane.

A tick lists file names: milliseconds, no JVM. Correctness depends neither on the cursor nor on the run key — the
table's log decides what is new — so a tick may be lost or repeated. The run key is the batch's hash and an attempt:
Dagster never runs a key twice, so a failed batch needs a new attempt.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import dagster as dg

from sda_platform import faults
from sda_platform.lake.landing import LandingZone
from sda_platform.lake.resource import LandingResource
from sda_platform.lake.spark import LANE_TAG

_WAITING = (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING)
_UNFINISHED = (*_WAITING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)
_BATCH_TAG = "sda/batch"
_SHOWN = 3
MAX_ATTEMPTS = 5


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


@dataclass(frozen=True)
class Cursor:
    """What the last ticks asked for: a batch, how often, and by which run."""

    batch: str = ""
    attempt: int = 0

    @classmethod
    def parse(cls, text: str | None) -> "Cursor":
        """The cursor in ``text``; a fresh one where there is none or another version wrote it."""
        try:
            return cls(**json.loads(text)) if text else cls()
        except (TypeError, ValueError):
            return cls()

    def to_json(self) -> str:
        """The cursor as Dagster stores it."""
        return json.dumps(asdict(self))


def request_landing(
    context: dg.SensorEvaluationContext, zone: LandingZone, job_name: str, lane: str
) -> dg.SensorResult | dg.SkipReason:
    """One run of ``lane`` for what waits in ``zone``, unless a run that will take it is on its way."""
    names = zone.pending_names()
    if not names:
        return dg.SkipReason(f"{zone.feed}: no sealed segment is pending")
    batch = batch_hash(zone.pending_marks())
    coming = _coming_run(context.instance, lane, batch)
    if coming:
        return dg.SkipReason(f"{zone.feed}: {_described(names)} pending; run {coming[:8]} will take them")
    cursor = Cursor.parse(context.cursor)
    attempt = cursor.attempt + 1 if batch == cursor.batch else 1
    if attempt > MAX_ATTEMPTS:
        return dg.SkipReason(
            f"{zone.feed}: {_described(names)} pending, but {MAX_ATTEMPTS} runs left them there: look at the last "
            "run's error, then reset this sensor's cursor"
        )
    tags = {LANE_TAG: lane, "sda/zone": zone.feed, _BATCH_TAG: batch, "sda/attempt": str(attempt)}
    arrived = dg.AssetObservation(
        asset_key=["landing", zone.feed],
        metadata={"pending_segments": len(names), "newest": names[-1], "batch": batch},
    )
    faults.reach("sensor.decided")
    return dg.SensorResult(
        [dg.RunRequest(run_key=f"{batch}:{attempt}", job_name=job_name, tags=tags)],
        cursor=Cursor(batch, attempt).to_json(),
        asset_events=[arrived] if attempt == 1 else [],
    )


def _coming_run(instance: dg.DagsterInstance, lane: str, batch: str) -> str | None:
    """The run that will take what waits: one of the lane that has not begun, or one that was asked for this batch."""
    waiting = dg.RunsFilter(tags={LANE_TAG: lane}, statuses=list(_WAITING))
    working = dg.RunsFilter(tags={_BATCH_TAG: batch}, statuses=list(_UNFINISHED))
    records = instance.get_run_records(waiting, limit=1) or instance.get_run_records(working, limit=1)
    return records[0].dagster_run.run_id if records else None


def batch_hash(marks: Sequence[str]) -> str:
    """Identity of a set of waiting segments, by name and arrival."""
    return hashlib.sha256("\n".join(sorted(marks)).encode()).hexdigest()[:16]


def _described(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"{len(names)} segment{'s' if len(names) != 1 else ''} ({shown})"
