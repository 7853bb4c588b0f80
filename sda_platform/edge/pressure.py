"""When records of low priority take the way round: above 80 % of what a zone holds, until it is below 50 %."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sda_platform.edge.batch import ReceivedBatch
from sda_platform.edge.channel import Channel

HIGH_WATER = 0.8
LOW_WATER = 0.5


@dataclass
class Pressure:
    """Whether a zone is saturated, with hysteresis, so that it does not flap around the mark.

    ``backlog``: what waits in the zone for the intake as a share of what may wait, 0 to 1 and more. The durable log
    between the collector and the lake is an edge too, and its lag the sign that the lake falls behind.
    """

    channels: Iterable[Channel[ReceivedBatch]]
    backlog: float = 0.0
    is_saturated: bool = field(default=False, init=False)

    @property
    def share(self) -> float:
        """The larger of the occupancy that high and low share, and the backlog."""
        channels = list(self.channels)
        used, capacity = sum(each.used for each in channels), sum(each.edge.capacity for each in channels)
        return max(used / capacity, self.backlog)

    def saturated(self) -> bool:
        """Return whether low priority is deferred now."""
        mark = LOW_WATER if self.is_saturated else HIGH_WATER
        self.is_saturated = self.share > mark
        return self.is_saturated
