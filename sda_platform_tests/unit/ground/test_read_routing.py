"""The read router: which replica may answer, for any positions and sessions."""

from hypothesis import given
from hypothesis import strategies as st

from sda_platform.ground.read_routing import ReadMode, ReadSession, answering_replica

POSITIONS = st.integers(0, 20)
FOLLOWERS = st.dictionaries(st.sampled_from(["r1", "r2", "r3"]), POSITIONS)


@given(FOLLOWERS, st.sets(st.sampled_from(["r1", "r2", "r3"])), st.integers(0, 2))
def test_a_bounded_read_is_answered_by_a_follower_that_is_not_late_or_else_the_leader__RT18(
    followers: dict[str, int], late: set[str], choice: int
) -> None:
    found = answering_replica(
        ReadMode.BOUNDED, ReadSession(20, 20), followers, "r0", lambda fit: fit[choice % len(fit)], late
    )
    assert found in (set(followers) - late or {"r0"})
    naive = answering_replica(
        ReadMode.ANY_FOLLOWER, ReadSession(20, 20), followers, "r0", lambda fit: fit[choice % len(fit)], late
    )
    assert naive in (set(followers) or {"r0"}), "any_follower compares nothing"


@given(FOLLOWERS, POSITIONS, POSITIONS, st.sampled_from(ReadMode), st.integers(0, 2))
def test_a_follower_answers_only_if_it_has_what_the_mode_needs__RT8_RT9_RT19(
    followers: dict[str, int], written: int, read: int, mode: ReadMode, choice: int
) -> None:
    session = ReadSession(written, read)
    found = answering_replica(mode, session, followers, "r0", lambda fit: fit[choice % len(fit)])
    if mode is ReadMode.LEADER:
        assert found == "r0"
    elif found == "r0":
        assert not [name for name, position in followers.items() if position >= session.needs(mode)]
    else:
        assert followers[found] >= session.needs(mode)


@given(st.lists(st.tuples(FOLLOWERS, st.integers(0, 2), st.booleans()), max_size=30), st.integers(0, 20))
def test_a_session_never_goes_back__RT10_RT20(steps: list[tuple[dict[str, int], int, bool]], leader: int) -> None:
    session, seen = ReadSession(), 0
    for followers, choice, is_write in steps:
        leader += 1
        if is_write:
            session.has_written(leader)
        followers = {name: min(position, leader) for name, position in followers.items()}
        name = answering_replica(ReadMode.SESSION, session, followers, "r0", lambda fit: fit[choice % len(fit)])  # noqa: B023
        position = followers.get(name, leader)
        assert position >= max(seen, session.written)
        session.has_read(position)
        seen = position


def test_what_each_mode_needs__RT7_RT18_RT21() -> None:
    session = ReadSession(written=7, read=3)
    assert {mode: session.needs(mode) for mode in ReadMode} == {
        ReadMode.LEADER: 0, ReadMode.SESSION: 7, ReadMode.PREFIX: 3, ReadMode.BOUNDED: 0, ReadMode.ANY_FOLLOWER: 0,
    }  # fmt: skip
