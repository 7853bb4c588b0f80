"""The durable part of a Raft node: term, vote, log and snapshot. Positions count from 1 and survive compaction.

Source: Ongaro & Ousterhout, In search of an understandable consensus algorithm (2014), extended version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RegisterRequest:
    """A change of one register by a client; client and number identify it, so that a retry applies once."""

    client: int
    number: int
    key: str
    kind: str
    value: object
    expected: object = None


@dataclass(frozen=True)
class VoterChange:
    """The voters from this entry on: in force once it is in the log (Ongaro's dissertation, 2014)."""

    voters: frozenset[str]


@dataclass(frozen=True)
class Entry:
    """One position of the log; ``command`` None is the first entry of a leader, which changes nothing."""

    term: int
    index: int
    command: RegisterRequest | VoterChange | None


@dataclass(frozen=True)
class Snapshot:
    """The state after the entry ``index``: registers, what was answered to each client, and the voters."""

    index: int
    term: int
    voters: frozenset[str]
    registers: Mapping[str, object]
    sessions: Mapping[int, tuple[int, object]]


@dataclass
class Disk:
    """What a crash leaves. ``entries`` follow the snapshot without a gap."""

    snapshot: Snapshot
    term: int = 0
    voted_for: str | None = None
    entries: list[Entry] = field(default_factory=list)

    @property
    def last_index(self) -> int:
        """The position of the newest entry; never the length of the log, which compaction shortens."""
        return self.snapshot.index + len(self.entries)

    @property
    def last_term(self) -> int:
        """The term of the newest entry."""
        return self.entries[-1].term if self.entries else self.snapshot.term

    @property
    def voters(self) -> frozenset[str]:
        """The voters by the newest entry that names them, committed or not."""
        return next((e.command.voters for e in reversed(self.entries) if isinstance(e.command, VoterChange)),
                    self.snapshot.voters)  # fmt: skip

    def term_at(self, index: int) -> int | None:
        """The term of the entry at ``index``; None where there is none, or it is compacted and not the last such."""
        if index == self.snapshot.index:
            return self.snapshot.term
        return self.entries[index - self.snapshot.index - 1].term if self._has(index) else None

    def entry(self, index: int) -> Entry:
        """The entry at ``index``. Raises LookupError for one that is not here."""
        if not self._has(index):
            raise LookupError(f"no entry {index} between {self.snapshot.index + 1} and {self.last_index}")
        return self.entries[index - self.snapshot.index - 1]

    def following(self, index: int, at_most: int) -> tuple[Entry, ...]:
        """Up to ``at_most`` entries after ``index``, which is not before the snapshot."""
        first = index - self.snapshot.index
        return tuple(self.entries[first : first + at_most])

    def append(self, entries: Iterable[Entry]) -> None:
        """Take entries of a leader: those that conflict with them, and all that follow, are dropped first."""
        for entry in entries:
            if entry.index <= self.snapshot.index or self.term_at(entry.index) == entry.term:
                continue
            del self.entries[entry.index - self.snapshot.index - 1 :]
            self.entries.append(entry)

    def compact(self, snapshot: Snapshot) -> None:
        """Replace everything up to ``snapshot`` by it; entries after it stay if they continue it."""
        continues = self.term_at(snapshot.index) == snapshot.term
        self.entries = self.entries[snapshot.index - self.snapshot.index :] if continues else []
        self.snapshot = snapshot

    def _has(self, index: int) -> bool:
        return self.snapshot.index < index <= self.last_index
