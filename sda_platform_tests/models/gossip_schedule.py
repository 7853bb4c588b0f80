"""Seeded schedules of membership by gossip: lost messages, nodes that stop, and a cut network that heals."""

from __future__ import annotations

import random
from dataclasses import dataclass

from sda_platform.formats.membership_events import ALIVE
from sda_platform.ground.membership import Membership
from sda_platform_tests.models.gossip_model import Fleet


@dataclass(frozen=True)
class GossipSchedule:
    """What a schedule did, and what broke."""

    seed: int
    rounds: int
    faults: int
    violations: tuple[str, ...]


def run(seed: int, *, probes_dead: bool = True, refutes: bool = True) -> GossipSchedule:
    """Twelve to thirty nodes: an update spreads, some nodes stop, the network is cut in two and healed.

    ``probes_dead`` and ``refutes`` off are planted bugs: two sides that parted hold each other dead for ever.
    """
    chance = random.Random(seed)
    loss = chance.choice([0.0, 0.05, 0.2])
    fleet = Fleet(chance.randint(12, 30), seed, loss=loss, probes_dead=probes_dead, refutes=refutes)
    found = []
    news = Membership(1, ALIVE)
    fleet.nodes[0].view[0] = news
    if fleet.rounds_until(lambda: fleet.knows(0, news)) > 8:
        found.append("an update was not everywhere within eight rounds")
    for _ in range(20):
        fleet.round()
    if fleet.false_deaths():
        found.append("a node in service was held dead")
    stopped = chance.sample(range(1, fleet.size), chance.randint(1, 3))
    for number in stopped:
        fleet.nodes[number].is_up = False
    if fleet.rounds_until(lambda: all(fleet.holds_dead(number) for number in stopped)) >= 100:
        found.append("a stopped node was not held dead everywhere")
    cut = chance.randint(1, fleet.size - 1)
    fleet.groups = [int(number < cut) for number in range(fleet.size)]
    for _ in range(40):
        fleet.round()
    fleet.groups = [0] * fleet.size
    if fleet.rounds_until(lambda: not fleet.false_deaths()) >= 100:
        found.append("two sides of a healed network hold each other dead")
    return GossipSchedule(seed, fleet.now, len(stopped) + 1, tuple(found))
