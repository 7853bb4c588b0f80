"""No peer takes all of what a server has: whoever comes finds a share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sda_platform.fair_share import FairShare, peer_of

_STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 20), st.booleans()), max_size=60)


@given(_STEPS, st.integers(1, 100))
def test_what_peers_hold_is_bounded_and_leaves_a_share_for_another(
    steps: list[tuple[str, int, bool]], most: int
) -> None:
    share, held = FairShare(most), list[tuple[str, int]]()
    for peer, amount, is_end in steps:
        if is_end and held:
            share.give_back(*held.pop(0))
        elif share.takes(peer, amount):
            held.append((peer, amount))
        assert share.held == sum(amount for _, amount in held) <= most
        of_peers = {name: sum(amount for each, amount in held if each == name) for name in "abc"}
        assert max(of_peers.values()) <= most / 2
    for each in held:
        share.give_back(*each)
    assert share.held == 0
    assert share.takes("a", most // 2)


def test_three_greedy_peers_leave_a_quarter() -> None:
    share = FairShare(400)
    while sum(share.takes(peer) for peer in "abc"):
        pass
    assert share.held == 300
    assert share.takes("d", 50)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::9", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("testclient", "testclient", True),
    ],
)
def test_a_peer_is_an_address_or_a_network_of_ipv6(one: str, other: str, *, is_same: bool) -> None:
    assert (peer_of((one, 1)) == peer_of((other, 2))) is is_same
    assert peer_of(None) == ""
