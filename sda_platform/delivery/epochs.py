"""Epochs: what a subscriber holds that this lake did not deliver, when a restored or rebuilt lake delivers to it.

A lake that lost commits decides anew, and its new entries may have the keys of lost ones with other content. So the
next epoch begins when the subscriber holds an entry that the ledger and the pending batches do not have. No
person has to report the restore:

1. One commit of the ledger, which consumes nothing, records these entries as `inherited` and the new epoch. Every
   later entry belongs to the new epoch, so the subscriber applies it.
2. An inherited alert that the correction log has is corrected at once: its last entry is sent in the new epoch.
3. An open inherited alert of the same encounter under another id is withdrawn in the batch that brings the new id.
4. An open inherited alert that the correction log still does not have after a full screening is withdrawn.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    SAME_EVENT_NS,
    SCREENED_FROM,
)
from sda_platform.delivery.ledger import INHERITED, Delivered, last_delivered, ledger_row, near
from sda_platform.delivery.outbox import DeliveryBatch, entries, named_batch
from sda_platform.delivery.subscriber import AlertEntry, Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.correction_log import INSERT, RETRACT
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import GENESIS, CommitManifest
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import Table

_EPOCH, _BEGAN_NS, _TO_CORRECT, _OPEN = "epoch", "epoch_began_ns", "to_correct", "inherited_open"


def epoch_of(ledger_head: CommitManifest | None) -> int:
    """Return the epoch of the entries that follow this commit of the ledger."""
    return ledger_head.counts.get(_EPOCH, 0) if ledger_head else 0


def inherited_open(ledger_head: CommitManifest | None) -> int:
    """Count the open inherited alerts that the correction log did not have at this commit of the ledger."""
    return ledger_head.counts.get(_OPEN, 0) if ledger_head else 0


def first_counts(plan: Plan, foreign: Sequence[AlertEntry]) -> dict[str, int]:
    """Return the counts with which the commit that records ``foreign`` entries begins the next epoch."""
    epoch = max(epoch_of(plan.previous), *(entry.epoch for entry in foreign)) + 1
    return {_EPOCH: epoch, _BEGAN_NS: plan.as_of_ns, _TO_CORRECT: len(foreign), _OPEN: len(foreign)}


def next_counts(plan: Plan, still_open: int) -> dict[str, int]:
    """Return the counts by which the epoch continues in the ledger's next manifest."""
    earlier = plan.previous.counts if plan.previous else {}
    carried = {name: earlier[name] for name in (_EPOCH, _BEGAN_NS) if name in earlier}
    return {**carried, _OPEN: still_open} if still_open else carried


def recording(plan: Plan) -> Plan:
    """``plan`` as one that consumes nothing."""
    known = {w.table: w for w in plan.previous.windows} if plan.previous else {}
    untouched = (
        replace(
            w,
            upto_sequence=w.after_sequence,
            upto_version=w.after_version,
            upto_sha256=known[w.table].upto_sha256 if w.table in known else GENESIS,
        )
        for w in plan.windows
    )
    return replace(plan, windows=tuple(untouched))


def inherited_rows(foreign: Sequence[AlertEntry], subscriber: str, as_of_ns: int) -> pa.Table:
    """Return the ledger's rows for what a subscriber holds of an earlier history."""
    rows = [
        ledger_row(entry, INHERITED, INHERITED, INHERITED, subscriber=subscriber, as_of_ns=as_of_ns)
        for entry in foreign
    ]
    return pa.Table.from_pylist(rows, schema=ALERT_DELIVERIES.content_schema)


def corrections(store: Lake, plan: Plan, subscriber: Subscriber) -> list[DeliveryBatch]:
    """Make the batch that begins an epoch: this history's last entry of each inherited alert that it has."""
    if plan.previous is None or not plan.previous.counts.get(_TO_CORRECT):
        return []
    inherited = [name for name, each in last_delivered(store, plan).items() if each.cause == INHERITED]
    chosen = ds.field("event_id").isin(pa.array(inherited, pa.string()))
    rows = store.log(CONJUNCTION_ALERTS).rows_of((0, plan.window(CONJUNCTION_ALERTS).after_sequence), where=chosen)
    epoch = epoch_of(plan.previous)
    last = {entry.alert_id: entry for entry in entries(rows, epoch)}
    name = f"{subscriber.name}|corrections of epoch {epoch}"
    return [named_batch(name, list(last.values()), "correction")] if last else []


def withdrawals(
    store: Lake, plan: Plan, subscriber: Subscriber, sent: Sequence[AlertEntry], commit: int
) -> list[AlertEntry]:
    """Retracts of open inherited alerts whose encounter ``sent``, the alerts of ``commit``, names otherwise.

    Equal in every attempt, because it follows from the ledger, the correction log up to the commit and the alerts
    themselves. One encounter: the same pair, and TCAs less than SAME_EVENT_NS apart.
    """
    fresh = [json.loads(e.body) for e in sent if e.epoch and (e.sequence, e.op) == (0, INSERT)]
    if not fresh:
        return []
    times = [alert["tca_time_ns"] for alert in fresh]
    found = []
    for each in _unknown(store, _open(last_delivered(store, plan, near(min(times), max(times)))), commit):
        for held in subscriber.held(each.stamp.alert_id):
            earlier = json.loads(held.body)
            if held.sequence == each.stamp.sequence and any(_one_encounter(earlier, alert) for alert in fresh):
                found.append(_retract(held, epoch_of(plan.previous)))
    return sorted(found, key=lambda entry: entry.alert_id)


def unknown_open(store: Lake, plan: Plan) -> list[Delivered]:
    """Return the open inherited alerts whose TCA is ahead and which the correction log does not have with ``plan``."""
    if not inherited_open(plan.previous):
        return []
    ahead = last_delivered(store, plan, ds.field("tca_time_ns") > plan.as_of_ns)
    return _unknown(store, _open(ahead), plan.window(CONJUNCTION_ALERTS).upto_sequence)


def closings(store: Lake, plan: Plan, subscriber: Subscriber, unknown: Sequence[Delivered]) -> list[DeliveryBatch]:
    """A retract of each of the ``unknown`` alerts, once this history has screened everything since the epoch began.

    Each is a batch of its own, because a repeated attempt may find fewer or more of them.
    """
    if not unknown or plan.previous is None or not _has_screened(store, plan.previous.counts.get(_BEGAN_NS, 0)):
        return []
    epoch = epoch_of(plan.previous)
    return [
        named_batch(f"{subscriber.name}|closed in epoch {epoch}", [_retract(held, epoch)], "withdrawal")
        for each in unknown
        for held in subscriber.held(each.stamp.alert_id)
    ]


def _open(delivered: Mapping[str, Delivered]) -> list[Delivered]:
    return [each for each in delivered.values() if each.cause == INHERITED and each.stamp.op == INSERT]


def _unknown(store: Lake, delivered: Sequence[Delivered], commit: int) -> list[Delivered]:
    """Return the entries ``delivered`` that the correction log does not have up to ``commit``."""
    if not delivered:
        return []
    chosen = ds.field("event_id").isin(pa.array([each.stamp.alert_id for each in delivered], pa.string()))
    known = store.log(CONJUNCTION_ALERTS).rows_of((0, commit), ["event_id"], where=chosen).column("event_id")
    return [each for each in delivered if each.stamp.alert_id not in set(known.to_pylist())]


def _has_screened(store: Lake, since_ns: int) -> bool:
    """Return whether a full screening that began after ``since_ns`` (mission time) has reached the alerts."""
    candidates = store.head(CONJUNCTION_CANDIDATES).commit
    if candidates is None or candidates.manifest.watermarks.get(SCREENED_FROM, 0) <= since_ns:
        return False
    chain = (CONJUNCTION_CANDIDATES, CONJUNCTION_ASSESSMENTS, CONJUNCTION_ALERTS)
    return all(_is_level(store, table, source) for source, table in pairwise(chain))


def _is_level(store: Lake, table: Table, source: Table) -> bool:
    commit = store.head(table).commit
    window = commit.manifest.window(source.name) if commit else None
    return window is not None and window.upto_sequence == store.head(source).sequence


def _retract(held: AlertEntry, epoch: int) -> AlertEntry:
    return replace(held, op=RETRACT, epoch=epoch, stated_content=None)


def _one_encounter(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    pairs = [{alert.get("norad_id_1"), alert.get("norad_id_2")} for alert in (one, other)]
    return pairs[0] == pairs[1] and abs(one["tca_time_ns"] - other["tca_time_ns"]) < SAME_EVENT_NS
