"""Logical clocks and sites that were apart: the verdict is asserted, never a winner."""

import itertools
from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.catalog.edits import Ordering, compare, merged
from sda_platform_tests.models.cluster import EventSite, LamportClock, MessageBus, VectorClock

SITES = ("pacific", "indian_ocean", "atlantic", "antarctic")
vectors = st.dictionaries(st.sampled_from(SITES), st.integers(1, 4))
OPPOSITE = {
    Ordering.BEFORE: Ordering.AFTER,
    Ordering.AFTER: Ordering.BEFORE,
    Ordering.EQUAL: Ordering.EQUAL,
    Ordering.CONCURRENT: Ordering.CONCURRENT,
}


def four_sites() -> tuple[MessageBus, dict[str, EventSite]]:
    bus = MessageBus(SITES)
    return bus, {name: EventSite(name, bus) for name in SITES}


def exchanged(sites: dict[str, EventSite], chance: Random | None = None) -> None:
    for site in sites.values():
        site.run(chance)


@given(st.lists(st.one_of(st.none(), st.integers(0, 100))))
def test_a_lamport_clock_strictly_increases_whatever_it_observes__CS4(stamps: list[int | None]) -> None:
    clock, before = LamportClock(), 0
    for stamp in stamps:
        now = clock.tick() if stamp is None else clock.observe(stamp)
        assert now > before and now > (stamp or 0), f"{stamp} after {before} gave {now}"
        before = now


def test_lamports_example__CS4() -> None:
    clock = LamportClock()
    assert [clock.tick(), clock.observe(42), clock.tick()] == [1, 43, 44]


@given(vectors, vectors, vectors)
def test_the_laws_of_vectors__CS17(a: dict[str, int], b: dict[str, int], c: dict[str, int]) -> None:
    assert compare(a, a) is Ordering.EQUAL
    assert compare(a, b) is OPPOSITE[compare(b, a)], f"{a} and {b} are judged differently in both directions"
    assert merged(a, b) == merged(b, a)
    assert merged(merged(a, b), c) == merged(a, merged(b, c))
    assert merged(a, a) == a
    assert compare(merged(a, b), a) in (Ordering.AFTER, Ordering.EQUAL)
    if compare(a, b) is Ordering.BEFORE and compare(b, c) is Ordering.BEFORE:
        assert compare(a, c) is Ordering.BEFORE


def test_independent_events_from_one_state_are_concurrent__CS5() -> None:
    shared = {"catalog": 1}
    a, b = VectorClock("pacific", dict(shared)), VectorClock("indian_ocean", dict(shared))
    assert compare(a.tick(), b.tick()) is Ordering.CONCURRENT


def test_who_received_a_message_is_after_its_sender__CS6_CS17() -> None:
    _, sites = four_sites()
    sent = sites["pacific"].submit(b"x")
    sites["atlantic"].run()
    answer = sites["atlantic"].submit(b"y")
    assert compare(answer.vector, sent.vector) is Ordering.AFTER
    assert answer.lamport > sent.lamport
    assert sites["atlantic"].vector.compare(sent.vector) is Ordering.AFTER


def test_messages_across_a_partition_wait_until_it_heals__CS7_CS20() -> None:
    bus, sites = four_sites()
    bus.partition(["pacific", "atlantic"], ["indian_ocean"])
    event = sites["pacific"].submit(b"x")
    exchanged(sites)
    assert set(sites["atlantic"].events) == {event.identity}
    assert not sites["indian_ocean"].events
    assert not sites["antarctic"].events, "a site in no group is apart from both"
    bus.heal()
    exchanged(sites)
    assert all(set(site.events) == {event.identity} for site in sites.values())


@pytest.mark.parametrize("first", ["pacific", "indian_ocean"])
def test_edits_made_apart_are_concurrent_at_every_site_whoever_is_first__CS8_CS16(first: str) -> None:
    """The incident: a clock 600 ms ahead stamped the older update with the later time, and that one won."""
    bus, sites = four_sites()
    bus.partition(["pacific", "atlantic"], ["indian_ocean", "antarctic"])
    order = [first, *({"pacific", "indian_ocean"} - {first})]
    made = {name: sites[name].submit(name.encode()) for name in order}
    bus.heal()
    exchanged(sites)
    expected = {frozenset(event.identity for event in made.values())}
    for site in sites.values():
        assert site.conflicts() == expected, f"{site.name} judges {made} otherwise"


def test_after_a_partition_every_site_has_all_forty_events__CS9_CS15() -> None:
    bus, sites = four_sites()
    bus.partition(["pacific", "atlantic"], ["indian_ocean", "antarctic"])
    for number in range(20):
        sites["pacific"].submit(b"%d" % number)
        sites["antarctic"].submit(b"%d" % number)
        exchanged(sites)
    bus.heal()
    exchanged(sites)
    assert {len(site.events) for site in sites.values()} == {40}
    after = sites["atlantic"].submit(b"after")
    assert all(compare(after.vector, e.vector) is Ordering.AFTER for e in sites["pacific"].events.values())


@pytest.mark.parametrize("seed", range(100))
def test_reordered_and_repeated_messages_change_no_verdict__CS18_CS19(seed: int) -> None:
    chance = Random(seed)
    bus, sites = four_sites()
    for step in range(12):
        if step == 3:
            bus.partition(["pacific", "atlantic"], ["indian_ocean", "antarctic"])
        sites[chance.choice(SITES)].submit(b"%d" % step)
        sites[chance.choice(SITES)].run(chance)
    bus.heal()
    for _ in range(2):
        exchanged(sites, chance)
    stamps = list(sites["pacific"].events.values())
    assert {len(site.events) for site in sites.values()} == {12}
    assert len({frozenset(site.conflicts()) for site in sites.values()}) == 1
    for a in stamps:
        for b in stamps:
            if compare(a.vector, b.vector) is Ordering.BEFORE:
                assert a.lamport < b.lamport, f"{a} is before {b}, its stamp is not"


class HybridClock:
    """A hybrid logical clock (Kulkarni et al. 2014): physical milliseconds, and a count within the greatest of them."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._greatest_ms, self._count = 0, 0

    def tick(self) -> int:
        return self._advanced(0, 0)

    def observe(self, stamp: int) -> int:
        return self._advanced(stamp >> 16, stamp & 0xFFFF)

    def _advanced(self, other_ms: int, other_count: int) -> int:
        before_ms, now_ms = self._greatest_ms, max(self._greatest_ms, other_ms, self._now_ms())
        counts = [n for ms, n in ((before_ms, self._count), (other_ms, other_count)) if ms == now_ms]
        self._greatest_ms, self._count = now_ms, max(counts, default=-1) + 1
        return now_ms << 16 | self._count


@pytest.mark.parametrize("seed", range(20))
def test_a_hybrid_clock_changes_neither_site_nor_bus__CS10(seed: int) -> None:
    """The wall clocks are up to 0.6 s apart, and one jumps back: stamps still agree with causality."""
    chance, bus = Random(seed), MessageBus(SITES)
    offsets_ms = {name: chance.randint(-600, 600) for name in SITES}
    wall_ms = itertools.count(10_000, 7)

    def clock_of(name: str) -> HybridClock:
        return HybridClock(lambda: next(wall_ms) + offsets_ms[name])

    hybrid = {name: EventSite(name, bus, partial(clock_of, name)) for name in SITES}
    other_bus, scalar = four_sites()
    for step in range(12):
        if step == 3:
            bus.partition(["pacific", "atlantic"], ["indian_ocean", "antarctic"])
            other_bus.partition(["pacific", "atlantic"], ["indian_ocean", "antarctic"])
        if step == 6:
            offsets_ms["pacific"] -= 5_000
        origin, reader = chance.choice(SITES), chance.choice(SITES)
        for sites in (hybrid, scalar):
            sites[origin].submit(b"%d" % step)
            sites[reader].run()
    for each in (bus, other_bus):
        each.heal()
    for sites in (hybrid, scalar):
        exchanged(sites)
    assert {name: site.conflicts() for name, site in hybrid.items()} == {n: s.conflicts() for n, s in scalar.items()}
    events = list(hybrid["pacific"].events.values())
    assert len(events) == 12
    for a, b in itertools.permutations(events, 2):
        if compare(a.vector, b.vector) is Ordering.BEFORE:
            assert a.lamport < b.lamport, f"{a} is before {b}, its stamp is not"
