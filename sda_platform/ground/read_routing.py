"""Which replica may answer a read: the modes of the read router, and the positions that a session has seen.

A position is a place in the leader's log, such as PostgreSQL's LSN; a replica at a position has everything before it.
Source: Terry et al., Session guarantees for weakly consistent replicated data (1994).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class ReadMode(StrEnum):
    """What a reader is promised, from the strongest on."""

    LEADER = "leader"
    """The newest acknowledged write (linearizable); nothing while none can be acknowledged."""
    SESSION = "session"
    """A session's own writes, and never an older state than it has seen."""
    PREFIX = "consistent_prefix"
    """Never an older state than the session has read: no effect without its cause. Own writes may be missing."""
    BOUNDED = "bounded"
    """A state that is not later than a bound of time. Own writes may be missing, and time may go back within it."""
    ANY_FOLLOWER = "any_follower"
    """Whatever a follower has: own writes may be missing, and time may go back."""


@dataclass
class ReadSession:
    """The token of a session: it advances on writes and on reads."""

    written: int = 0
    read: int = 0

    def has_written(self, position: int) -> None:
        """A write of this session was acknowledged at ``position``."""
        self.written = max(self.written, position)

    def has_read(self, position: int) -> None:
        """A replica at ``position`` answered a read of this session."""
        self.read = max(self.read, position)

    def needs(self, mode: ReadMode) -> int:
        """Return the position that a follower must have reached to answer."""
        if mode is ReadMode.SESSION:
            return max(self.written, self.read)
        return self.read if mode is ReadMode.PREFIX else 0


def answering_replica(
    mode: ReadMode,
    session: ReadSession,
    followers: Mapping[str, int],
    leader: str,
    pick: Callable[[Sequence[str]], str],
    late: Collection[str] = (),
) -> str:
    """Choose the replica that answers: a follower that ``mode`` allows (by ``pick``), or else the leader.

    ``followers``: the position of each that answers; ``late``: those whose lag is beyond the bound, or not known.
    """
    if mode is ReadMode.LEADER:
        return leader
    out = late if mode is ReadMode.BOUNDED else ()
    fit = sorted(name for name, position in followers.items() if position >= session.needs(mode) and name not in out)
    return pick(fit) if fit else leader
