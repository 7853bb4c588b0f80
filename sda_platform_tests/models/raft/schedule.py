"""Seeded schedules of the Raft model: five nodes, clients, and faults; every step is checked.

A schedule is a function of its seed: size of the cluster, loss, delays, batches, snapshots, faults and requests. The
last part is calm: all nodes run and reach each other, so that the cluster must elect, catch up and answer.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Final

from sda_platform_tests.models.linearizability import Undecided, unlinearizable_keys
from sda_platform_tests.models.raft.clients import Clients
from sda_platform_tests.models.raft.invariants import Invariants
from sda_platform_tests.models.raft.log import Disk, Snapshot
from sda_platform_tests.models.raft.messages import RaftRules, Vote
from sda_platform_tests.models.raft.network import Network
from sda_platform_tests.models.raft.node import ELECTION, RaftNode

STEPS: Final = 500
_CALM_FROM: Final = 0.7
_QUIET_FROM: Final = 0.85
"""From which share of the steps on there are no faults, and no new requests."""
_FAULTS: Final = ("crash", "crash", "pause", "split", "split", "alone", "one way", "heal", "heal", "heal")
_NAMES: Final = ("n0", "n1", "n2", "n3", "n4")


@dataclass(frozen=True)
class RaftOutcome:
    """What a schedule did. ``violations``: what broke, in words; empty: nothing."""

    seed: int
    leaders: int
    applied: int
    answered: int
    unknown: int
    crashes: int
    snapshots_installed: int
    membership_changes: int
    violations: tuple[str, ...]


def run(seed: int, *, steps: int = STEPS, rules: RaftRules | None = None) -> RaftOutcome:
    """Carry out the schedule of ``seed``; ``rules`` may lack one, which is a planted bug."""
    return _Schedule(seed, rules or RaftRules()).carried_out(steps)


class _Schedule:
    def __init__(self, seed: int, rules: RaftRules) -> None:
        self.seed, self.rules, self.chance = seed, rules, random.Random(seed)
        chance = self.chance
        voters = frozenset(_NAMES[: chance.choice([3, 5])])
        self.batch, self.compact_at = chance.choice([1, 2, 8]), chance.choice([4, 12, 1000])
        self.election = chance.choice([ELECTION, (10, 12)])
        self.network = Network(
            chance, chance.choice([0.0, 0.05, 0.2]), chance.choice([0.0, 0.1]), chance.choice([1, 3, 6])
        )
        self.disks = {name: Disk(Snapshot(0, 0, voters, {}, {})) for name in _NAMES}
        self.nodes: dict[str, RaftNode] = {}
        self.back_at: dict[str, int] = dict.fromkeys(_NAMES, 0)
        self.paused_until: dict[str, int] = dict.fromkeys(_NAMES, 0)
        self.alone_since: dict[str, int] = {}
        self.alone_terms: dict[str, int] = {}
        # Chances a step: of a fault, of a crash right after a vote or a commit, of a change of the members.
        self.rates = chance.choice([0.01, 0.03]), chance.choice([0.0, 0.1]), chance.choice([0.0, 0.02])
        if chance.random() < 0.5:
            # Leaders follow each other quickly, each with entries that few have: figure 8 of the paper.
            self.rates = 0.12, 0.3, self.rates[2]
            self.batch = 1
        # Safety must not depend on pre-vote, which makes elections rare.
        self.has_pre_vote = chance.random() < 0.5
        if not self.has_pre_vote:
            self.rules = replace(rules, tries_votes_first=False)
        self.invariants, self.clients = Invariants(), Clients(chance)
        self.crashes = self.installed = self.changes = self.quiet_from = 0

    def carried_out(self, steps: int) -> RaftOutcome:
        calm_from, self.quiet_from = int(steps * _CALM_FROM), int(steps * _QUIET_FROM)
        try:
            for now in range(steps):
                if now == calm_from:
                    self._calm(now)
                self._step(now, is_calm=now >= calm_from)
            self._end()
        except LookupError as error:
            self.invariants.violations.append(f"a node lost an entry that it needs: {error}")
        if not self.invariants.violations:
            # The search for an order is long where none exists; what broke first is the finding.
            self._judge_history()
        return RaftOutcome(
            self.seed, len(self.invariants.leaders), len(self.invariants.applied), self.clients.answered,
            self.clients.unknown, self.crashes, self.installed, self.changes, tuple(self.invariants.violations),
        )  # fmt: skip

    def _judge_history(self) -> None:
        try:
            broken = unlinearizable_keys(self.clients.history())
        except Undecided as error:
            self.invariants.violations.append(str(error))
            return
        self.invariants.violations += [f"the history of register {key} is not linearizable" for key in broken]

    def _step(self, now: int, *, is_calm: bool) -> None:
        for name in _NAMES:
            if name not in self.nodes and now >= self.back_at[name]:
                self.nodes[name] = RaftNode(
                    name, self.disks[name], self.chance, now, self.rules,
                    batch=self.batch, compact_at=self.compact_at, election=self.election,
                )  # fmt: skip
        if not is_calm:
            self._fault(now)
            self._change_membership(now)
        for sender, target, message in self.network.arriving(now):
            node = self.nodes.get(target)
            if node is not None and now >= self.paused_until[target]:
                before = node.disk.snapshot.index, node.applied
                node.receive(sender, message, now)
                self.installed += node.disk.snapshot.index > before[1]
                self._after(node, now, is_calm=is_calm)
        for name in _NAMES:
            if name in self.nodes and now >= self.paused_until[name]:
                self.nodes[name].tick(now)
                self._after(self.nodes[name], now, is_calm=is_calm)
        self.clients.act(self.nodes, now, may_begin=now < self.quiet_from)
        for node in list(self.nodes.values()):
            self._after(node, now, is_calm=is_calm)

    def _after(self, node: RaftNode, now: int, *, is_calm: bool) -> None:
        """Check a node that has acted, send what it says, and perhaps let it crash at a bad moment."""
        invariants = self.invariants
        has_applied, has_voted = bool(node.applied_entries), False
        if node.leading is not None:
            invariants.check_leader(node)
            invariants.check_alone_leader(node, self.alone_since.get(node.name, now), now, 2 * node.election[1] + 6)
        if self.has_pre_vote:
            invariants.check_alone(self.alone_terms, node)
        invariants.take_applied(node)
        invariants.check_log(node)
        self.clients.take_answers(node, now)
        for target, message in node.outbox:
            has_voted |= isinstance(message, Vote) and message.is_granted and not message.is_trial
            self.network.send(node.name, target, message, now)
        node.outbox.clear()
        is_bad_moment = has_voted or (has_applied and node.leading is not None)
        if not is_calm and is_bad_moment and self.chance.random() < self.rates[1]:
            self._crash(node.name, now, self.chance.choice([1, 15, 40]))

    def _fault(self, now: int) -> None:
        chance = self.chance
        if chance.random() < self.rates[0]:
            kind, name = chance.choice(_FAULTS), self._victim()
            if kind == "crash":
                self._crash(name, now, chance.randint(1, 40))
            elif kind == "pause":
                self.paused_until[name] = now + chance.randint(5, 50)
            elif kind == "one way":
                self.network.cut(name, chance.choice(_NAMES))
            elif kind == "heal":
                self.network.heal()
            else:
                self.network.partition({name, chance.choice(_NAMES)} if kind == "split" else {name})
        self._note_alone(now)

    def _victim(self) -> str:
        """A leader, half the time."""
        leading = [name for name, node in self.nodes.items() if node.leading is not None]
        return self.chance.choice(leading if leading and self.chance.random() < 0.5 else _NAMES)

    def _note_alone(self, now: int) -> None:
        """Who reaches no other node, since when, and its term once nothing for it is on its way."""
        for name in _NAMES:
            is_alone = (
                name in self.nodes
                and len(self.disks[name].voters) > 1
                and not any(
                    self.network.reaches(a, b)
                    for other in _NAMES
                    if other != name
                    for a, b in ((other, name), (name, other))
                )
            )
            if not is_alone or now < self.paused_until[name]:
                self.alone_since.pop(name, None)
                self.alone_terms.pop(name, None)
            elif now - self.alone_since.setdefault(name, now) == 1:
                self.alone_terms[name] = self.disks[name].term

    def _crash(self, name: str, now: int, steps: int) -> None:
        if self.nodes.pop(name, None) is not None:
            self.crashes += 1
            self.back_at[name] = now + steps
            self.alone_since.pop(name, None)
            self.alone_terms.pop(name, None)

    def _change_membership(self, now: int) -> None:
        if self.chance.random() >= self.rates[2]:
            return
        for node in list(self.nodes.values()):
            one, several = {self.chance.choice(_NAMES)}, self.chance.sample(_NAMES, 3)
            voters = node.disk.voters ^ one if self.chance.random() < 0.7 else frozenset(several)
            self.changes += node.change_membership(frozenset(voters), now)

    def _calm(self, now: int) -> None:
        self.network.heal()
        self.network.loss, self.network.slowest = 0.0, 2
        self.batch, self.election = 8, ELECTION
        for node in self.nodes.values():
            node.batch, node.election = 8, ELECTION
        self.alone_since, self.alone_terms = {}, {}
        self.back_at, self.paused_until = dict.fromkeys(_NAMES, now), dict.fromkeys(_NAMES, now)

    def _end(self) -> None:
        """After the calm part: one leader, whose log every voter has applied.

        Without pre-vote a removed node disturbs the others for ever, so that nothing is promised.
        """
        invariants = self.invariants
        if not self.has_pre_vote:
            return
        leading = [node for node in self.nodes.values() if node.leading is not None]
        newest = max(leading, key=lambda node: node.disk.term, default=None)
        if newest is None:
            invariants.violations.append("no leader at the end of the calm part")
            return
        voters = [self.nodes[name] for name in sorted(newest.disk.voters)]
        behind = [node.name for node in voters if node.applied < newest.commit]
        if behind or newest.disk.term_at(newest.commit) != newest.disk.term:
            invariants.violations.append(f"{', '.join(behind) or newest.name} did not catch up in the calm part")
