"""What must hold in every state of the Raft model, checked after each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sda_platform_tests.models.raft.log import Entry, RegisterRequest
from sda_platform_tests.models.raft.node import RaftNode


@dataclass
class Invariants:
    """The record of leaders and applied entries; ``violations`` name what broke, each once."""

    violations: list[str] = field(default_factory=list)
    leaders: dict[int, str] = field(default_factory=dict)
    applied: dict[int, Entry] = field(default_factory=dict)
    _effects: dict[tuple[int, int], int] = field(default_factory=dict)
    _logs: dict[str, list[Entry]] = field(default_factory=dict)
    _links: dict[tuple[int, int], tuple[Entry, int]] = field(default_factory=dict)

    def check_leader(self, node: RaftNode) -> None:
        """At most one leader a term; a new one has every applied entry (leader completeness)."""
        known = self.leaders.get(node.disk.term)
        if known == node.name:
            return
        if known is not None:
            self._broken(f"two leaders in term {node.disk.term}: {known} and {node.name}")
        self.leaders[node.disk.term] = node.name
        for index, entry in self.applied.items():
            if index > node.disk.snapshot.index and node.disk.term_at(index) != entry.term:
                self._broken(f"{node.name} leads term {node.disk.term} without the committed entry {index}")
                return

    def take_applied(self, node: RaftNode) -> None:
        """No two nodes apply different entries at one index, and no request takes effect at two."""
        for entry, is_first in node.applied_entries:
            known = self.applied.setdefault(entry.index, entry)
            if known != entry:
                self._broken(f"{node.name} applied another entry at {entry.index} than a node before it")
            if isinstance(entry.command, RegisterRequest) and is_first:
                identity = entry.command.client, entry.command.number
                if self._effects.setdefault(identity, entry.index) != entry.index:
                    self._broken(f"request {identity} took effect at {self._effects[identity]} and {entry.index}")
        node.applied_entries.clear()

    def check_log(self, node: RaftNode) -> None:
        """Any two logs, at any times, that agree on the term at an index agree up to it (log matching).

        That is: every log has the same entry at an index and term, and the same term before it.
        """
        entries, known = node.disk.entries, self._logs.get(node.name, [])
        if entries == known:
            return
        self._logs[node.name] = list(entries)
        same = next((place for place, pair in enumerate(zip(entries, known, strict=False)) if pair[0] != pair[1]), None)
        first = min(len(entries), len(known)) if same is None else same
        before = entries[first - 1].term if first else node.disk.snapshot.term
        for entry in entries[first:]:
            expected = self._links.setdefault((entry.term, entry.index), (entry, before))
            if expected != (entry, before):
                self._broken(f"the log of {node.name} differs from another one up to entry {entry.index}, of one term")
            before = entry.term

    def check_alone(self, alone_terms: Mapping[str, int], node: RaftNode) -> None:
        """A node that reaches no majority raises no term."""
        term = alone_terms.get(node.name)
        if term is not None and node.disk.term > term:
            self._broken(f"{node.name} raised its term from {term} to {node.disk.term} without a majority")

    def check_alone_leader(self, node: RaftNode, since: int, now: int, bound: int) -> None:
        """A leader that reaches no majority stops within ``bound`` steps."""
        if now - since > bound and node.leading is not None:
            self._broken(f"{node.name} led for {now - since} steps without a majority")

    def _broken(self, what: str) -> None:
        if len(self.violations) < 5:
            self.violations.append(what)
