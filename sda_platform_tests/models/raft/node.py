"""One Raft node as a pure state machine: messages and moments in; messages, answers and applied entries out.

Election with pre-vote, replication, one-voter membership changes, snapshots, check-quorum and reads by read-index.
Time is passed in, in steps. A crash drops the node and keeps its `Disk`. Each call is atomic: what a reply depends on
is on the disk before the reply leaves.
"""

from __future__ import annotations

import random
from typing import Final

from sda_platform_tests.models.raft.leading import Leading
from sda_platform_tests.models.raft.log import Disk, Entry, RegisterRequest, Snapshot, VoterChange
from sda_platform_tests.models.raft.machine import Registers
from sda_platform_tests.models.raft.messages import (
    Append,
    Appended,
    Install,
    Message,
    RaftRules,
    Vote,
    VoteRequest,
)

ELECTION: Final = (10, 20)
"""The least and the greatest election timeout, steps."""


class RaftNode:
    """A node with its disk. ``batch``: entries a message; ``compact_at``: entries in the log that cause a snapshot."""

    def __init__(
        self, name: str, disk: Disk, chance: random.Random, now: int, rules: RaftRules, *, batch: int = 8,
        compact_at: int = 1000, election: tuple[int, int] = ELECTION,
    ) -> None:  # fmt: skip
        self.name, self.disk, self.rules = name, disk, rules
        self.batch, self.compact_at, self.election = batch, compact_at, election
        if not rules.stores_votes:
            disk.voted_for = None
        self.outbox: list[tuple[str, Message]] = []
        self.answers: list[tuple[int, object]] = []
        self.applied_entries: list[tuple[Entry, bool]] = []
        self.leader: str | None = None
        self.leading: Leading | None = None
        self.commit = self.applied = disk.snapshot.index
        self.machine = Registers.of(disk.snapshot, remembers=rules.remembers_requests)
        self._chance, self._heard_leader, self._now = chance, -election[0], now
        self._trial_term, self._is_trial, self._votes = 0, False, set[str]()
        self._rest(now)

    def tick(self, now: int) -> None:
        """Do what is due: beat, step down without a majority, or ask for votes."""
        self._now = now
        if self.leading is not None:
            if self.rules.checks_quorum and not self.leading.has_quorum(now, self.election[1]):
                self._follow(self.disk.term, None, now)
            elif now >= self.leading.next_beat:
                self.leading.broadcast(now)
        elif now >= self._deadline:
            self._rest(now)
            if self.name in self.disk.voters:
                self._ask_for_votes(now, is_trial=self.rules.tries_votes_first)

    def receive(self, sender: str, message: Message, now: int) -> None:
        """Take one message."""
        self._now = now
        if isinstance(message, VoteRequest):
            self._on_vote_request(sender, message, now)
            return
        is_granted_trial = isinstance(message, Vote) and message.is_trial and message.is_granted
        if message.term > self.disk.term and not is_granted_trial:
            self._follow(message.term, None, now)
        if isinstance(message, Vote):
            self._on_vote(sender, message, now)
        elif isinstance(message, Append | Install):
            self._on_append(sender, message, now)
        elif self.leading is not None and message.term == self.disk.term:
            self.leading.on_answer(sender, message, now)

    def submit(self, request: RegisterRequest, token: int) -> bool:
        """Take a change; its answer appears later in ``answers`` under ``token``. False: this node does not lead."""
        if self.leading is None:
            return False
        self.leading.submit(request, token)
        return True

    def read(self, key: str, token: int, now: int) -> bool:
        """Take a read; the answer appears as that of `submit` does."""
        if self.leading is None:
            return False
        self.leading.read(key, token, now)
        return True

    def change_membership(self, voters: frozenset[str], now: int) -> bool:
        """Begin to make ``voters`` the members; False: not leading, or not now (see `Leading.change_membership`)."""
        return self.leading is not None and self.leading.change_membership(voters, now)

    def apply_committed(self) -> None:
        """Apply what is committed, answer, and make a snapshot if the log is long."""
        while self.applied < self.commit:
            entry = self.disk.entry(self.applied + 1)
            self.applied = entry.index
            answer, is_first = None, True
            if isinstance(entry.command, RegisterRequest):
                answer, is_first = self.machine.apply(entry.command)
            self.applied_entries.append((entry, is_first))
            if self.leading is not None:
                self.leading.on_applied(entry, answer)
        if self.applied - self.disk.snapshot.index >= self.compact_at:
            self.disk.compact(self._snapshot())

    def step_down(self) -> None:
        """Stop leading in the present term."""
        self._follow(self.disk.term, None, self._now)

    def _snapshot(self) -> Snapshot:
        term = self.disk.term_at(self.applied)
        assert term is not None
        named = [e.command.voters for e in self.disk.entries
                 if e.index <= self.applied and isinstance(e.command, VoterChange)]  # fmt: skip
        sessions = dict(self.machine.sessions) if self.rules.snapshot_has_sessions else {}
        voters = named[-1] if named else self.disk.snapshot.voters
        return Snapshot(self.applied, term, voters, dict(self.machine.values), sessions)

    def _rest(self, now: int) -> None:
        self._deadline = now + self._chance.randint(*self.election)

    def _follow(self, term: int, leader: str | None, now: int) -> None:
        if term > self.disk.term:
            self.disk.term, self.disk.voted_for = term, None
        if self.leading is not None:
            self._rest(now)
        self.leading, self.leader, self._votes = None, leader, set()

    def _ask_for_votes(self, now: int, *, is_trial: bool) -> None:
        self.leader = None
        self._trial_term = self.disk.term + 1
        if not is_trial:
            self.disk.term, self.disk.voted_for = self._trial_term, self.name
        self._votes, self._is_trial = {self.name}, is_trial
        question = VoteRequest(self._trial_term, self.disk.last_index, self.disk.last_term, is_trial)
        self.outbox += [(peer, question) for peer in sorted(self.disk.voters - {self.name})]
        self._count_votes(now)

    def _on_vote_request(self, sender: str, asked: VoteRequest, now: int) -> None:
        # Whoever hears a leader does not help to replace it: so a removed or returning node disturbs nobody.
        is_sticky = self.rules.tries_votes_first and (
            self.leading is not None or now - self._heard_leader < self.election[0]
        )
        if asked.is_trial or is_sticky:
            is_granted = not is_sticky and asked.term > self.disk.term and self._is_new_enough(asked)
            term = asked.term if is_granted else self.disk.term
            self.outbox.append((sender, Vote(term, is_granted, asked.is_trial)))
            return
        if asked.term > self.disk.term:
            self._follow(asked.term, None, now)
        is_free = self.disk.voted_for in (None, sender)
        is_granted = asked.term == self.disk.term and is_free and self._is_new_enough(asked)
        if is_granted:
            self.disk.voted_for = sender
            self._rest(now)
        self.outbox.append((sender, Vote(self.disk.term, is_granted, False)))

    def _is_new_enough(self, asked: VoteRequest) -> bool:
        mine = self.disk.last_term, self.disk.last_index
        return not self.rules.restricts_elections or (asked.last_term, asked.last_index) >= mine

    def _on_vote(self, sender: str, vote: Vote, now: int) -> None:
        expected = self._trial_term if vote.is_trial else self.disk.term
        if vote.is_granted and self._votes and vote.is_trial == self._is_trial and vote.term == expected:
            self._votes.add(sender)
            self._count_votes(now)

    def _count_votes(self, now: int) -> None:
        voters = self.disk.voters
        if len(self._votes & voters) * 2 <= len(voters):
            return
        if self._is_trial:
            # A newer term may have come since the question.
            if self._trial_term == self.disk.term + 1:
                self._ask_for_votes(now, is_trial=False)
            return
        self._votes, self.leader = set(), self.name
        self.leading = Leading(self, now)

    def _on_append(self, sender: str, message: Append | Install, now: int) -> None:
        if message.term < self.disk.term:
            self.outbox.append((sender, Appended(self.disk.term, False, 0, message.round_number)))
            return
        self._follow(message.term, sender, now)
        self._heard_leader = now
        self._rest(now)
        accepted = self._install(message) if isinstance(message, Install) else self._append(message)
        is_success, index = accepted
        self.outbox.append((sender, Appended(self.disk.term, is_success, index, message.round_number)))

    def _append(self, message: Append) -> tuple[bool, int]:
        disk, previous = self.disk, message.previous_index
        is_known = previous < disk.snapshot.index or disk.term_at(previous) == message.previous_term
        if not is_known and (self.rules.verifies_previous or previous > disk.last_index):
            return False, min(previous - 1, self.commit)
        disk.append(message.entries)
        verified = previous + len(message.entries)
        bound = verified if self.rules.bounds_commit else disk.last_index
        self.commit = max(self.commit, min(message.commit, bound, disk.last_index))
        self.apply_committed()
        return True, verified

    def _install(self, message: Install) -> tuple[bool, int]:
        snapshot = message.snapshot
        if snapshot.index > self.commit:
            self.disk.compact(snapshot)
            self.machine = Registers.of(snapshot, remembers=self.rules.remembers_requests)
            self.commit = self.applied = snapshot.index
        return True, snapshot.index
