"""What a plan of the ledger does: mend what the subscriber lost, send what is new, and say what became of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from sda_platform import faults
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.outbox import ledger, planned_batches
from sda_platform.delivery.reconciliation import counts_of, reconcile
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan


@dataclass(frozen=True)
class Dispatched:
    """What the ledger's commit will hold, and what a person is told."""

    rows: pa.Table
    counts: Mapping[str, int]
    facts: Mapping[str, object]


def dispatch(store: Lake, plan: Plan, subscriber: Subscriber) -> Dispatched:
    """Carry out ``plan`` up to its commit; to be repeated after any doubt."""
    alerts = store.new_rows(plan, CONJUNCTION_ALERTS)
    batches = planned_batches(subscriber.name, alerts)
    faults.reach("delivery.planned")
    reconciled = reconcile(store, plan, subscriber, batches)
    outcomes = [outcome for batch in batches for outcome in batch.send(subscriber)]
    faults.reach("delivery.answered")
    return Dispatched(
        rows=ledger(alerts, batches, outcomes, subscriber=subscriber.name, as_of_ns=plan.as_of_ns),
        counts={"sent": len(outcomes), **counts_of(reconciled.told_after)},
        facts={"subscriber": subscriber.name, "outcomes": dict(Counter(outcomes)), **reconciled.facts()},
    )
