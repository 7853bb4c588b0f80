"""A deterministic model of leases and fencing: holders that pause, lose the network and write late, from one seed.

It verifies the way in which the platform uses a lease: the service grants a token that rises with every grant, and the
store refuses a token below the highest that it has seen. A lease alone does not exclude two writers, because a holder
can pause between its last look at the clock and its write (Kleppmann 2016).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass
class LeaseService:
    """The linearizable issuer: one holder at a time, by its own clock; tokens rise strictly."""

    ttl: int
    holder: str | None = None
    expires: int = 0
    token: int = 0

    def acquire(self, holder: str, now: int) -> int | None:
        """The token of a new lease, or None while another holder's has not expired."""
        if self.holder is not None and now < self.expires:
            return None
        self.holder, self.expires, self.token = holder, now + self.ttl, self.token + 1
        return self.token

    def renew(self, holder: str, token: int, now: int) -> bool:
        """Whether the lease was extended; not once it expired or belongs to another grant."""
        if (self.holder, self.token) != (holder, token) or now >= self.expires:
            return False
        self.expires = now + self.ttl
        return True


@dataclass
class FencedStore:
    """What the lease protects. ``checks_tokens`` False is the planted bug: a store that trusts its callers."""

    checks_tokens: bool = True
    highest: int = 0
    accepted: list[tuple[int, str]] = field(default_factory=list)
    refused: int = 0

    def write(self, token: int, holder: str) -> bool:
        """Whether the write was accepted."""
        if self.checks_tokens and token < self.highest:
            self.refused += 1
            return False
        self.highest = max(self.highest, token)
        self.accepted.append((token, holder))
        return True

    @property
    def stale_writes(self) -> int:
        """Accepted writes of a holder that another one, with a higher token, had followed."""
        highest, stale = 0, 0
        for token, _ in self.accepted:
            stale += token < highest
            highest = max(highest, token)
        return stale


@dataclass
class _Holder:
    name: str
    token: int | None = None
    believes_until: int = 0
    wakes_at: int = 0
    cut_until: int = 0


@dataclass
class _Record:
    """What the service answered, kept apart from the service: until when each holder has the lease."""

    ttl: int
    until: dict[str, int] = field(default_factory=dict)
    grants_while_held: int = 0

    def granted(self, holder: str, now: int) -> None:
        self.grants_while_held += any(now < until for name, until in self.until.items() if name != holder)
        self.until = {holder: now + self.ttl}

    def renewed(self, holder: str, now: int) -> None:
        self.until[holder] = now + self.ttl


@dataclass(frozen=True)
class LeaseOutcome:
    """What a schedule did."""

    seed: int
    grants: int
    accepted: int
    refused: int
    stale_writes: int
    grants_while_held: int
    """Grants to a holder while another one's last grant or renewal had not run out: the service does not exclude."""
    overlapping_beliefs: int
    """Steps at which two holders had a lease by their own records: pauses cause some, fencing makes them harmless."""


def run(seed: int, *, steps: int = 400, holders: int = 3, ttl: int = 10, checks_tokens: bool = True) -> LeaseOutcome:
    """Carry out the schedule of ``seed``: in each step a holder acts, pauses beyond its lease, or loses the service."""
    chance = random.Random(seed)
    service, store, record = LeaseService(ttl), FencedStore(checks_tokens), _Record(ttl)
    everyone = [_Holder(f"holder-{number}") for number in range(holders)]
    overlaps = 0
    for now in range(steps):
        holder = chance.choice(everyone)
        if now < holder.wakes_at:
            continue
        fate = chance.random()
        # It has looked at its clock and decides to write; the pause comes between the two.
        decided = holder.token if holder.token is not None and now < holder.believes_until else None
        if fate < 0.10:
            holder.wakes_at = now + chance.randrange(1, 4 * ttl)
            if decided is not None:
                _write_late(store, holder, decided, everyone, service, record, holder.wakes_at, chance)
            continue
        if fate < 0.18:
            holder.cut_until = now + chance.randrange(1, 3 * ttl)
        if decided is not None:
            store.write(decided, holder.name)
        _keep(service, record, holder, now)
        overlaps += sum(each.token is not None and now < each.believes_until for each in everyone) > 1
    return LeaseOutcome(
        seed, service.token, len(store.accepted), store.refused, store.stale_writes, record.grants_while_held, overlaps
    )


def _keep(service: LeaseService, record: _Record, holder: _Holder, now: int) -> None:
    """Renew or acquire, where the service can be reached; the belief counts from before the call."""
    if now < holder.cut_until:
        return
    if holder.token is not None and service.renew(holder.name, holder.token, now):
        holder.believes_until = now + service.ttl
        record.renewed(holder.name, now)
        return
    holder.token = service.acquire(holder.name, now)
    if holder.token is not None:
        record.granted(holder.name, now)
    holder.believes_until = now + service.ttl


def _write_late(
    store: FencedStore,
    paused: _Holder,
    token: int,
    everyone: list[_Holder],
    service: LeaseService,
    record: _Record,
    wakes_at: int,
    chance: random.Random,
) -> None:
    """While one holder is paused others may take over and write; then its own write arrives."""
    if wakes_at >= service.expires and chance.random() < 0.8:
        other = next(each for each in everyone if each is not paused)
        at = max(wakes_at - 1, service.expires)
        taken = service.acquire(other.name, at)
        if taken is not None:
            record.granted(other.name, at)
            other.token, other.believes_until = taken, wakes_at - 1 + service.ttl
            store.write(taken, other.name)
    store.write(token, paused.name)
