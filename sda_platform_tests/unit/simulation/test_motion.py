"""Integrated motion: a state depends on its row and time alone, whatever was requested before."""

from functools import cache

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sda_platform.orbits.propagation import Propagator
from sda_platform.simulation.motion import Motion
from sda_platform_tests.support.scenes import catalogue
from sda_platform_tests.support.segments import START_NS

ROWS = 3
_MINUTE_NS = 60 * 10**9
_REQUEST = st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(-5, 65)), min_size=1, max_size=4)


@cache
def propagator() -> Propagator:
    return Propagator(catalogue().elements.take(np.arange(ROWS)))


def states(motion: Motion, requested: list[tuple[int, int]]) -> bytes:
    """What ``motion`` answers for rows and minutes."""
    row, minute = np.array(requested, dtype=np.int64).T
    none_ahead, from_ns = np.zeros(ROWS, dtype=np.int64), np.full(ROWS, START_NS, dtype=np.int64)
    error, found = motion.states(propagator(), none_ahead, from_ns, row, START_NS + minute * _MINUTE_NS)
    assert not error.any()
    return found.tobytes()


@settings(max_examples=15)
@given(st.lists(_REQUEST, min_size=2, max_size=4))
@example([[(0, 5), (1, 15)], [(0, 45)], [(1, 45)]])
def test_a_state_does_not_depend_on_earlier_requests(requests: list[list[tuple[int, int]]]) -> None:
    motion = Motion()
    assert [states(motion, each) for each in requests] == [states(Motion(), each) for each in requests]
