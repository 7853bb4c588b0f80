"""Bounded channels: what fits, who waits, what is refused, and that nothing is lost between."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.edge.channel import Channel, ChannelClosed, Edge, Overdue, OverflowPolicy


def channel(
    capacity: int = 10, policy: OverflowPolicy = OverflowPolicy.BLOCK, deadline_s: float | None = None
) -> Channel[int]:
    return Channel(Edge("test", "sender", "receiver", capacity, policy, "a test", deadline_s))


async def settled(work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    """The task of ``work``, once it waits or is done."""
    task = asyncio.create_task(work)
    for _ in range(5):
        await asyncio.sleep(0)
    return task


def test_capacity_comes_back_when_the_receiver_has_finished_not_when_it_takes__DP4_I7() -> None:
    async def scenario() -> None:
        edge = channel(10)
        await edge.put(1, 6)
        assert await edge.take(1, 0.0) == [1]
        waiting = await settled(edge.put(2, 6))
        assert not waiting.done()
        edge.release(6)
        await waiting
        assert edge.used == 6
        assert edge.counts.stalls == 1

    asyncio.run(scenario())


def test_senders_that_wait_are_served_in_order__DP4_F1() -> None:
    async def scenario() -> None:
        edge = channel(2)
        await edge.put(0, 2)
        waiting = [await settled(edge.put(number, 1)) for number in (1, 2, 3)]
        assert await edge.take(1, 0.0) == [0]
        edge.release(2)
        await asyncio.gather(*waiting[:2])
        assert not waiting[2].done()
        assert await edge.take(2, 0.0) == [1, 2]
        edge.release(2)
        await waiting[2]

    asyncio.run(scenario())


def test_a_closed_channel_is_distinct_from_a_full_one__DP4_I5() -> None:
    async def scenario() -> None:
        edge = channel(1)
        await edge.put(1, 1)
        waiting = await settled(edge.put(2, 1))
        edge.close()
        with pytest.raises(ChannelClosed):
            await waiting
        with pytest.raises(ChannelClosed):
            edge.offer(3, 1)
        assert await edge.take(1, 0.0) == [1]
        assert await edge.take(1, 0.0) == []

    asyncio.run(scenario())


def test_what_misses_the_deadline_is_refused_and_counted__DP4_I3_I4() -> None:
    async def scenario() -> None:
        edge = channel(1, OverflowPolicy.DEADLINE, 0.001)
        await edge.put(1, 1)
        with pytest.raises(Overdue):
            await edge.put(2, 1, records=7, kind="high")
        assert edge.counts.refused == {"high": 7}
        assert (edge.used, edge.waiting) == (1, 0)

    asyncio.run(scenario())


def test_an_offer_that_does_not_fit_is_counted__DP4_I4() -> None:
    async def scenario() -> None:
        edge = channel(5, OverflowPolicy.SHED)
        assert edge.offer(1, 5)
        assert not edge.offer(2, 1, records=3, kind="low")
        assert edge.counts.refused == {"low": 3}
        assert edge.counts.passed == 1

    asyncio.run(scenario())


def test_a_hurried_channel_hands_over_what_waits_at_once__DP1_F8() -> None:
    async def scenario() -> None:
        edge = channel(10)
        await edge.put(1, 1)
        taking = await settled(edge.take(10, 3600.0))
        assert not taking.done()
        edge.hurry()
        assert await taking == [1]
        await edge.put(2, 1)
        assert await edge.take(10, 3600.0) == [2]

    asyncio.run(scenario())


def test_an_item_larger_than_the_channel_passes_alone() -> None:
    async def scenario() -> None:
        edge = channel(5)
        await edge.put(1, 50)
        assert not edge.offer(2, 1)
        assert await edge.take(1, 0.0) == [1]
        edge.release(50)
        assert edge.offer(2, 1)

    asyncio.run(scenario())


def test_a_sender_that_gives_up_leaves_no_trace() -> None:
    async def scenario() -> None:
        edge = channel(2)
        await edge.put(0, 2)
        first, second = await settled(edge.put(1, 2)), await settled(edge.put(2, 1))
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await edge.take(1, 0.0)
        edge.release(2)
        await second
        assert edge.used == 1

    asyncio.run(scenario())


@pytest.mark.parametrize(("policy", "deadline_s"), [(OverflowPolicy.BLOCK, 1.0), (OverflowPolicy.DEADLINE, None)])
def test_an_edge_without_its_bound_cannot_be_made__DP4_F2(policy: OverflowPolicy, deadline_s: float | None) -> None:
    with pytest.raises(ValueError, match="edge test"):
        channel(1, policy, deadline_s)
    with pytest.raises(ValueError, match="capacity is 0"):
        channel(0)


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.integers(1, 12), max_size=40),
    takes=st.lists(st.integers(1, 30), min_size=1, max_size=10),
    capacity=st.integers(1, 20),
)
def test_every_item_arrives_once_in_order_and_within_the_capacity(
    weights: list[int], takes: list[int], capacity: int
) -> None:
    async def scenario() -> list[int]:
        edge, received, most = channel(capacity), [], 0

        async def send() -> None:
            for number, weight in enumerate(weights):
                await edge.put(number, weight)
            edge.close()

        sending = asyncio.create_task(send())
        turn = 0
        while batch := await edge.take(takes[turn % len(takes)], 0.0):
            turn += 1
            held = sum(weights[number] for number in batch)
            most = max(most, edge.used)
            assert edge.used <= max(capacity, max(weights))
            received += batch
            edge.release(held)
        await sending
        assert edge.used == 0
        return received

    assert asyncio.run(scenario()) == list(range(len(weights)))
