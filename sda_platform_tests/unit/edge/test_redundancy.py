"""Which radar frames are redundant, against the rule written out (DP4-F4)."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.edge.frames import frames_of
from sda_platform.edge.redundancy import SAMPLES, SPAN_NS, RecentSamples
from sda_platform.formats.radar import RADAR_FRAME, RADAR_FRAME_BYTES
from sda_platform_tests.support.collectors import NOW_NS, radar_frames


def frame(track: int, time_ns: int, array_id: int = 1) -> bytes:
    row = np.zeros(1, RADAR_FRAME)
    row["array_id"], row["target_track_id"], row["timestamp_ns"] = array_id, track, time_ns
    return row.tobytes()


def high(memory: RecentSamples, frames: list[bytes]) -> list[bool]:
    return [bool(is_high) for is_high in memory.are_high(frames_of(frames))[0]]


def test_the_layout_is_the_one_that_the_kernel_reads__DP1_E2() -> None:
    assert RADAR_FRAME.fields is not None
    offsets = [RADAR_FRAME.fields[name][1] for name in ("array_id", "target_track_id", "timestamp_ns")]
    assert (offsets, RADAR_FRAME_BYTES) == ([0, 4, 8], 60)


def test_the_fifth_sample_of_an_object_within_30_s_is_low__DP4_F4() -> None:
    assert high(RecentSamples(), radar_frames(6)) == [True] * SAMPLES + [False] * 2


def test_a_sustained_track_keeps_four_samples_in_any_30_s__DP4_F4() -> None:
    """At 10 Hz for two minutes: a track must not become redundant for ever."""
    found = high(RecentSamples(), [frame(1, NOW_NS + n * 100_000_000) for n in range(1200)])
    times = np.flatnonzero(found) * 0.1
    assert len(times) == 4 * SAMPLES
    assert all(np.sum((times >= t) & (times < t + 30.0)) == SAMPLES for t in times[: -SAMPLES + 1])


def test_tracks_of_two_arrays_are_two_objects() -> None:
    memory = RecentSamples()
    assert high(memory, [frame(7, NOW_NS + n) for n in range(5)])[-1] is False
    assert high(memory, [frame(7, NOW_NS, array_id=2)]) == [True]


def test_a_clock_that_jumps_makes_no_later_sample_redundant() -> None:
    memory = RecentSamples()
    high(memory, [frame(1, NOW_NS + 10**18 + n) for n in range(5)])
    assert high(memory, [frame(1, NOW_NS + n) for n in range(5)]) == [True] * 4 + [False]


@pytest.mark.parametrize("length", [0, 59, 61, 1500])
def test_a_malformed_frame_is_low_so_that_garbage_is_shed_first(length: int) -> None:
    is_high, is_bad = RecentSamples().are_high(frames_of([bytes(length), frame(1, NOW_NS)]))
    assert (is_high.tolist(), is_bad.tolist()) == ([False, True], [True, False])


def test_1800_new_objects_next_to_50000_known_ones_leave_these_redundant__E25() -> None:
    memory = RecentSamples()
    known = [frame(track, NOW_NS + n) for n in range(SAMPLES) for track in range(50_000)]
    assert all(high(memory, known))
    burst = [frame(1_000_000 + track, NOW_NS + 10) for track in range(1_800)]
    assert all(high(memory, burst))
    again = high(memory, [frame(track, NOW_NS + 20) for track in range(50_000)])
    assert sum(again) <= 50  # 99.9 % are still recognised


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 200)), max_size=120))
def test_the_kernel_is_the_rule__DP4_F4(samples: list[tuple[int, int]]) -> None:
    frames = [frame(track, NOW_NS + second * 1_000_000_000) for track, second in samples]
    recent: defaultdict[int, list[int]] = defaultdict(list)
    expected = []
    for track, second in samples:
        oldest = recent[track][0] if len(recent[track]) >= SAMPLES else None
        is_high = oldest is None or abs(second - oldest) * 1_000_000_000 >= SPAN_NS
        expected.append(is_high)
        if is_high:
            kept = recent[track]
            if oldest is not None:
                kept.pop(0)
            kept.append(second)
    assert high(RecentSamples(slots=64), frames) == expected
