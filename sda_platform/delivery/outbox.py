"""The outbox: which alert entries a batch sends, under which identity, and what the subscriber answered.

The correction log of alerts is the outbox: an entry waits there until the ledger of deliveries has consumed its commit.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform import failpoints
from sda_platform.delivery.subscriber import (
    AlertEntry,
    EntriesMark,
    EntryStamp,
    Outcome,
    Subscriber,
    canonical,
    mark_of,
)
from sda_platform.lake.table import COMMIT_SEQUENCE

# Bounds a request to about half a megabyte, and the time for which a subscriber is locked to a second.
GROUP_SIZE = 500
_ENVELOPE = ("event_id", "sequence", "op", "commit_sequence")


@dataclass(frozen=True)
class DeliveryBatch:
    """Entries in the order in which they apply, and the id by which a subscriber recognises them.

    ``cause``: why they are sent, as the ledger has it; the first ``withdrawals`` of them withdraw inherited alerts.
    """

    id: str
    entries: Sequence[AlertEntry]
    cause: str = "alert"
    withdrawals: int = 0

    def causes(self) -> list[str]:
        """Return the cause of each entry."""
        others = len(self.entries) - self.withdrawals
        return ["withdrawal"] * self.withdrawals + [self.cause] * others

    def groups(self) -> Iterable[tuple[str, Sequence[AlertEntry]]]:
        """Return the groups in which the batch is sent, ``(group id, entries)``; equal batches give equal groups."""
        for begin in range(0, len(self.entries), GROUP_SIZE):
            yield f"{self.id}|{begin // GROUP_SIZE + 1}", self.entries[begin : begin + GROUP_SIZE]

    def send(self, subscriber: Subscriber) -> list[Outcome]:
        """Send it to ``subscriber``. A batch of an earlier attempt gets the answer of that attempt."""
        outcomes: list[Outcome] = []
        for group_id, group in self.groups():
            outcomes += subscriber.apply(group_id, group)
            failpoints.hit("delivery.group_answered")
        return outcomes


def planned_batches(
    subscriber: str,
    alerts: pa.Table,
    epoch: int = 0,
    before: Callable[[Sequence[AlertEntry], int], Sequence[AlertEntry]] = lambda _sent, _commit: (),
) -> list[DeliveryBatch]:
    """Return the batches to send of ``alerts``: one for each commit that has entries, in the order of the commits.

    A batch depends on its commit and the epoch only, not on the plan that sends it. An interrupted delivery is
    therefore repeated with the same batches, even after later commits, and each entry gets its first outcome. The id
    ends with a hash of the content, because a rebuilt lake has other entries at the same commit.
    ``before(entries, commit)`` returns the withdrawals to send before those of a commit.
    """
    by_commit, begin, batches = alerts.sort_by(COMMIT_SEQUENCE), 0, []
    for each in pc.value_counts(by_commit.column(COMMIT_SEQUENCE)).to_pylist():
        commit, rows = each["values"], each["counts"]
        sent = entries(by_commit.slice(begin, rows), epoch)
        withdrawn = before(sent, commit)
        batch = named_batch(f"{subscriber}|alerts {commit}", [*withdrawn, *sent])
        batches.append(replace(batch, withdrawals=len(withdrawn)))
        begin += rows
    return batches


def named_batch(name: str, sent: Sequence[AlertEntry], cause: str = "alert") -> DeliveryBatch:
    """A batch whose id is ``name`` and a hash of its content."""
    content = hashlib.sha256("\n".join(f"{e.key}{e.body}" for e in sent).encode()).hexdigest()[:16]
    return DeliveryBatch(f"{name}|{content}", sent, cause)


def entries(alerts: pa.Table, epoch: int = 0) -> list[AlertEntry]:
    """List log entries in the order in which a subscriber must apply them: a retract before the insert after it."""
    ordered = alerts.sort_by([("event_id", "ascending"), ("sequence", "ascending"), ("op", "ascending")])
    return [AlertEntry(row["event_id"], row["sequence"], row["op"], _body(row), epoch) for row in ordered.to_pylist()]


def marks_along(
    sent: Iterable[DeliveryBatch], before: EntriesMark, replaced: Mapping[str, EntryStamp]
) -> list[EntriesMark]:
    """Return the marks of a subscriber before these batches and after each of them.

    ``before``: its mark before them. ``replaced``: the last entry before them of each alert that has one.
    """
    last, marks = dict(replaced), [before]
    for batch in sent:
        mark = marks[-1]
        for entry in batch.entries:
            earlier = last.get(entry.alert_id)
            if earlier is None or earlier.order < entry.order:
                mark += mark_of([entry.stamp]) - mark_of([earlier] if earlier else [])
                last[entry.alert_id] = entry.stamp
        marks.append(mark)
    return marks


def _body(row: dict[str, object]) -> str:
    return canonical({name: value for name, value in row.items() if name not in _ENVELOPE})
