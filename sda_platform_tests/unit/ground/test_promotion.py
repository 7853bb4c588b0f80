"""Which follower may lead: no permitted promotion lacks an acknowledged write, whatever failed before."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.ground.promotion import ReplicaStatus, newest_leaders, why_unsafe
from sda_platform_tests.support.sampling import number


@dataclass
class Server:
    name: str
    log: list[int] = field(default_factory=list)
    generation: int = 1
    follows: "Server | None" = None
    is_up: bool = True


class Servers:
    """A leader and its followers; a write is acknowledged once the synchronous follower has it."""

    def __init__(self, count: int) -> None:
        self.all = [Server(f"r{number}") for number in range(count)]
        self.synchronous = {self.all[0].name: self.all[1].name}
        for each in self.all[1:]:
            each.follows = self.all[0]
        self.written, self.acknowledged = 0, set[int]()

    def statuses(self) -> list[ReplicaStatus]:
        return [
            ReplicaStatus(
                each.name,
                each.follows is None,
                each.generation,
                len(each.log),
                synchronous=self.synchronous.get(each.name, ""),
            )
            for each in self.all
            if each.is_up
        ]

    def write(self, leader: Server) -> None:
        if leader.follows is None and leader.is_up:
            self.written += 1
            leader.log.append(self.written)
            for each in self.all:
                if each.follows is leader and each.is_up and each.name == self.synchronous[leader.name]:
                    self.acknowledged.add(self.written)
                    self.receive(each)

    def receive(self, follower: Server) -> None:
        leader = follower.follows
        if leader is not None and leader.is_up and follower.is_up and leader.log[: len(follower.log)] == follower.log:
            follower.log, follower.generation = list(leader.log), leader.generation

    def promote(self, candidate: Server, synchronous: Server) -> None:
        if why_unsafe(candidate.name, synchronous.name, self.statuses(), len(self.all)):
            return
        for each in self.all:
            if each is not candidate:
                self.write(each)  # a leader that works goes on until the follower leads
        assert self.acknowledged <= set(candidate.log)
        if candidate.follows is not None:
            candidate.follows, candidate.generation = None, candidate.generation + 1
        self.synchronous[candidate.name] = synchronous.name
        for each in self.all:
            if each.is_up and each.follows is not None:
                each.follows = candidate
        self.receive(synchronous)
        assert len(newest_leaders(self.statuses())) == 1

    def rejoin(self, server: Server) -> None:
        """Make a former leader a follower of the newest one, by a base backup, where all others answer."""
        if not all(each.is_up for each in self.all if each is not server):
            return
        leading = newest_leaders(self.statuses())
        leader = next((each for each in self.all if leading and each.name == leading[0].name), None)
        if leader is not None and leader.is_up and server is not leader and server.follows is None:
            server.follows, server.log, server.generation = leader, list(leader.log), leader.generation


STEPS = st.tuples(
    st.sampled_from(["write", "write", "receive", "end", "start", "promote", "rejoin"]),
    st.integers(0, 3),
    st.integers(0, 3),
)


@given(st.integers(3, 4), st.lists(STEPS, min_size=20, max_size=60))
@settings(max_examples=number(20_000, 150))
def test_no_permitted_promotion_loses_an_acknowledged_write__RT11_RT23(
    count: int, steps: list[tuple[str, int, int]]
) -> None:
    servers = Servers(count)
    for what, first, second in steps:
        one, other = servers.all[first % count], servers.all[second % count]
        if what in ("end", "start"):
            one.is_up = what == "start"
        elif what == "promote":
            servers.promote(one, other)
        else:
            getattr(servers, what)(one)


def test_a_leader_of_an_older_generation_is_none_though_the_newest_is_silent__RT11() -> None:
    former, follower = ReplicaStatus("r0", True, 1, 9), ReplicaStatus("r1", False, 2, 7)
    assert newest_leaders([former, follower]) == []
    assert why_unsafe("r0", "r1", [former, follower], 3) == "it is no follower that answers"
    same = [former, status("r1")]
    assert why_unsafe("r0", "r1", same, 3) == ""
    assert why_unsafe("r0", "r1", same, 4).startswith("only 2 of 4 servers answer, another may lead a newer generation")


def status(name: str, *, leads: bool = False, position: int = 9, synchronous: str = "") -> ReplicaStatus:
    return ReplicaStatus(name, leads, 1, position, synchronous=synchronous)


def test_a_refused_promotion_names_its_reason__RT11() -> None:
    two = [status("r1"), status("r2", position=7)]
    assert why_unsafe("r1", "r2", two, 3) == ""
    assert why_unsafe("r2", "r1", two, 3) == "r1 is ahead by 2 bytes"
    assert why_unsafe("r1", "r3", two, 3).startswith("r3 is no other follower that answers")
    assert why_unsafe("r1", "r1", two, 3).startswith("r1 is no other follower that answers")
    assert why_unsafe("r1", "r2", two, 4).startswith("only 2 of 4 servers answer as followers")
    leader = status("r0", leads=True, synchronous="r1")
    equal = [leader, status("r1"), status("r2")]
    assert why_unsafe("r1", "r2", equal, 3) == ""
    assert why_unsafe("r2", "r1", equal, 3) == "r0 leads, and waits for r1"
    assert why_unsafe("r0", "r2", equal, 3) == "", "an interrupted promotion goes on"
