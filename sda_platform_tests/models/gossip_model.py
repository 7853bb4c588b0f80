"""A deterministic model of membership by gossip: how fast a fleet learns of a change, at what cost, with false alarms.

The platform runs Serf where it needs such a membership. The model verifies the numbers that are expected of it: SWIM
probes (Das et al. 2002) with indirect probes, suspicion and refutation, and push-pull exchanges (Demers et al. 1987).
A round is one period of every node, in a seeded order.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from sda_platform.formats.membership_events import ALIVE, DEAD, SUSPECTED
from sda_platform.ground.membership import Membership

_BYTES_PER_MEMBER: Final = 100
_DEAD_PROBE_SHARE: Final = 0.05


@dataclass
class GossipNode:
    """One node's view; ``suspected_since`` counts rounds and is local."""

    name: int
    view: dict[int, Membership]
    is_up: bool = True
    refutes: bool = True
    suspected_since: dict[int, int] = field(default_factory=dict)

    def learn(self, member: int, claim: Membership) -> None:
        """Merge a claim. A claim that this node itself is not alive is refuted with a newer generation."""
        if self.refutes and member == self.name and claim.status != ALIVE and claim >= self.view[member]:
            claim = Membership(claim.generation + 1, ALIVE)
        self.view[member] = max(self.view.get(member, claim), claim)


@dataclass(frozen=True)
class GossipOutcome:
    """What a run measured: ``rounds`` until every node in service had the update, bytes, and live members held dead."""

    seed: int
    rounds: int
    bytes_per_node: int
    bytes_per_round: int
    false_deaths: int
    detection_rounds: int


@dataclass
class Fleet:
    """``size`` nodes that belong by the registry; gossip adds none.

    Without ``probes_dead`` members that are held dead are not contacted. This is a planted bug, as are nodes
    that do not refute.
    """

    size: int
    seed: int
    fanout: int = 3
    indirect: int = 3
    suspicion_rounds: int = 10
    loss: float = 0.0
    probes_dead: bool = True
    refutes: bool = True
    nodes: list[GossipNode] = field(init=False)
    groups: list[int] = field(init=False)
    sent_bytes: int = 0
    now: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.nodes = [self._node(number) for number in range(self.size)]
        self.groups = [0] * self.size

    def _node(self, number: int) -> GossipNode:
        return GossipNode(number, dict.fromkeys(range(self.size), Membership()), refutes=self.refutes)

    def round(self) -> None:
        """Every node that is up probes one member and exchanges views with ``fanout`` others."""
        self.now += 1
        for number in self.chance.sample(range(self.size), self.size):
            node = self.nodes[number]
            if node.is_up:
                self._probe(node)
                self._exchange(node)
                self._expire(node)

    def knows(self, member: int, claim: Membership) -> bool:
        """Whether every node that is up holds ``claim``, or a greater one, of ``member``."""
        return all(node.view[member] >= claim for node in self.nodes if node.is_up)

    def rounds_until(self, holds: Callable[[], bool], most: int = 100) -> int:
        """Rounds until ``holds`` is true, at most ``most``."""
        for count in range(most):
            if holds():
                return count
            self.round()
        return most

    def holds_dead(self, member: int) -> bool:
        """Whether every node that is up holds ``member`` dead."""
        return all(node.view[member].status == DEAD for node in self.nodes if node.is_up)

    def false_deaths(self) -> int:
        """Views in which a node that is up is held dead."""
        return sum(
            node.view[other.name].status == DEAD
            for node in self.nodes
            for other in self.nodes
            if node.is_up and other.is_up
        )

    def _reaches(self, one: int, other: int) -> bool:
        """Whether a message and its answer pass."""
        is_up = self.nodes[one].is_up and self.nodes[other].is_up
        is_lost = self.chance.random() < self.loss or self.chance.random() < self.loss
        return is_up and self.groups[one] == self.groups[other] and not is_lost

    def _probe(self, node: GossipNode) -> None:
        target = self._peer(node)
        if target is None:
            return
        reached = self._reaches(node.name, target)
        others = [n for n in range(self.size) if n not in (node.name, target) and node.view[n].status != DEAD]
        for helper in self.chance.sample(others, min(self.indirect, len(others))) if not reached else []:
            reached = reached or (self._reaches(node.name, helper) and self._reaches(helper, target))
        claim = node.view[target]
        if not reached and claim.status == ALIVE:
            node.learn(target, replace(claim, status=SUSPECTED))
        elif reached and claim.status != ALIVE:
            # The target learns what is claimed of it, and refutes.
            self.nodes[target].learn(target, claim)
            node.learn(target, self.nodes[target].view[target])

    def _exchange(self, node: GossipNode) -> None:
        for _ in range(self.fanout):
            peer = self._peer(node)
            if peer is None or not self._reaches(node.name, peer):
                continue
            other = self.nodes[peer]
            self.sent_bytes += 2 * self.size * _BYTES_PER_MEMBER
            for member in range(self.size):
                mine, theirs = node.view[member], other.view[member]
                if mine != theirs:
                    node.learn(member, theirs)
                    other.learn(member, mine)

    def _expire(self, node: GossipNode) -> None:
        for member, claim in node.view.items():
            if claim.status != SUSPECTED:
                node.suspected_since.pop(member, None)
            elif self.now - node.suspected_since.setdefault(member, self.now) >= self.suspicion_rounds:
                node.view[member] = replace(claim, status=DEAD)

    def _peer(self, node: GossipNode) -> int | None:
        """A member that is not held dead; now and then a dead one, so that two sides that parted meet again."""
        wants_dead = self.chance.random() < _DEAD_PROBE_SHARE and self.probes_dead
        for _ in range(20):
            found = self.chance.randrange(self.size)
            if found != node.name and (wants_dead or node.view[found].status != DEAD):
                return found
        return None


def spread(size: int, seed: int, *, fanout: int = 3, loss: float = 0.0) -> GossipOutcome:
    """One update from one node to all; then one node stops: how many rounds each takes, and what it costs."""
    fleet = Fleet(size, seed, fanout=fanout, loss=loss)
    news = Membership(1, ALIVE)
    fleet.nodes[0].view[0] = news
    rounds = fleet.rounds_until(lambda: fleet.knows(0, news))
    per_round = fleet.sent_bytes // max(rounds, 1)
    fleet.nodes[size - 1].is_up = False
    detection = fleet.rounds_until(lambda: fleet.holds_dead(size - 1))
    return GossipOutcome(seed, rounds, size * _BYTES_PER_MEMBER, per_round, fleet.false_deaths(), detection)
