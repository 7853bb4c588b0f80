"""Subscribers: where alerts arrive, and what each of them promises.

A subscriber applies ``(alert_id, sequence)`` with strict greater, keeps a tombstone of a withdrawn alert (E21), and
records the batch id in the same transaction. So a batch may be sent again after any doubt: it is applied once, and
the second answer equals the first.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from sda_platform.lake.errors import Misconfigured, Unavailable
from sda_platform.resilience import Transient

Outcome = Literal["applied", "stale", "refused"]
EntryKey = tuple[str, int, str]

_DIGEST_HEX_DIGITS = 15
_DIGEST_MODULUS = 16**_DIGEST_HEX_DIGITS
DIGEST_MASK = _DIGEST_MODULUS - 1
"""The bits of a digest: a sum modulo 2⁶⁰ is a sum of which these are kept."""


class SubscriberUnavailable(Unavailable, Transient):
    """The subscriber does not answer at present: the alerts stay in the outbox, and a later run delivers them."""


class SubscriberMisconfigured(Misconfigured):
    """The subscriber refuses all deliveries until a person corrects the setting or the subscriber."""


@dataclass(frozen=True)
class AlertEntry:
    """One journal entry as the subscriber sees it; ``body`` is the alert as JSON."""

    alert_id: str
    sequence: int
    op: str
    body: str

    @property
    def key(self) -> EntryKey:
        """Identity of the entry: a correction of an alert is another entry (E14)."""
        return (self.alert_id, self.sequence, self.op)

    @property
    def order(self) -> tuple[int, str]:
        """Which entry of one alert is the later: of one sequence, the retract follows the insert."""
        return (self.sequence, self.op)


@dataclass(frozen=True)
class EntriesMark:
    """What a set of entries comes to, in any order: how many, and the sum of their keys' digests.

    Two subscribers with one mark hold the same alerts at the same sequence, tombstones included.
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


def key_digest(alert_id: str, sequence: int, op: str) -> int:
    """The first 60 bits of the MD5 of ``alert_id:sequence:op``, which every database can compute."""
    text = f"{alert_id}:{sequence}:{op}".encode()
    return int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:_DIGEST_HEX_DIGITS], 16)


def mark_of(keys: Iterable[EntryKey]) -> EntriesMark:
    """The mark of entries with these keys."""
    digests = [key_digest(*key) for key in keys]
    return EntriesMark(len(digests), sum(digests) % _DIGEST_MODULUS)


class Subscriber(Protocol):
    """A receiver of batches of entries; a repeated batch has no effect."""

    idempotency: ClassVar[str]
    """Why a repetition has no effect, in words; a subscriber without this text is refused (DP5-F10)."""

    name: str
    """Name in the ledger of deliveries; holds no secret."""

    def apply(self, batch_id: str, entries: Sequence[AlertEntry]) -> list[Outcome]:
        """Apply ``entries`` in order; a known ``batch_id`` gets its first answer again.

        Raises SubscriberUnavailable when it is not known to have them, SubscriberMisconfigured when it never will.
        """
        ...

    def mark(self, prefix: str = "") -> EntriesMark:
        """The mark of what it holds, tombstones included, of the alerts whose id begins with ``prefix``."""
        ...

    def held(self, prefix: str = "") -> list[AlertEntry]:
        """The last entry of each of these alerts, by its own account, tombstones included."""
        ...
