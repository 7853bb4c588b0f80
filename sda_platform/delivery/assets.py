"""Asset of the delivery room: conjunction_alerts → the subscriber → alert_deliveries."""

from collections import Counter
from typing import Any

import dagster as dg

from sda_platform import faults
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery import outbox
from sda_platform.delivery.reconciliation import counts_of, reconcile
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.assets import materialized, nothing_new, table_asset
from sda_platform.lake.resource import LakeResource


@table_asset(ALERT_DELIVERIES, deps=[CONJUNCTION_ALERTS.name], priority=10)
def alert_deliveries(lake: LakeResource, subscriber: dg.ResourceParam[Subscriber]) -> dg.MaterializeResult[Any]:
    """Every alert entry that the subscriber confirmed, exactly once.

    The subscriber records the batch with its entries in one transaction; a batch sent again after a crash gets its
    first answer, so the ledger and the subscriber cannot disagree. What the subscriber lost is sent to it again.
    """
    store = lake.open()
    plan = store.plan(ALERT_DELIVERIES, consume=[CONJUNCTION_ALERTS])
    alerts = store.new_rows(plan, CONJUNCTION_ALERTS)
    batch = outbox.planned_batch(plan, subscriber.name, alerts)
    faults.reach("delivery.planned")
    reconciled = reconcile(store, plan, subscriber, batch)
    if plan.is_empty:
        return nothing_new(store, plan, subscriber=subscriber.name, **reconciled.facts())
    outcomes = batch.send(subscriber)
    faults.reach("delivery.answered")
    rows = outbox.ledger(alerts, batch, outcomes, subscriber=subscriber.name, as_of_ns=plan.as_of_ns)
    told = reconciled.told + outbox.mark_change(batch.entries)
    receipt = store.append(plan, store.frame(ALERT_DELIVERIES, rows), counts={"sent": len(outcomes), **counts_of(told)})
    facts = {"outcomes": dict(Counter(outcomes)), **reconciled.facts()}
    return materialized(store, receipt, subscriber=subscriber.name, **facts)
