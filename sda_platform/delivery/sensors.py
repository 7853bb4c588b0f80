"""What delivers alerts that no other run will: those left in the outbox while the subscriber was away."""

import time

import dagster as dg

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.errors import LakeError
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.attempts import Attempts, unfinished_run
from sda_platform.orchestration.declarations import jobs_of
from sda_platform.orchestration.jobs import ALERTS_TO_SUBSCRIBER
from sda_platform.orchestration.resources import LakeResource

# At each round of Dagster's sensor loop, which takes five seconds.
_INTERVAL_S = 4


@dg.sensor(
    name="waiting_alerts",
    job_name=ALERTS_TO_SUBSCRIBER.name,
    minimum_interval_seconds=_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts a run for pending alerts when the subscriber answers and no other run will deliver them.",
)
def waiting_alerts(
    context: dg.SensorEvaluationContext, lake: LakeResource, subscriber: dg.ResourceParam[Subscriber]
) -> dg.RunRequest | dg.SkipReason:
    return request_delivery(context, lake.open(), subscriber)


def request_delivery(
    context: dg.SensorEvaluationContext, store: Lake, subscriber: Subscriber, *, wall_s: float | None = None
) -> dg.RunRequest | dg.SkipReason:
    """Request a run for pending entries, unless a run already delivers them or the subscriber is away."""
    running = unfinished_run(context.instance, [ALERT_DELIVERIES.name], jobs_of(ALERT_DELIVERIES))
    if running:
        return dg.SkipReason(f"run {running[:8]} is under way and will deliver what waits")
    commit = store.head(ALERT_DELIVERIES).commit
    window = commit.manifest.window(CONJUNCTION_ALERTS.name) if commit else None
    alerts = store.readable(CONJUNCTION_ALERTS)
    recorded, known = window.upto_sequence if window else 0, alerts.head.sequence
    if recorded >= known:
        return dg.SkipReason("no alert waits" + (f"; not to be read: {alerts.withheld}" if alerts.withheld else ""))
    waiting = f"alerts of {known - recorded} commits wait"
    batch = f"alerts {recorded}-{known}"
    attempts = Attempts.of(context.instance, ALERTS_TO_SUBSCRIBER, batch)
    refusal = attempts.refusal(time.time() if wall_s is None else wall_s)
    if refusal:
        return dg.SkipReason(f"{waiting}; {refusal}")
    try:
        subscriber.mark()
    except LakeError as error:
        return dg.SkipReason(f"{waiting}; {error}")
    return attempts.next_run(ALERTS_TO_SUBSCRIBER)
