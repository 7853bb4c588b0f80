"""Every edge of the collector: declared here, and nowhere else is a channel made.

Each landing zone has edges of its own, so that a flood in one never fills another's. Records are split by priority
before they share anything. Capacities are in bytes of records, so memory is bounded by their sum whatever the
records are.

    receive ─► emergency ─┐
            ─► high ──────┤
            ─► low ───────┼─► seal ─► pending/ of the zone ─► intake
            ─► deferred ──┘

Sizes: (peak rate − rate of the sealer) × duration × 2. Ten times 7,000 radar frames/s of 72 bytes for the 0.2
s between two seals, twice: 2 MB; a tenth of a second of a slow disk costs half of that again. Three quarters are for
high, one quarter for low priority. At 12 MiB and 70,000 frames/s an observation waits for 2.5 s at most.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from sda_platform.edge.batch import ReceivedBatch
from sda_platform.edge.channel import Channel, Edge, OverflowPolicy
from sda_platform.edge.priority import Priority

MIB: Final = 2**20

_LANES: Final[dict[Priority, tuple[int, OverflowPolicy, str]]] = {
    Priority.EMERGENCY: (
        1 * MIB,
        OverflowPolicy.BLOCK,
        "Emergency traffic has room of its own: it waits for nothing but the disk.",
    ),
    Priority.HIGH: (
        12 * MIB,
        OverflowPolicy.BLOCK,
        "Fresh observations are never dropped here: the socket is read more slowly instead.",
    ),
    Priority.LOW: (
        4 * MIB,
        OverflowPolicy.SHED,
        "A redundant sample is worth less than the wait: what does not fit is deferred.",
    ),
    Priority.DEFERRED: (
        16 * MIB,
        OverflowPolicy.SHED,
        "Deferred samples must not hold up fresh ones behind them: what does not fit is dropped and counted.",
    ),
}
_ROUTINE_DEADLINE_S: Final = 0.2
_ROUTINE_REASON: Final = "Emergency frames come through the same socket: routine frames wait 0.2 s, then are deferred."


class Topology:
    """The edges of a running collector, by zone and priority. Channels are made here, from declarations."""

    def __init__(self) -> None:
        self._channels: dict[tuple[str, Priority], Channel[ReceivedBatch]] = {}

    def lane(self, zone: str, priority: Priority) -> Channel[ReceivedBatch]:
        """Return the channel of a zone's records of one priority; the same for every caller."""
        key = (zone, priority)
        if key not in self._channels:
            self._channels[key] = Channel(_edge(zone, priority))
        return self._channels[key]

    def lanes(self, zone: str) -> dict[Priority, Channel[ReceivedBatch]]:
        """All channels of a zone, highest priority first."""
        return {priority: self.lane(zone, priority) for priority in Priority}

    def channels(self) -> Iterator[Channel[ReceivedBatch]]:
        """Every channel there is."""
        yield from self._channels.values()

    def describe(self) -> list[str]:
        """Each edge with size, policy and reason, for the log of a start."""
        return [describe(channel.edge) for channel in self.channels()]


def declared_edges(zones: Iterable[str]) -> list[Edge]:
    """Return the edges that a collector of these zones has."""
    return [_edge(zone, priority) for zone in zones for priority in Priority]


def describe(edge: Edge) -> str:
    """One edge in one line."""
    return f"{edge.name}: {edge.sender} to {edge.receiver}, {edge.capacity / MIB:g} MiB, {edge.policy}. {edge.reason}"


def _edge(zone: str, priority: Priority) -> Edge:
    capacity, policy, reason = _LANES[priority]
    name, sender, receiver = f"{zone}.{priority.label}", f"receive {zone}", f"seal {zone}"
    if (zone, priority) == ("telemetry", Priority.HIGH):
        return Edge(name, sender, receiver, capacity, OverflowPolicy.DEADLINE, _ROUTINE_REASON, _ROUTINE_DEADLINE_S)
    return Edge(name, sender, receiver, capacity, policy, reason)
