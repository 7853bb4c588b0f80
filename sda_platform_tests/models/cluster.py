"""A deterministic model of sites that exchange events over links that fail: it verifies how we use logical clocks.

A Lamport clock gives one order of events that agrees with causality (Lamport 1978). No thread, no socket and no time. A
message between two sites waits in a queue of its own while a partition separates them. It may be delivered late, out
of order or twice.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from sda_platform.catalog.edits import Ordering, compare, merged
from sda_platform.formats.edits import Vector


class ScalarClock(Protocol):
    """A counter that respects causality; a hybrid clock may take the place of Lamport's."""

    def tick(self) -> int:
        """Advance for a local event, and return its stamp."""

    def observe(self, stamp: int) -> int:
        """Advance past a received stamp, and return the stamp of the reception."""


@dataclass
class LamportClock:
    """Lamport's clock: +1 on a local event, max(local, received) + 1 on a reception."""

    current: int = 0

    def tick(self) -> int:
        """Advance for a local event."""
        self.current += 1
        return self.current

    def observe(self, stamp: int) -> int:
        """Advance past ``stamp``."""
        self.current = max(self.current, stamp) + 1
        return self.current


@dataclass
class VectorClock:
    """The vector of one site."""

    site: str
    seen: dict[str, int] = field(default_factory=dict)

    def tick(self) -> dict[str, int]:
        """Count a local event, and return the vector to send with it."""
        self.seen[self.site] = self.seen.get(self.site, 0) + 1
        return self.snapshot()

    def merge(self, other: Vector) -> None:
        """Take in what ``other`` has seen; a repeated one changes nothing. The vector counts no receptions."""
        self.seen = merged(self.seen, other)

    def compare(self, other: Vector) -> Ordering:
        """The order of this clock relative to ``other``."""
        return compare(self.seen, other)

    def snapshot(self) -> dict[str, int]:
        """The vector now."""
        return dict(self.seen)


@dataclass(frozen=True)
class Event:
    """What a site submitted. Origin and own count identify it."""

    origin: str
    lamport: int
    vector: Vector
    payload: bytes

    @property
    def identity(self) -> tuple[str, int]:
        """Origin, and the origin's count of its own events."""
        return self.origin, self.vector[self.origin]


class MessageBus:
    """Links between sites. Messages across a partition are kept until `heal`; sites in no group form one together."""

    def __init__(self, sites: Sequence[str]) -> None:
        self.sites = tuple(sites)
        self._waiting: dict[tuple[str, str], list[Event]] = {(a, b): [] for a in sites for b in sites if a != b}
        self._group: dict[str, int] = {}

    def partition(self, *groups: Iterable[str]) -> None:
        """Separate the groups from each other, in both directions."""
        self._group = {site: number for number, group in enumerate(groups, start=1) for site in group}

    def heal(self) -> None:
        """Connect all sites again."""
        self._group = {}

    def send(self, origin: str, target: str, event: Event) -> None:
        """Put ``event`` on the link; it is never dropped."""
        self._waiting[origin, target].append(event)

    def receive(self, site: str, chance: Random | None = None) -> list[Event]:
        """What reaches ``site`` now; with ``chance`` in another order than it was sent, and some of it twice."""
        arrived: list[Event] = []
        for (origin, target), queue in self._waiting.items():
            if target == site and self._group.get(origin, 0) == self._group.get(site, 0):
                arrived += queue
                queue.clear()
        if chance is not None:
            arrived += chance.sample(arrived, chance.randint(0, len(arrived)))
            chance.shuffle(arrived)
        return arrived


@dataclass
class EventSite:
    """A site that submits events to all others and takes theirs in; a repeated event changes nothing."""

    name: str
    bus: MessageBus
    new_clock: Callable[[], ScalarClock] = LamportClock
    events: dict[tuple[str, int], Event] = field(default_factory=dict)
    vector: VectorClock = field(init=False)
    clock: ScalarClock = field(init=False)

    def __post_init__(self) -> None:
        self.vector, self.clock = VectorClock(self.name), self.new_clock()

    def submit(self, payload: bytes) -> Event:
        """Make an event here and send it to every other site."""
        event = Event(self.name, self.clock.tick(), self.vector.tick(), payload)
        self.events[event.identity] = event
        for other in self.bus.sites:
            if other != self.name:
                self.bus.send(self.name, other, event)
        return event

    def run(self, chance: Random | None = None) -> None:
        """Take in everything that has arrived."""
        for event in self.bus.receive(self.name, chance):
            if event.identity not in self.events:
                self.events[event.identity] = event
                self.clock.observe(event.lamport)
                self.vector.merge(event.vector)

    def conflicts(self) -> set[frozenset[tuple[str, int]]]:
        """The pairs of events here that are concurrent, by their identities."""
        known = sorted(self.events.items())
        return {
            frozenset((a, b))
            for position, (a, first) in enumerate(known)
            for b, second in known[position + 1 :]
            if compare(first.vector, second.vector) is Ordering.CONCURRENT
        }
