"""Asset of the delivery room: conjunction_alerts → the subscriber → alert_deliveries."""

from collections import Counter
from typing import Any

import dagster as dg

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery import outbox
from sda_platform.delivery.resource import SubscriberResource
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.assets import materialized, nothing_new, table_asset
from sda_platform.lake.resource import LakeResource


@table_asset(ALERT_DELIVERIES, deps=[CONJUNCTION_ALERTS.name], priority=10)
def alert_deliveries(lake: LakeResource, subscriber: SubscriberResource) -> dg.MaterializeResult[Any]:
    """Every alert entry that the subscriber confirmed, exactly once.

    The subscriber records the batch with its entries in one transaction; a batch sent again after a crash gets its
    first answer, so the ledger and the subscriber cannot disagree.
    """
    store, receiver = lake.open(), subscriber.open()
    plan = store.plan(ALERT_DELIVERIES, consume=[CONJUNCTION_ALERTS])
    if plan.is_empty:
        return nothing_new(store, plan)
    alerts = store.new_rows(plan, CONJUNCTION_ALERTS)
    batch = outbox.batch_id(plan, receiver.name)
    sent = outbox.entries(alerts)
    outcomes = receiver.apply(batch, sent)
    rows = outbox.ledger(alerts, sent, outcomes, batch=batch, subscriber=receiver.name, as_of_ns=plan.as_of_ns)
    receipt = store.append(plan, store.frame(ALERT_DELIVERIES, rows), counts={"sent": len(sent)})
    return materialized(store, receipt, subscriber=receiver.name, outcomes=dict(Counter(outcomes)))
