"""The asset of delivery: conjunction_alerts → the subscriber → alert_deliveries."""

from typing import Any

import dagster as dg

from sda_platform.delivery.checks import deliveries_balance
from sda_platform.delivery.dispatch import begin_epoch, dispatch
from sda_platform.delivery.epochs import recording
from sda_platform.delivery.replay_subscriber import replay_subscriber
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.orchestration.declarations import table_asset
from sda_platform.orchestration.jobs import ALERTS_TO_SUBSCRIBER, CATALOG_TO_ALERTS, OBSERVATIONS_TO_ALERTS
from sda_platform.orchestration.materialization import materialized, nothing_new
from sda_platform.orchestration.resources import LakeResource


@table_asset(
    ALERT_DELIVERIES,
    jobs=[ALERTS_TO_SUBSCRIBER, OBSERVATIONS_TO_ALERTS, CATALOG_TO_ALERTS],
    balance=[deliveries_balance],
    priority=10,
    stand_ins=replay_subscriber,
)
def alert_deliveries(lake: LakeResource, subscriber: dg.ResourceParam[Subscriber]) -> dg.MaterializeResult[Any]:
    """Every alert entry that the subscriber confirmed, exactly once.

    The alerts of one commit are one batch, whichever plan sends them. The subscriber records it with its entries in one
    transaction. A batch sent again after a crash gets its first answer, so ledger and receipts agree. Entries
    that the subscriber lost are sent again. A subscriber that holds what this lake did not deliver begins an epoch.
    """
    store = lake.open()
    plan = store.plan(ALERT_DELIVERIES)
    begun = begin_epoch(store, plan, subscriber)
    if begun:
        store.append(recording(plan), begun.rows, counts=begun.counts)
        plan = store.plan(ALERT_DELIVERIES)
    done = dispatch(store, plan, subscriber)
    if plan.is_empty and not done.rows.num_rows:
        return nothing_new(store, plan, **done.facts)
    receipt = store.append(plan, done.rows, counts=done.counts)
    return materialized(store, receipt, **done.facts)
