"""Random histories of station state in a model of its servers: writes, lag, cuts and a promotion between any two steps.

The code under test is the platform's; a statement is answered by the model in the place of PostgreSQL.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from sda_platform.ground import station_state
from sda_platform.ground.read_routing import ReadMode, ReadSession
from sda_platform.ground.station_state import MOST_LAG_S, StationState
from sda_platform.lake.errors import Unavailable
from sda_platform_tests.support.planted_reads import PositionBeforeAnswer

HISTORIES = 1000
SERVERS = ("r0", "r1", "r2")


@dataclass
class Servers:
    """A log of writes by time, and how far each server has it; r0 leads until r1 is promoted, then r2 follows r1."""

    chance: random.Random
    now_s: float = 0.0
    log: list[float] = field(default_factory=list)
    applied: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SERVERS, 0))
    leader: str = "r0"
    cut: set[str] = field(default_factory=set)

    def others_act(self) -> None:
        """What happens between two statements of the reader."""
        self.now_s += self.chance.choice((0.0, 0.1, 0.7))
        if self.chance.random() < 0.3:
            self.write()
        if self.chance.random() < 0.3:
            self.applied["r2"] = self.chance.randint(self.applied["r2"], len(self.log))
        if self.chance.random() < 0.02:
            self.leader = "r1"
        if self.chance.random() < 0.1:
            self.cut = {name for name in SERVERS if self.chance.random() < 0.4}

    def write(self) -> None:
        """An acknowledged write: the leader and its synchronous follower have it."""
        self.log.append(self.now_s)
        for name in (self.leader, "r1" if self.leader == "r0" else "r2"):
            self.applied[name] = len(self.log)

    def answer(self, name: str, statement: str) -> list[list[object]]:
        """What the server ``name`` answers; a value is the number of writes that it shows."""
        self.others_act()
        leads, position = name == self.leader or name == "r0", self.applied[name]
        if name in self.cut or (statement == station_state._ACKNOWLEDGED and name != self.leader):
            raise OSError("no answer")
        if statement == station_state._MAY_LIST:
            return [[False]]
        if statement == station_state._READ:
            return [[position, position, 1]]
        if statement == station_state._ACKNOWLEDGED:
            return [[None, 1]]
        generation = 1 if name == "r0" or self.leader == "r0" else 2
        since_s = self.now_s - self.log[position - 1] if position else None
        return [[not leads, position, None if leads else since_s, generation, ""]]


class OfModel(StationState):
    """Station state on modelled servers."""

    def __init__(self, servers: Servers) -> None:
        super().__init__(SERVERS, pick=servers.chance.choice)
        self._servers = servers

    def _run(self, name: str, statement: str, **_: object) -> list[list[object]]:
        return self._servers.answer(name, statement)


class PositionFirst(PositionBeforeAnswer, OfModel):
    """A planted bug: a session advances by a position from before the answer."""


class Unacknowledged(OfModel):
    """A planted bug: a leader answers without its follower."""

    def _run(self, name: str, statement: str, **_: object) -> list[list[object]]:
        return [[None, 1]] if statement == station_state._ACKNOWLEDGED else super()._run(name, statement)


def broken_promises(seed: int, mode: ReadMode, state_of: Callable[[Servers], StationState] = OfModel) -> int:
    """Reads of a session that break the promise of ``mode``; each may be made by a new process."""
    servers = Servers(random.Random(seed))
    session, state, broken, own, seen = ReadSession(), state_of(servers), 0, 0, 0
    for _ in range(12):
        if servers.chance.random() < 0.3:
            servers.write()
            own = len(servers.log)
            session.has_written(own)
        if servers.chance.random() < 0.3:
            state = state_of(servers)
        least = {
            ReadMode.LEADER: len(servers.log),
            ReadMode.PREFIX: seen,
            ReadMode.BOUNDED: sum(at_s < servers.now_s - MOST_LAG_S for at_s in servers.log),
        }.get(mode, max(own, seen))
        try:
            value = int(state.read("k", mode, session)[0] or 0)
        except Unavailable:
            continue
        broken += value < least
        seen = max(seen, value)
    return broken


@pytest.mark.parametrize("mode", [mode for mode in ReadMode if mode is not ReadMode.ANY_FOLLOWER])
def test_no_history_breaks_the_promise_of_its_mode__RT6_RT8_RT10_RT20_RT21(mode: ReadMode) -> None:
    assert [seed for seed in range(HISTORIES) if broken_promises(seed, mode)] == []


@pytest.mark.parametrize(
    ("mode", "state_of"),
    [
        (ReadMode.ANY_FOLLOWER, OfModel),
        (ReadMode.SESSION, PositionFirst),
        (ReadMode.PREFIX, PositionFirst),
        (ReadMode.LEADER, Unacknowledged),
        (ReadMode.BOUNDED, Unacknowledged),
    ],
)
def test_what_promises_nothing_and_each_planted_bug_are_found_out__RT7_RT13(
    mode: ReadMode, state_of: Callable[[Servers], StationState]
) -> None:
    assert sum(broken_promises(seed, mode, state_of) > 0 for seed in range(HISTORIES // 2)) > 5
