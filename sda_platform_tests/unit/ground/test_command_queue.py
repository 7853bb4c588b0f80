"""Ground commands: order, reserved room, expiry, and execution at most once over a thousand schedules of faults."""

import random
from collections import Counter

import pytest

from sda_platform.ground.commands import PRIORITY, Command, CommandQueue, CommandsWithoutRoom, QueueFull, Transition
from sda_platform_tests.models.station import Station

NEVER = 10**18


def command(name: str, kind: str = "HOUSEKEEPING", issued_ns: int = 0, expires_ns: int = NEVER) -> Command:
    return Command(name, kind, issued_ns, expires_ns)


def drained(queue: CommandQueue, now_ns: int = 0) -> list[str]:
    order = []
    while (chosen := queue.next(now_ns)[1]) is not None:
        order.append(chosen.command_id)
        queue.acknowledge(chosen.command_id)
    return order


def test_the_highest_priority_then_the_oldest_then_the_first_accepted_is_next__GC1_GC27() -> None:
    queue = CommandQueue(10, 2)
    for each in (
        command("new", issued_ns=2), command("old", issued_ns=1), command("same-1", issued_ns=3),
        command("same-2", issued_ns=3), command("safe", "SAFE_MODE", issued_ns=9),
    ):  # fmt: skip
        queue.push(each)
    assert drained(queue) == ["safe", "old", "new", "same-1", "same-2"]


def test_a_queue_full_of_housekeeping_still_takes_an_emergency__GC28() -> None:
    queue = CommandQueue(4, 2)
    queue.push(command("a"))
    queue.push(command("b"))
    with pytest.raises(QueueFull, match="no room for HOUSEKEEPING c"):
        queue.push(command("c"))
    queue.push(command("safe-1", "SAFE_MODE"))
    queue.push(command("safe-2", "SAFE_MODE"))
    with pytest.raises(QueueFull):
        queue.push(command("safe-3", "SAFE_MODE"))


def test_of_commands_without_room_the_most_urgent_comes_first_and_what_expires_goes__46_3() -> None:
    waiting, queue = CommandsWithoutRoom(), CommandQueue(3, 1)
    for each in (
        command("a", issued_ns=2), command("b", issued_ns=1), command("late", expires_ns=5),
        command("point", "REPOINT", issued_ns=9), command("a", issued_ns=2),
    ):  # fmt: skip
        waiting.add(each)
    assert len(waiting) == 4
    assert [each.command_id for each in waiting.take_expired(5)] == ["late"]
    taken = []
    for each in waiting.take_while(queue.has_room):
        queue.push(each)
        taken.append(each.command_id)
    assert (taken, len(waiting)) == (["point", "b"], 1)
    queue.acknowledge("b")
    assert [each.command_id for each in waiting.take_while(queue.has_room)] == ["a"]
    assert (len(waiting), waiting.take_expired(NEVER)) == (0, [])


def test_a_command_that_is_done_stays_done_whatever_comes_late__GC27() -> None:
    x = command("x")
    queue = CommandQueue(
        4, 1, [Transition(1, "accepted", x), Transition(2, "acknowledged", x), Transition(3, "dispatched", x)]
    )
    assert (queue.pending, queue.push(x), queue.acknowledge("x")) == ([], None, None)
    assert CommandQueue(4, 1, done=["x"]).push(x) is None


def test_priority_follows_from_the_kind__GC26() -> None:
    assert command("x", "SAFE_MODE").priority == max(PRIORITY.values())
    with pytest.raises(KeyError):
        CommandQueue(4, 1).push(command("x", "UNKNOWN"))


def test_an_expired_command_is_dropped_and_the_drop_is_a_transition() -> None:
    queue = CommandQueue(4, 1)
    queue.push(command("late", expires_ns=5))
    changes, chosen = queue.next(5)
    assert ([each.state for each in changes], chosen) == (["expired"], None)
    assert queue.push(command("late", expires_ns=50)) is None, "an id is used once"


def fault_schedule(seed: int) -> tuple[Counter[str], set[str], set[str]]:
    """Executions by id, all accepted ids, and those that expired, under crashes, lost answers, repeats and failover."""
    chance, station = random.Random(seed), Station()
    stored: list[Transition] = []
    queue, token, now_ns = CommandQueue(12, 3), 1, 0
    accepted: set[str] = set()
    in_flight: list[tuple[Command, int]] = []
    for step in range(150):
        now_ns += 1
        if step < 100 and chance.random() < 0.4:
            expires_ns = now_ns + 12 if chance.random() < 0.1 else NEVER
            wanted = command(f"c{step}", chance.choice(sorted(PRIORITY)), now_ns, expires_ns)
            try:
                stored += [each for each in [queue.push(wanted)] if each]
                accepted.add(wanted.command_id)
            except QueueFull:
                pass
        changes, chosen = queue.next(now_ns)
        stored += changes
        if chosen is not None:
            in_flight.append((chosen, token))
        for _ in range(2 if chance.random() < 0.3 else 1):
            if in_flight and chance.random() < 0.8:
                # The network delays, reorders and repeats.
                sent, its_token = chance.choice(in_flight)
                outcome = station.receive(sent, its_token, now_ns)
                if outcome != "stale_sender" and chance.random() < 0.7:
                    stored += [each for each in [queue.acknowledge(sent.command_id)] if each]
        if chance.random() < 0.1:
            # A crash, or a failover to the backup uplink with a new lease: the queue is what was stored.
            token += chance.randrange(2)
            queue = CommandQueue(12, 3, stored)
    while (chosen := queue.next(now_ns)[1]) is not None:
        station.receive(chosen, token, now_ns)
        queue.acknowledge(chosen.command_id)
    expired = {each.command.command_id for each in stored if each.state == "expired"}
    return Counter(station.executed), accepted, expired


def test_over_a_thousand_fault_schedules_no_command_is_executed_twice_or_lost__GF23_GF24() -> None:
    executions = 0
    for seed in range(1000):
        executed, accepted, expired = fault_schedule(seed)
        assert max(executed.values(), default=0) <= 1, seed
        assert accepted - expired <= set(executed) <= accepted, seed
        executions += executed.total()
    assert executions > 10_000


def test_the_former_uplink_is_refused_after_a_failover__GF23() -> None:
    station = Station()
    assert station.receive(command("a"), 2, 0) == "executed"
    assert station.receive(command("b"), 1, 0) == "stale_sender"
    assert station.executed == ["a"]
