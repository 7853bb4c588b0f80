"""JSON messages between the platform and a webhook subscriber; docs/reference/webhook.md is the contract."""

import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel

from sda_platform.delivery.subscriber import UNSTATED, AlertEntry, EntriesMark, EntryKey, Outcome, canonical


class EntryReceipt(BaseModel):
    """What became of one entry."""

    alert_id: str
    epoch: int = 0
    sequence: int
    op: Literal["insert", "retract"]
    outcome: Outcome


class WebhookAnswer(BaseModel):
    """The outcomes of a batch: the same for every repetition of the batch and every query."""

    receipts: list[EntryReceipt]

    def by_key(self) -> dict[EntryKey, Outcome]:
        """Return the outcome of each entry by its key."""
        return {(r.alert_id, r.epoch, r.sequence, r.op): r.outcome for r in self.receipts}


class WebhookEntry(BaseModel):
    """One entry of an alert's correction log, sent or held; a held one has the ``content`` that was sent with it."""

    alert_id: str
    epoch: int = 0
    sequence: int
    op: Literal["insert", "retract"]
    content: str = UNSTATED
    alert: dict[str, Any]

    @classmethod
    def of(cls, entry: AlertEntry) -> "WebhookEntry":
        """Make the message for ``entry``."""
        return cls.model_validate({**entry.stamp._asdict(), "alert": json.loads(entry.body)})

    def entry(self) -> AlertEntry:
        """Return the entry of this message."""
        return AlertEntry(self.alert_id, self.sequence, self.op, canonical(self.alert), self.epoch, self.content)


class Entries(BaseModel):
    """Entries in the order in which they apply."""

    entries: list[WebhookEntry]

    @classmethod
    def of(cls, entries: Sequence[AlertEntry]) -> "Entries":
        """Make the message with ``entries``."""
        return cls(entries=[WebhookEntry.of(entry) for entry in entries])


class HeldMark(BaseModel):
    """A mark; the digest in hexadecimal, because it is more than a JavaScript number holds."""

    count: int
    digest: str

    @classmethod
    def of(cls, mark: EntriesMark) -> "HeldMark":
        """Make the message with ``mark``."""
        return cls(count=mark.count, digest=f"{mark.digest:x}")

    def mark(self) -> EntriesMark:
        """Return the mark of this message."""
        return EntriesMark(self.count, int(self.digest, 16))
