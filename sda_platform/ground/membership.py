"""What is claimed of a fleet's member, and which of several claims holds.

Claims merge by (generation, status): the newer generation first, then the worse status. This is the maximum of a total
order, so the order and number of merges do not matter (a semilattice). Only a member itself raises its generation.
"""

from dataclasses import dataclass

from sda_platform.formats.membership_events import ALIVE, STATUS_NAMES


@dataclass(frozen=True, order=True)
class Membership:
    """What is claimed of a member; of two claims the greater holds."""

    generation: int = 0
    status: int = ALIVE

    @property
    def name(self) -> str:
        """Name the status, for people."""
        return STATUS_NAMES[self.status]
