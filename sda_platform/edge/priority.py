"""Priorities of received records, highest first; each is a stream of segments of its own."""

from enum import IntEnum


class Priority(IntEnum):
    """How soon a record must reach a table. The lower number is served first."""

    EMERGENCY = 0
    HIGH = 1
    LOW = 2
    DEFERRED = 3

    @property
    def label(self) -> str:
        """The name in segment metadata, metrics and logs."""
        return self.name.lower()
