"""Carry out a plan of the ledger: reconcile the subscriber, send new entries, and return the outcomes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from sda_platform import failpoints
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.epochs import (
    closings,
    corrections,
    epoch_of,
    first_counts,
    inherited_rows,
    next_counts,
    unknown_open,
    withdrawals,
)
from sda_platform.delivery.ledger import ledger
from sda_platform.delivery.outbox import DeliveryBatch, planned_batches
from sda_platform.delivery.reconciliation import counts_of, foreign_entries, reconcile
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan


@dataclass(frozen=True)
class Dispatched:
    """The rows of the ledger's commit, and its metadata for the UI."""

    rows: pa.Table
    counts: Mapping[str, int]
    facts: Mapping[str, object]


def begin_epoch(store: Lake, plan: Plan, subscriber: Subscriber) -> Dispatched | None:
    """Plan the ledger commit of a new epoch, if ``subscriber`` holds entries that this lake did not deliver.

    To be committed under `epochs.recording`; the delivery is then planned anew.
    """
    batches, _ = _pending(store, plan, subscriber)
    foreign, mark = foreign_entries(store, plan, subscriber, batches)
    if not foreign:
        return None
    counts = first_counts(plan, foreign)
    rows = inherited_rows(foreign, subscriber.name, plan.as_of_ns)
    facts = {"subscriber": subscriber.name, "inherited": len(foreign), "epoch": counts["epoch"]}
    return Dispatched(rows, {**counts, **counts_of(mark)}, facts)


def dispatch(store: Lake, plan: Plan, subscriber: Subscriber) -> Dispatched:
    """Carry out ``plan`` up to its commit; to be repeated after any doubt. Without rows there is nothing to commit."""
    batches, still_open = _pending(store, plan, subscriber)
    failpoints.hit("delivery.planned")
    reconciled = reconcile(store, plan, subscriber, batches)
    outcomes = [outcome for batch in batches for outcome in batch.send(subscriber)]
    failpoints.hit("delivery.answered")
    causes = [batch.cause for batch in batches for _ in batch.entries]
    of_alerts = Counter(outcome for cause, outcome in zip(causes, outcomes, strict=True) if cause == "alert")
    return Dispatched(
        rows=ledger(batches, outcomes, subscriber=subscriber.name, as_of_ns=plan.as_of_ns),
        counts={
            "sent": of_alerts.total(),
            "refused": of_alerts["refused"],
            **next_counts(plan, still_open),
            **counts_of(reconciled.mark_after),
        },
        facts={"subscriber": subscriber.name, "outcomes": dict(Counter(outcomes)), **reconciled.facts()},
    )


def _pending(store: Lake, plan: Plan, subscriber: Subscriber) -> tuple[list[DeliveryBatch], int]:
    """Return the batches to send, in order, and how many inherited alerts stay open that the correction log does not
    have.
    """
    epoch = epoch_of(plan.previous)
    alerts = store.new_rows(plan, CONJUNCTION_ALERTS)
    before = partial(withdrawals, store, plan, subscriber)
    unknown = unknown_open(store, plan)
    closed = closings(store, plan, subscriber, unknown)
    ours = planned_batches(subscriber.name, alerts, epoch, before)
    gone = {entry.alert_id for batch in ours for entry in batch.entries[: batch.withdrawals]}
    closed = [batch for batch in closed if batch.entries[0].alert_id not in gone]
    still_open = {each.stamp.alert_id for each in unknown} - gone - {b.entries[0].alert_id for b in closed}
    return [*corrections(store, plan, subscriber), *ours, *closed], len(still_open)
