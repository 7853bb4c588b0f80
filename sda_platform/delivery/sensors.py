"""What delivers alerts that no other run will: those left in the outbox while the subscriber was away."""

import time
from typing import Any

import dagster as dg

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.errors import LakeError
from sda_platform.lake.failures.attempts import Attempts, unfinished_run
from sda_platform.lake.lake import Lake
from sda_platform.lake.resource import LakeResource

LANE = "delivery"
DELIVERING_LANES = ("hot", "catalog", LANE)
_INTERVAL_S = 5


def build_sensors(delivery_job: Any) -> list[dg.SensorDefinition]:
    """The sensor of the outbox."""

    @dg.sensor(
        name="waiting_alerts",
        job=delivery_job,
        minimum_interval_seconds=_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Delivers the alerts that wait, once the subscriber answers and no other run is about to.",
    )
    def waiting_alerts(
        context: dg.SensorEvaluationContext, lake: LakeResource, subscriber: dg.ResourceParam[Subscriber]
    ) -> dg.RunRequest | dg.SkipReason:
        return request_delivery(context, lake.open(), subscriber)

    return [waiting_alerts]


def request_delivery(
    context: dg.SensorEvaluationContext, store: Lake, subscriber: Subscriber, *, wall_s: float | None = None
) -> dg.RunRequest | dg.SkipReason:
    """One run for what waits in the outbox, unless a run is under way (it delivers) or the subscriber is away."""
    running = unfinished_run(context.instance, DELIVERING_LANES)
    if running:
        return dg.SkipReason(f"run {running[:8]} is under way and will deliver what waits")
    commit = store.head(ALERT_DELIVERIES).commit
    window = commit.checkpoint.window(CONJUNCTION_ALERTS.name) if commit else None
    alerts = store.readable(CONJUNCTION_ALERTS)
    told, known = window.upto_sequence if window else 0, alerts.head.sequence
    if told >= known:
        return dg.SkipReason("no alert waits" + (f"; not to be read: {alerts.withheld}" if alerts.withheld else ""))
    waiting = f"alerts of {known - told} commits wait"
    batch = f"alerts {told}-{known}"
    attempts = Attempts.of(context.instance, batch)
    refusal = attempts.refusal(time.time() if wall_s is None else wall_s)
    if refusal:
        return dg.SkipReason(f"{waiting}; {refusal}")
    try:
        subscriber.mark()
    except LakeError as error:
        return dg.SkipReason(f"{waiting}; {error}")
    return attempts.next_run(LANE)
