"""Reconciliation: compare the entries that a subscriber should hold with those it holds; send only the difference.

A subscriber may have been restored from a backup, be empty, or be ahead. Nearly always its mark equals the ledger's,
and one request is enough. Otherwise only the parts whose marks differ are read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform import failpoints
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.inheritance import first_sequence, inherited_keys
from sda_platform.delivery.outbox import DeliveryBatch, entries, mark_change
from sda_platform.delivery.subscriber import AlertEntry, EntriesMark, EntryKey, Outcome, Subscriber, mark_of
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.planning import Plan

# Below this a part is read whole: one answer of about a megabyte instead of sixteen more questions.
_READ_WHOLE = 1000
_COUNT, _DIGEST = "told_alerts", "told_digest"


@dataclass(frozen=True)
class Difference:
    """``missing``: keys that were delivered and are not held. ``ahead``: keys that the correction log does not have."""

    missing: Sequence[EntryKey] = ()
    ahead: Sequence[EntryKey] = ()


@dataclass(frozen=True)
class Reconciled:
    """The result of a reconciliation; ``mark_after`` is the subscriber's mark with the pending entries."""

    mark_after: EntriesMark
    resent: Sequence[Outcome] = ()
    ahead: Sequence[EntryKey] = ()

    def facts(self) -> dict[str, int]:
        """For the metadata of a materialization."""
        refused = sum(outcome == "refused" for outcome in self.resent)
        return {"resent_lost_entries": len(self.resent) - refused, "refused_again": refused, "ahead": len(self.ahead)}


def reconcile(store: Lake, plan: Plan, subscriber: Subscriber, pending: Sequence[DeliveryBatch]) -> Reconciled:
    """Bring ``subscriber`` to the state of the ledger. An interrupted attempt may have sent some of ``pending``.

    Entries that only the subscriber holds are reported and kept: they may be newer, and nothing is rolled back.
    """
    window = plan.window(CONJUNCTION_ALERTS)
    first = first_sequence(plan.previous)
    ids = [entry.alert_id for batch in pending for entry in batch.entries]
    held = inherited_keys(store, first, ds.field("alert_id").isin(pa.array(ids, pa.string())))
    changes = (mark_change(batch.entries, first, held) for batch in pending)
    marks = list(accumulate(changes, EntriesMark.__add__, initial=delivered_mark(plan.previous)))
    if subscriber.mark() in marks:
        return Reconciled(marks[-1])
    delivered = last_entries(store, window.after_sequence, first)
    difference = compare(subscriber, delivered, [entry for batch in pending for entry in batch.entries])
    missing = _bodies(store, difference.missing, first)
    lost = DeliveryBatch(f"{subscriber.name}|{plan.sequence}|again in run {plan.run_id}", missing)
    resent = lost.send(subscriber)
    failpoints.hit("delivery.reconciled")
    return Reconciled(marks[-1], resent, difference.ahead)


def delivered_mark(ledger_head: CommitManifest | None) -> EntriesMark:
    """The mark of a subscriber that holds everything that was delivered up to the ledger's newest manifest."""
    return EntriesMark(ledger_head.counts[_COUNT], ledger_head.counts[_DIGEST]) if ledger_head else EntriesMark()


def counts_of(mark: EntriesMark) -> dict[str, int]:
    """How the mark travels in the ledger's manifest."""
    return {_COUNT: mark.count, _DIGEST: mark.digest}


def last_entries(store: Lake, upto_sequence: int, first: int = 0) -> dict[str, EntryKey]:
    """The last entry of each alert in the journal's first ``upto_sequence`` commits, retracts included.

    As the subscriber numbers them, from ``first``, and with what it holds of an earlier lake.
    """
    rows = store.log(CONJUNCTION_ALERTS).rows_of((0, upto_sequence), ["event_id", "sequence", "op"])
    ordered = rows.sort_by([("event_id", "ascending"), ("sequence", "ascending"), ("op", "ascending")])
    ours = {row["event_id"]: (row["event_id"], first + row["sequence"], row["op"]) for row in ordered.to_pylist()}
    return {**inherited_keys(store, first), **ours}


def compare(
    subscriber: Subscriber, delivered: Mapping[str, EntryKey], pending: Sequence[AlertEntry] = ()
) -> Difference:
    """How what ``subscriber`` holds differs from the last entries ``delivered``; it may hold ``pending`` ones too."""
    missing: list[EntryKey] = []
    ahead: list[EntryKey] = []
    known = {entry.key for entry in pending}
    for part in _differing_parts(subscriber, delivered, "", subscriber.mark()):
        held = {entry.alert_id: entry for entry in subscriber.held(part)}
        for alert_id, key in delivered.items():
            if alert_id.startswith(part) and (alert_id not in held or held[alert_id].order < key[1:]):
                missing.append(key)
        for entry in held.values():
            last = delivered.get(entry.alert_id)
            if entry.key not in known and (last is None or entry.order > last[1:]):
                ahead.append(entry.key)
    return Difference(missing, ahead)


def _differing_parts(
    subscriber: Subscriber, delivered: Mapping[str, EntryKey], part: str, found: EntriesMark
) -> Iterator[str]:
    """Beginnings of alert ids that cover every difference; ``found`` is the subscriber's mark of ``part``."""
    expected = {alert_id: key for alert_id, key in delivered.items() if alert_id.startswith(part)}
    if found == mark_of(expected.values()):
        return
    if max(found.count, len(expected)) <= _READ_WHOLE:
        yield part
        return
    marks = {part + digit: subscriber.mark(part + digit) for digit in "0123456789abcdef"}
    if sum(marks.values(), EntriesMark()) != found:  # some of its ids do not begin as ours do
        yield part
        return
    for smaller, mark in marks.items():
        yield from _differing_parts(subscriber, expected, smaller, mark)


def _bodies(store: Lake, keys: Sequence[EntryKey], first: int) -> list[AlertEntry]:
    """The journal's entries with these keys; the bodies of inherited entries are the subscriber's alone."""
    if not keys:
        return []
    rows = store.log(CONJUNCTION_ALERTS).rows(where=ds.field("event_id").isin([key[0] for key in keys]))
    wanted = set(keys)
    return [entry for entry in entries(rows, first) if entry.key in wanted]
