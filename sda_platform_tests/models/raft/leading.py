"""What a Raft node does while it leads: replication, commits, reads, and membership changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from sda_platform_tests.models.raft.log import Disk, Entry, RegisterRequest, VoterChange
from sda_platform_tests.models.raft.machine import Registers
from sda_platform_tests.models.raft.messages import Append, Appended, Install, Message, RaftRules

HEARTBEAT = 3
"""Steps between two heartbeats; an election timeout is at least three times as long."""


@dataclass(frozen=True)
class PendingRead:
    """A read that waits until a majority answered broadcast ``round_number``, and ``index`` is applied."""

    key: str
    token: int
    round_number: int
    index: int


class LedNode(Protocol):
    """What a leader uses of its node (`raft.node`)."""

    name: str
    disk: Disk
    rules: RaftRules
    machine: Registers
    batch: int
    commit: int
    applied: int
    leading: Leading | None
    outbox: list[tuple[str, Message]]
    answers: list[tuple[int, object]]

    def apply_committed(self) -> None:
        """Apply what is committed, and answer."""

    def step_down(self) -> None:
        """Stop leading in the present term."""


class Leading:
    """The volatile state of a leader. It begins with an entry of its own term, which changes nothing."""

    def __init__(self, node: LedNode, now: int) -> None:
        self._node, self.next_beat = node, now
        self._next, self._match = dict[str, int](), dict[str, int]()
        self._heard: dict[str, int] = dict.fromkeys(node.disk.voters, now)
        self._confirmed, self._round = dict[str, int](), 0
        self._sent_at = dict[str, int]()
        self._waiting: dict[int, int] = {}
        self._reads: list[PendingRead] = []
        self._joining: str | None = None
        self._first = node.disk.last_index + 1
        self._append(None)

    def has_quorum(self, now: int, within: int) -> bool:
        """Whether a majority of the voters was heard in the last ``within`` steps."""
        voters, me = self._node.disk.voters, self._node.name
        return self._is_majority(v for v in voters if v == me or now - self._heard.get(v, -within - 1) <= within)

    def submit(self, request: RegisterRequest, token: int) -> None:
        """Append a change and replicate it with the next broadcast."""
        self._waiting[self._append(request)] = token
        self.next_beat = 0

    def read(self, key: str, token: int, now: int) -> None:
        """Answer after a majority has confirmed the lead; its own term must have a committed entry first."""
        node = self._node
        if not node.rules.confirms_reads:
            node.answers.append((token, node.machine.values.get(key)))
            return
        if node.disk.term_at(node.commit) != node.disk.term:
            return
        self.broadcast(now)
        self._reads.append(PendingRead(key, token, self._round, node.commit))
        self._answer_reads()

    def change_membership(self, voters: frozenset[str], now: int) -> bool:
        """Begin to make ``voters`` the members: one more or one less. A new one votes once it has the committed log.

        False: several change at once, the previous change or an entry of this term is not committed, or too few remain.
        """
        disk, node = self._node.disk, self._node
        if len(voters) < 2 or voters == disk.voters:
            return False
        if node.rules.changes_one_voter:
            pending = any(isinstance(e.command, VoterChange) and e.index > node.commit for e in disk.entries)
            is_settled = disk.term_at(node.commit) == disk.term and not pending and self._joining is None
            if len(voters ^ disk.voters) != 1 or not is_settled:
                return False
            self._joining = next(iter(voters - disk.voters), None)
        if self._joining is None:
            self._append(VoterChange(voters))
        self.broadcast(now)
        return True

    def broadcast(self, now: int) -> None:
        """Send every peer what follows the last entry that it has, or a heartbeat."""
        self._round += 1
        self.next_beat = now + HEARTBEAT
        for peer in self._peers():
            self._send(peer)
        self._advance()

    def on_answer(self, sender: str, answer: Appended, now: int) -> None:
        """A follower answered: move its position, commit, and send more if it lacks some."""
        node = self._node
        self._heard[sender] = now
        self._confirmed[sender] = max(self._confirmed.get(sender, 0), answer.round_number)
        if answer.is_success:
            self._match[sender] = max(self._match.get(sender, 0), answer.index)
            self._next[sender] = max(self._next.get(sender, 1), self._match[sender] + 1)
            if sender == self._joining and self._match[sender] >= node.commit:
                self._joining = None
                self._append(VoterChange(node.disk.voters | {sender}))
        else:
            self._next[sender] = max(answer.index + 1, self._match.get(sender, 0) + 1)
        # Once a step, else old answers would let messages multiply.
        if self._next[sender] <= node.disk.last_index and self._sent_at.get(sender) != now:
            self._sent_at[sender] = now
            self._send(sender)
        self._advance()
        if node.leading is self:
            self._answer_reads()

    def on_applied(self, entry: Entry, answer: object) -> None:
        """An entry was applied: answer its client. A leader that is no voter any more stops."""
        token = self._waiting.pop(entry.index, None)
        if token is not None:
            self._node.answers.append((token, answer))

    def _append(self, command: RegisterRequest | VoterChange | None) -> int:
        disk = self._node.disk
        disk.append([Entry(disk.term, disk.last_index + 1, command)])
        return disk.last_index

    def _peers(self) -> list[str]:
        joining = {self._joining} if self._joining else set()
        return sorted((self._node.disk.voters | joining) - {self._node.name})

    def _send(self, peer: str) -> None:
        node, disk = self._node, self._node.disk
        following = self._next.setdefault(peer, self._first)
        if following <= disk.snapshot.index:
            node.outbox.append((peer, Install(disk.term, disk.snapshot, self._round)))
            return
        term = disk.term_at(following - 1)
        assert term is not None
        entries = disk.following(following - 1, node.batch)
        node.outbox.append((peer, Append(disk.term, following - 1, term, entries, node.commit, self._round)))

    def _advance(self) -> None:
        node, disk = self._node, self._node.disk
        for index in range(disk.last_index, node.commit, -1):
            if node.rules.counts_own_term and disk.term_at(index) != disk.term:
                break
            if self._is_majority(v for v in disk.voters if v == node.name or self._match.get(v, 0) >= index):
                node.commit = index
                node.apply_committed()
                self.next_beat = 0
                break
        is_removed = node.name not in disk.voters
        if is_removed and not any(isinstance(e.command, VoterChange) and e.index > node.commit for e in disk.entries):
            node.step_down()

    def _answer_reads(self) -> None:
        node = self._node
        for read in list(self._reads):
            confirmed = (v for v in node.disk.voters
                         if v == node.name or self._confirmed.get(v, 0) >= read.round_number)  # fmt: skip
            if node.applied >= read.index and self._is_majority(confirmed):
                self._reads.remove(read)
                node.answers.append((read.token, node.machine.values.get(read.key)))

    def _is_majority(self, some: Iterable[str]) -> bool:
        return 2 * len(list(some)) > len(self._node.disk.voters)
