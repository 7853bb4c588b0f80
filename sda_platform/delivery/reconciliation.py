"""Reconciliation: compare the entries that a subscriber should hold with those it holds; send only the difference.

A subscriber may have been restored from a backup, be empty, or be ahead. Nearly always its mark equals the ledger's,
and one request is enough. Otherwise only the parts whose marks differ are read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sda_platform import failpoints
from sda_platform.delivery.ledger import entries_of, last_delivered, replaced_by, stamps
from sda_platform.delivery.outbox import DeliveryBatch, marks_along
from sda_platform.delivery.subscriber import (
    UNSTATED,
    AlertEntry,
    EntriesMark,
    EntryStamp,
    Outcome,
    Subscriber,
    mark_of,
)
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.planning import Plan

# Below this a part is read whole: one answer of about a megabyte instead of sixteen more questions.
_READ_WHOLE = 1000
_COUNT, _DIGEST = "told_alerts", "told_digest"


@dataclass(frozen=True)
class Difference:
    """``missing``: entries that were delivered and are not held. ``foreign``: held ones that were never delivered."""

    missing: Sequence[EntryStamp] = ()
    foreign: Sequence[AlertEntry] = ()


@dataclass(frozen=True)
class Reconciled:
    """The result of a reconciliation; ``mark_after`` is the subscriber's mark with the pending entries."""

    mark_after: EntriesMark
    resent: Sequence[Outcome] = ()

    def facts(self) -> dict[str, int]:
        """Return the result as metadata of a materialization."""
        refused = sum(outcome == "refused" for outcome in self.resent)
        return {"resent_lost_entries": len(self.resent) - refused, "refused_again": refused}


def reconcile(store: Lake, plan: Plan, subscriber: Subscriber, pending: Sequence[DeliveryBatch]) -> Reconciled:
    """Bring ``subscriber`` to the state of the ledger. An interrupted attempt may have sent some of ``pending``."""
    marks = expected_marks(store, plan, pending)
    if subscriber.mark() in marks:
        return Reconciled(marks[-1])
    delivered = last_delivered(store, plan)
    difference = compare(subscriber, stamps(delivered), _entries(pending))
    ours = [stamp for stamp in difference.missing if delivered[stamp.alert_id].is_ours]
    lost = DeliveryBatch(f"{subscriber.name}|{plan.sequence}|again in run {plan.run_id}", entries_of(store, ours))
    resent = lost.send(subscriber)
    failpoints.hit("delivery.reconciled")
    known = stamps(delivered)
    return Reconciled(marks_along(pending, mark_of(known.values()), known)[-1], resent)


def foreign_entries(
    store: Lake, plan: Plan, subscriber: Subscriber, pending: Sequence[DeliveryBatch]
) -> tuple[list[AlertEntry], EntriesMark]:
    """Find entries of ``subscriber`` that neither ledger nor ``pending`` has, and the mark that includes them.

    If there is any, an interrupted attempt's share of ``pending`` is among it: the next epoch sends it again.
    """
    if subscriber.mark() in expected_marks(store, plan, pending):
        return [], EntriesMark()
    delivered = stamps(last_delivered(store, plan))
    if not compare(subscriber, delivered, _entries(pending)).foreign:
        return [], EntriesMark()
    foreign = compare(subscriber, delivered).foreign
    held = {**delivered, **{entry.alert_id: entry.stamp for entry in foreign}}
    return list(foreign), mark_of(held.values())


def expected_marks(store: Lake, plan: Plan, pending: Sequence[DeliveryBatch]) -> list[EntriesMark]:
    """Return the marks that a subscriber may have that lost nothing: an attempt may have ended after any batch."""
    return marks_along(pending, delivered_mark(plan.previous), replaced_by(store, plan, _entries(pending)))


def _entries(batches: Sequence[DeliveryBatch]) -> list[AlertEntry]:
    return [entry for batch in batches for entry in batch.entries]


def delivered_mark(ledger_head: CommitManifest | None) -> EntriesMark:
    """Return the mark of a subscriber that holds everything that was delivered up to the ledger's newest manifest."""
    return EntriesMark(ledger_head.counts[_COUNT], ledger_head.counts[_DIGEST]) if ledger_head else EntriesMark()


def counts_of(mark: EntriesMark) -> dict[str, int]:
    """Return the mark as counts of the ledger's manifest."""
    return {_COUNT: mark.count, _DIGEST: mark.digest}


def compare(
    subscriber: Subscriber, delivered: Mapping[str, EntryStamp], pending: Sequence[AlertEntry] = ()
) -> Difference:
    """Compare the entries of ``subscriber`` with the last ``delivered`` ones; it may hold ``pending`` ones too."""
    missing: list[EntryStamp] = []
    foreign: list[AlertEntry] = []
    known = {entry.stamp for entry in pending}
    for part in _differing_parts(subscriber, delivered, "", subscriber.mark()):
        held = {entry.alert_id: entry for entry in subscriber.held(part)}
        for alert_id, stamp in delivered.items():
            if alert_id.startswith(part) and (alert_id not in held or held[alert_id].order < stamp.order):
                missing.append(stamp)
        foreign += [
            entry
            for entry in held.values()
            if entry.stamp not in known and not _was_delivered(entry, delivered.get(entry.alert_id))
        ]
    return Difference(missing, foreign)


def _was_delivered(held: AlertEntry, last: EntryStamp | None) -> bool:
    """Return whether ``held`` is the entry delivered ``last``, or an earlier one."""
    if last is None or held.order > last.order:
        return False
    return held.order < last.order or held.stamp.content in (last.content, UNSTATED)


def _differing_parts(
    subscriber: Subscriber, delivered: Mapping[str, EntryStamp], part: str, found: EntriesMark
) -> Iterator[str]:
    """Beginnings of alert ids that cover every difference; ``found`` is the subscriber's mark of ``part``."""
    expected = {alert_id: stamp for alert_id, stamp in delivered.items() if alert_id.startswith(part)}
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
