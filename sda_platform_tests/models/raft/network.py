"""The network of the Raft model: it delays, loses, repeats and reorders messages, and separates nodes."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sda_platform_tests.models.raft.messages import Message


@dataclass
class Network:
    """Messages on their way. ``loss`` and ``repeat`` are chances; delays are 1 to ``slowest`` steps."""

    chance: random.Random
    loss: float = 0.0
    repeat: float = 0.0
    slowest: int = 3
    _waiting: list[tuple[int, int, str, str, Message]] = field(default_factory=list)
    _sent: int = 0
    _group: dict[str, int] = field(default_factory=dict)
    _cut: set[tuple[str, str]] = field(default_factory=set)

    def partition(self, *groups: Iterable[str]) -> None:
        """Separate the groups from each other in both directions; nodes in none form one together."""
        self._group = {name: number for number, group in enumerate(groups, start=1) for name in group}

    def cut(self, sender: str, target: str) -> None:
        """Lose what ``sender`` sends to ``target``; the other direction stays."""
        self._cut.add((sender, target))

    def heal(self) -> None:
        """Connect all nodes again."""
        self._group, self._cut = {}, set()

    def reaches(self, sender: str, target: str) -> bool:
        """Whether messages pass from one to the other."""
        is_together = self._group.get(sender, 0) == self._group.get(target, 0)
        return is_together and (sender, target) not in self._cut

    def send(self, sender: str, target: str, message: Message, now: int) -> None:
        """Put a message on its way, or lose it."""
        copies = 0 if self.chance.random() < self.loss else 2 if self.chance.random() < self.repeat else 1
        for _ in range(copies):
            self._sent += 1
            arrival = now + self.chance.randint(1, self.slowest)
            heapq.heappush(self._waiting, (arrival, self._sent, sender, target, message))

    def arriving(self, now: int) -> Iterator[tuple[str, str, Message]]:
        """Sender, target and message of what arrives by ``now``; what meets a separation is lost."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, sender, target, message = heapq.heappop(self._waiting)
            if self.reaches(sender, target):
                yield sender, target, message
