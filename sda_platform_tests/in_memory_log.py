"""A table's log in memory that keeps Delta's rules for transaction ids, so that many histories can be tried quickly.

The rules: an append whose ``txnVersion`` is not above the last one is skipped *without an error*; of two that began
on the same state one wins and the other fails.
"""

from collections.abc import Sequence
from typing import Any

from sda_platform.lake.checkpoint import Checkpoint
from sda_platform.lake.log import Commit, Head


class ConcurrentTransaction(Exception):
    """What Delta raises where two writers with one transaction id began on the same state."""


class EngineLost(Exception):
    """What a client sees when the engine goes away in the middle of a commit."""


class InMemoryLog:
    """Commits and their rows; reads as `lake.log.TableLog` does."""

    def __init__(self) -> None:
        self._commits: list[Commit] = []
        self.rows: list[Any] = []
        self.durable_version = -1

    def head(self) -> Head:
        """The newest commit."""
        newest = self._commits[-1] if self._commits else None
        return Head(newest.version, newest.checkpoint.sequence, newest) if newest else Head()

    def find(self, sequence: int) -> Commit | None:
        """The commit with this sequence."""
        return next((c for c in self._commits if c.checkpoint.sequence == sequence), None)

    def commits(self) -> list[Commit]:
        """All commits, newest first."""
        return self._commits[::-1]

    def make_durable(self, _first_version: int, last_version: int) -> None:
        """Note what would survive a power loss."""
        self.durable_version = max(self.durable_version, last_version)

    def write(self, checkpoint: Checkpoint, rows: Sequence[Any], *, began_at: int | None = None) -> None:
        """Append as Delta does; ``began_at`` is the number of commits that the writer saw when it began."""
        if began_at is not None and began_at < len(self._commits):
            raise ConcurrentTransaction(f"another transaction {checkpoint.sequence} was committed meanwhile")
        if self._commits and checkpoint.sequence <= self._commits[-1].checkpoint.sequence:
            return
        # What an engine gives back is what was stored: through JSON, as in a real log.
        stored = Checkpoint.from_json(checkpoint.to_json())
        self._commits.append(Commit(len(self._commits), 0, len(rows), stored))
        self.rows.extend(rows)
