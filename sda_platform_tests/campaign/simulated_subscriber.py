"""The subscriber of T0, which keeps its contract and an account of every batch that it answered."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sda_platform.delivery.subscriber import AlertEntry, EntriesMark, Outcome, Revision, mark_of


@dataclass
class SimulatedSubscriber:
    """A subscriber that keeps its contract: atomic, durable on return, a known batch gets its first answer."""

    idempotency: ClassVar[str] = "a dictionary of batches"
    step: Callable[[str, str], None] = field(repr=False)
    name: str = "simulated"
    alerts: dict[str, AlertEntry] = field(default_factory=dict)
    answers: dict[str, list[Outcome]] = field(default_factory=dict)
    batches: dict[str, tuple[Revision, ...]] = field(default_factory=dict)
    applied: list[Revision] = field(default_factory=list)

    def apply(self, batch_id: str, entries: Sequence[AlertEntry]) -> list[Outcome]:
        """See `delivery.subscriber.Subscriber.apply`."""
        self.step("send", batch_id)
        if batch_id not in self.answers:
            self.batches[batch_id] = tuple(entry.revision for entry in entries)
            self.answers[batch_id] = [self._apply(entry) for entry in entries]
        self.step("answer", batch_id)
        return self.answers[batch_id]

    def answer_to(self, batch_id: str, key: Revision) -> Outcome | None:
        """What it answered to one entry of a batch; None for what it never got."""
        batch = self.batches.get(batch_id, ())
        return self.answers[batch_id][batch.index(key)] if key in batch else None

    def held(self, prefix: str = "") -> list[AlertEntry]:
        """See `delivery.subscriber.Subscriber.held`."""
        return [entry for name, entry in sorted(self.alerts.items()) if name.startswith(prefix)]

    def mark(self, prefix: str = "") -> EntriesMark:
        """See `delivery.subscriber.Subscriber.mark`."""
        self.step("ask", prefix)
        return mark_of(entry.stamp for entry in self.held(prefix))

    def _apply(self, entry: AlertEntry) -> Outcome:
        known = self.alerts.get(entry.alert_id)
        if known is not None and entry.order <= known.order:
            return "stale"
        self.alerts[entry.alert_id] = entry
        self.applied.append(entry.revision)
        return "applied"
