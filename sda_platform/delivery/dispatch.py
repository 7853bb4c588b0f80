"""Carry out a plan of the ledger: reconcile the subscriber, send new entries, and return the outcomes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from sda_platform import failpoints
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.inheritance import counts_of_first, first_sequence, inherited, inherited_rows, withdrawals
from sda_platform.delivery.outbox import ledger, planned_batches
from sda_platform.delivery.reconciliation import counts_of, reconcile
from sda_platform.delivery.subscriber import Subscriber, mark_of
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan


@dataclass(frozen=True)
class Dispatched:
    """The rows of the ledger's commit, and its metadata for the UI."""

    rows: pa.Table
    counts: Mapping[str, int]
    facts: Mapping[str, object]


def adopt(store: Lake, plan: Plan, subscriber: Subscriber) -> Dispatched | None:
    """What the ledger must record before its first delivery: what ``subscriber`` holds of an earlier lake, if anything.

    To be committed under `inheritance.recording`; the delivery is then planned anew.
    """
    held = inherited(store, plan, subscriber)
    if not held:
        return None
    rows, counts = inherited_rows(held, subscriber.name, plan.as_of_ns)
    mark = mark_of(entry.key for entry in held)
    return Dispatched(rows, {**counts, **counts_of(mark)}, {"subscriber": subscriber.name, "inherited": len(held)})


def dispatch(store: Lake, plan: Plan, subscriber: Subscriber) -> Dispatched:
    """Carry out ``plan`` up to its commit; to be repeated after any doubt."""
    alerts = store.new_rows(plan, CONJUNCTION_ALERTS)
    first = first_sequence(plan.previous)
    batches = planned_batches(subscriber.name, alerts, first, partial(withdrawals, store, first, subscriber))
    failpoints.hit("delivery.planned")
    reconciled = reconcile(store, plan, subscriber, batches)
    outcomes = [outcome for batch in batches for outcome in batch.send(subscriber)]
    failpoints.hit("delivery.answered")
    return Dispatched(
        rows=ledger(batches, outcomes, subscriber=subscriber.name, as_of_ns=plan.as_of_ns),
        counts={"sent": len(outcomes), **counts_of_first(first), **counts_of(reconciled.mark_after)},
        facts={"subscriber": subscriber.name, "outcomes": dict(Counter(outcomes)), **reconciled.facts()},
    )
