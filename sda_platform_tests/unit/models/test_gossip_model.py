"""Membership by gossip in the model: convergence, refutation, partitions, loss, and 250 nodes."""

from functools import reduce
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.formats.membership_events import ALIVE, DEAD, LEFT, SUSPECTED
from sda_platform.ground.membership import Membership
from sda_platform_tests.models import gossip_schedule
from sda_platform_tests.models.gossip_model import Fleet, GossipNode, spread

CLAIMS = st.builds(Membership, st.integers(0, 3), st.sampled_from([ALIVE, SUSPECTED, DEAD, LEFT]))


@given(st.lists(CLAIMS, min_size=1, max_size=4))
def test_views_merge_to_the_same_in_any_order_and_any_number_of_times__TG17(claims: list[Membership]) -> None:
    def merged(order: list[Membership]) -> Membership:
        node = GossipNode(0, {0: Membership(), 1: claims[0]})
        for claim in [*order, *order]:
            node.learn(1, claim)
        return node.view[1]

    assert {merged(list(order)) for order in permutations(claims)} == {reduce(max, claims)}


def test_one_update_is_everywhere_within_five_rounds_of_twenty_nodes__TG4_TG19() -> None:
    assert max(spread(20, seed, fanout=2).rounds for seed in range(60)) <= 5


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_two_hundred_and_fifty_nodes_converge_and_raise_no_false_alarm__TG9_TG22_TG24(loss: float) -> None:
    found = spread(250, 1, loss=loss)
    assert found.rounds <= 6
    assert found.false_deaths == 0
    assert found.detection_rounds < 20
    assert (found.bytes_per_node, found.bytes_per_round // 250 <= 150_000) == (25_000, True)


def test_who_cannot_be_reached_directly_is_alive_by_another_way__TG6() -> None:
    fleet = Fleet(4, 1)
    reaches = fleet._reaches
    fleet._reaches = lambda one, other: {one, other} != {0, 1} and reaches(one, other)  # type: ignore[method-assign]
    for _ in range(40):
        fleet.round()
    assert all(claim.status == ALIVE for node in fleet.nodes for claim in node.view.values())


def test_a_suspected_node_refutes_with_a_newer_generation__TG7_TG13() -> None:
    fleet = Fleet(5, 1, suspicion_rounds=30)
    fleet.groups[4] = 1
    while fleet.nodes[0].view[4].status != SUSPECTED:
        fleet.round()
    fleet.groups[4] = 0
    for _ in range(20):
        fleet.round()
    assert fleet.knows(4, Membership(1, ALIVE)) and fleet.false_deaths() == 0


def test_two_sides_hold_each_other_dead_and_converge_after_they_meet_again__TG8_TG20_TG21() -> None:
    fleet = Fleet(10, 3)
    fleet.groups = [0] * 7 + [1] * 3
    for _ in range(40):
        fleet.round()
    large, small = fleet.nodes[0].view, fleet.nodes[9].view
    assert [large[n].status for n in range(10)] == [ALIVE] * 7 + [DEAD] * 3
    assert [small[n].status for n in range(10)] == [DEAD] * 7 + [ALIVE] * 3
    fleet.groups = [0] * 10
    for _ in range(60):
        fleet.round()
    assert {claim.status for node in fleet.nodes for claim in node.view.values()} == {ALIVE}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_small_fleets_have_fewer_helpers_and_work__TG11(size: int) -> None:
    fleet = Fleet(size, 1)
    for _ in range(20):
        fleet.round()
    assert fleet.false_deaths() == 0


def test_schedules_of_loss_stops_and_cuts_converge_and_planted_bugs_are_found__TG8_TG20_TG24() -> None:
    assert [found for seed in range(20) if (found := gossip_schedule.run(seed)).violations] == []
    apart = "two sides of a healed network hold each other dead"
    for bug in ("probes_dead", "refutes"):
        assert any(apart in gossip_schedule.run(seed, **{bug: False}).violations for seed in range(5)), bug
