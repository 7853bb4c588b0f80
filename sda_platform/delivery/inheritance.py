"""Alerts that a subscriber holds from an earlier lake, when a lake that was built anew begins to deliver to it.

Before its first delivery such a lake records what the subscriber holds, as rows `inherited` of the ledger, in a commit
that consumes nothing. Its own entries then continue above: their sequences begin after the highest inherited one, so
that the subscriber takes them for newer. An inherited alert of the same id is thereby corrected. An open one of the
same encounter under another id is withdrawn in the batch that brings the new id, before it. What else the subscriber
holds is left alone.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, SAME_EVENT_NS
from sda_platform.delivery.outbox import entries, ledger_row
from sda_platform.delivery.subscriber import AlertEntry, EntriesMark, EntryKey, Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.correction_log import INSERT, RETRACT
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import GENESIS, CommitManifest
from sda_platform.lake.planning import Plan

_FIRST_SEQUENCE = "first_sequence"
_KEY = ["alert_id", "sequence", "op"]


def first_sequence(ledger_head: CommitManifest | None) -> int:
    """The sequence at the subscriber of a journal's entry 0; more than 0 in a lake that was built anew."""
    return ledger_head.counts.get(_FIRST_SEQUENCE, 0) if ledger_head else 0


def counts_of_first(sequence: int) -> dict[str, int]:
    """How `first_sequence` travels in the ledger's manifests."""
    return {_FIRST_SEQUENCE: sequence} if sequence else {}


def inherited(store: Lake, plan: Plan, subscriber: Subscriber) -> list[AlertEntry]:
    """What ``subscriber`` holds of an earlier lake, if ``plan`` is the first delivery of this one.

    A first delivery of this lake may have been killed after it was sent. The subscriber then has this lake's own
    entries.
    """
    if plan.previous is not None or plan.is_empty or subscriber.mark() == EntriesMark():
        return []
    own = {entry.key: entry.body for entry in entries(store.new_rows(plan, CONJUNCTION_ALERTS))}
    held = subscriber.held()
    return [] if all(own.get(entry.key) == entry.body for entry in held) else held


def recording(plan: Plan) -> Plan:
    """``plan``, the first of its table, as one that consumes nothing."""
    untouched = (replace(w, upto_sequence=0, upto_version=-1, upto_sha256=GENESIS) for w in plan.windows)
    return replace(plan, windows=tuple(untouched))


def inherited_rows(held: Sequence[AlertEntry], subscriber: str, as_of_ns: int) -> tuple[pa.Table, dict[str, int]]:
    """The ledger's rows and counts for what a subscriber holds of an earlier lake."""
    rows = [ledger_row(entry, "inherited", "inherited", subscriber=subscriber, as_of_ns=as_of_ns) for entry in held]
    return pa.Table.from_pylist(rows, schema=ALERT_DELIVERIES.content_schema), counts_of_first(
        max(e.sequence for e in held) + 1
    )


def inherited_keys(store: Lake, first: int, where: ds.Expression | None = None) -> dict[str, EntryKey]:
    """The last entry below sequence ``first`` of each inherited alert; ``where`` restricts the ledger's rows."""
    if not first:
        return {}
    earlier = ds.field("sequence") < first
    chosen = earlier if where is None else earlier & where
    ordered = store.log(ALERT_DELIVERIES).rows(_KEY, chosen).sort_by([(name, "ascending") for name in _KEY])
    return {row["alert_id"]: (row["alert_id"], row["sequence"], row["op"]) for row in ordered.to_pylist()}


def withdrawals(
    store: Lake, first: int, subscriber: Subscriber, sent: Sequence[AlertEntry], commit: int
) -> list[AlertEntry]:
    """Retracts of open inherited alerts whose encounter ``sent``, the alerts of ``commit``, names otherwise.

    Equal in every attempt, because it follows from the inherited rows, the journal up to the commit and the alerts
    themselves. One encounter: the same pair, and TCAs less than SAME_EVENT_NS apart.
    """
    fresh = [json.loads(entry.body) for entry in sent if first and entry.order == (first, INSERT)]
    if not fresh:
        return []
    times = [alert["tca_time_ns"] for alert in fresh]
    near = (ds.field("outcome") == "inherited") & (ds.field("op") == INSERT)
    near &= ds.field("tca_time_ns") > min(times) - SAME_EVENT_NS
    near &= ds.field("tca_time_ns") < max(times) + SAME_EVENT_NS
    candidates = store.log(ALERT_DELIVERIES).rows(["alert_id", "sequence"], near).to_pylist()
    upto_now = store.log(CONJUNCTION_ALERTS).rows_of((0, commit), ["event_id"]).column("event_id")
    known = set(upto_now.to_pylist())
    found = []
    for row in (row for row in candidates if row["alert_id"] not in known):
        for held in subscriber.held(row["alert_id"]):
            earlier = json.loads(held.body)
            if held.sequence == row["sequence"] and any(_one_encounter(earlier, alert) for alert in fresh):
                found.append(replace(held, op=RETRACT))
    return sorted(found, key=lambda entry: entry.alert_id)


def unconfirmed(store: Lake, first: int) -> list[str]:
    """Ids of open inherited alerts whose TCA is ahead and which this lake does not have."""
    ahead = inherited_keys(store, first, ds.field("tca_time_ns") > store.clock.now_ns())
    known = set(store.log(CONJUNCTION_ALERTS).rows(["event_id"]).column("event_id").to_pylist()) if ahead else set()
    return [alert_id for alert_id, _, op in ahead.values() if op == INSERT and alert_id not in known]


def _one_encounter(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    pairs = [{alert.get("norad_id_1"), alert.get("norad_id_2")} for alert in (one, other)]
    return pairs[0] == pairs[1] and abs(one["tca_time_ns"] - other["tca_time_ns"]) < SAME_EVENT_NS
