"""The asset of delivery: conjunction_alerts → the subscriber → alert_deliveries."""

from typing import Any

import dagster as dg

from sda_platform.delivery.dispatch import adopt, dispatch
from sda_platform.delivery.inheritance import recording
from sda_platform.delivery.replay_subscriber import replay_subscriber
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.orchestration.jobs import ALERTS_TO_SUBSCRIBER, CATALOG_TO_ALERTS, OBSERVATIONS_TO_ALERTS
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.table_asset import materialized, nothing_new, table_asset


@table_asset(
    ALERT_DELIVERIES,
    jobs=[ALERTS_TO_SUBSCRIBER, OBSERVATIONS_TO_ALERTS, CATALOG_TO_ALERTS],
    priority=10,
    stand_ins=replay_subscriber,
)
def alert_deliveries(lake: LakeResource, subscriber: dg.ResourceParam[Subscriber]) -> dg.MaterializeResult[Any]:
    """Every alert entry that the subscriber confirmed, exactly once.

    The alerts of one commit are one batch, whichever plan sends them. The subscriber records it with its entries in one
    transaction. A batch sent again after a crash gets its first answer, so ledger and receipts agree. Entries
    that the subscriber lost are sent again.
    """
    store = lake.open()
    plan = store.plan(ALERT_DELIVERIES)
    earlier = adopt(store, plan, subscriber)
    if earlier:
        store.append(recording(plan), earlier.rows, counts=earlier.counts)
        plan = store.plan(ALERT_DELIVERIES)
    done = dispatch(store, plan, subscriber)
    if plan.is_empty:
        return nothing_new(store, plan, **done.facts)
    receipt = store.append(plan, done.rows, counts=done.counts)
    return materialized(store, receipt, **done.facts)
