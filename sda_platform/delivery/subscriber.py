"""Subscribers: where alerts arrive, and what each of them promises.

A subscriber applies an entry whose ``(epoch, sequence, op)`` is strictly greater than that of the alert's last one. It
keeps a tombstone of a withdrawn alert, and records the batch id in the same transaction. So a batch may be sent
again after any doubt: it is applied once, and the second answer equals the first.

The epoch counts the histories that delivered to one subscriber: a lake that was restored or rebuilt begins the next
(`delivery.epochs`). So two histories never share a key, and what the newer one delivers is the later entry.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, Protocol

from sda_platform.lake.errors import Misconfigured, Unavailable
from sda_platform.resilience import Transient

Outcome = Literal["applied", "stale", "refused"]
EntryKey = tuple[str, int, int, str]
"""``(alert_id, epoch, sequence, op)``."""
Revision = tuple[str, int, str]
"""``(alert_id, sequence, op)``: an entry of a correction log, which knows no epochs."""
UNSTATED = "unstated"
"""The content hash of an entry whose receiver does not report the hash that it was sent."""

_DIGEST_HEX_DIGITS = 15
_DIGEST_MODULUS = 16**_DIGEST_HEX_DIGITS
DIGEST_MASK = _DIGEST_MODULUS - 1
"""The bits of a digest: a sum modulo 2⁶⁰ is a sum of which these are kept."""


class SubscriberUnavailable(Unavailable):
    """The subscriber takes no delivery at present: the alerts stay in the outbox, and a later run delivers them.

    Also one that refuses the login, or whose proxy answers in its place: that is mended there, without a word to us.
    """


class SubscriberAway(SubscriberUnavailable, Transient):
    """The same for a short time, as far as one can see: one run may ask again."""


class SubscriberMisconfigured(Misconfigured):
    """The settings name no subscriber that can be used."""


class EntryStamp(NamedTuple):
    """Which entry it is, and the hash of what it states; see `content_hash`."""

    alert_id: str
    epoch: int
    sequence: int
    op: str
    content: str

    @property
    def key(self) -> EntryKey:
        """Identity of the entry: a correction of an alert is another entry."""
        return (self.alert_id, self.epoch, self.sequence, self.op)

    @property
    def order(self) -> tuple[int, int, str]:
        """Return the key that orders entries of one alert: of one revision, the retract follows the insert."""
        return (self.epoch, self.sequence, self.op)


@dataclass(frozen=True)
class AlertEntry:
    """One entry of the correction log as the subscriber sees it; ``body`` is the alert as JSON.

    ``stated_content``: the content hash that a receiver reports; where it is None, the hash follows from the body.
    """

    alert_id: str
    sequence: int
    op: str
    body: str
    epoch: int = 0
    stated_content: str | None = field(default=None, compare=False)

    @cached_property
    def stamp(self) -> EntryStamp:
        """Return the entry's identity and the hash of its content."""
        content = self.stated_content or content_hash(self.body)
        return EntryStamp(self.alert_id, self.epoch, self.sequence, self.op, content)

    @property
    def key(self) -> EntryKey:
        """See `EntryStamp.key`."""
        return (self.alert_id, self.epoch, self.sequence, self.op)

    @property
    def revision(self) -> Revision:
        """Return the entry's identity in the correction log of one history."""
        return (self.alert_id, self.sequence, self.op)

    @property
    def order(self) -> tuple[int, int, str]:
        """See `EntryStamp.order`."""
        return (self.epoch, self.sequence, self.op)


@dataclass(frozen=True)
class EntriesMark:
    """What a set of entries comes to, in any order: how many, and the sum of their digests.

    Two subscribers with one mark hold the same alerts at the same entry with the same content, tombstones included.
    """

    count: int = 0
    digest: int = 0

    def __add__(self, other: "EntriesMark") -> "EntriesMark":
        return EntriesMark(self.count + other.count, (self.digest + other.digest) % _DIGEST_MODULUS)

    def __sub__(self, other: "EntriesMark") -> "EntriesMark":
        return EntriesMark(self.count - other.count, (self.digest - other.digest) % _DIGEST_MODULUS)


def canonical(facts: Mapping[str, object]) -> str:
    """An alert's facts as the JSON text that equal facts share."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def content_hash(body: str) -> str:
    """Return the SHA-256, in hexadecimal, of an alert's text."""
    return hashlib.sha256(body.encode()).hexdigest()


def entry_digest(alert_id: str, epoch: int, sequence: int, op: str, content: str) -> int:
    """Return the first 60 bits of the MD5 of ``alert_id:epoch:sequence:op:content``, which every database can
    compute.
    """
    text = f"{alert_id}:{epoch}:{sequence}:{op}:{content}".encode()
    return int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:_DIGEST_HEX_DIGITS], 16)


def mark_of(stamps: Iterable[EntryStamp]) -> EntriesMark:
    """Return the mark of entries with these stamps."""
    digests = [entry_digest(*stamp) for stamp in stamps]
    return EntriesMark(len(digests), sum(digests) % _DIGEST_MODULUS)


class Subscriber(Protocol):
    """A receiver of batches of entries; a repeated batch has no effect."""

    idempotency: ClassVar[str]
    """Why a repetition has no effect, in words; a subscriber without this text is refused."""

    name: str
    """Name in the ledger of deliveries; holds no secret."""

    def apply(self, batch_id: str, entries: Sequence[AlertEntry]) -> list[Outcome]:
        """Apply ``entries`` in order; a known ``batch_id`` gets its first answer again.

        Raises SubscriberUnavailable when it is not known to have them.
        """
        ...

    def mark(self, prefix: str = "") -> EntriesMark:
        """Return the mark of what it holds, tombstones included, of the alerts whose id begins with ``prefix``."""
        ...

    def held(self, prefix: str = "") -> list[AlertEntry]:
        """Return the last entry of each of these alerts, by its own account, tombstones included."""
        ...
