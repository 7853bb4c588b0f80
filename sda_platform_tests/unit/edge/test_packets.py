"""The packet processor: every frame is counted in exactly one class, and nothing but headers decides (F5)."""

import tracemalloc
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.edge.frames import Frames, frames_of
from sda_platform.edge.packets import MAX_BATCH, BatchTooLarge, PacketProcessor, Processed
from sda_platform.formats.telemetry import (
    EMERGENCY_FLAG,
    INVALID_FLAG,
    TELEMETRY_HEADER,
    TELEMETRY_HEADER_BYTES,
    encode_telemetry_frames,
)
from sda_platform_tests.support.collectors import telemetry


def processed(frames: list[bytes], processor: PacketProcessor | None = None) -> Processed:
    return (processor or PacketProcessor(remembered=1000)).process(frames_of(frames))


def rows(found: Processed) -> dict[str, list[int]]:
    return {name: getattr(found, name).tolist() for name in Processed.__slots__}


def one(time_ms: int, sequence: int, satellite: int, flags: int, size: int) -> bytes:
    (frame,) = encode_telemetry_frames(
        timestamp_ms=np.array([time_ms]), sequence=np.array([sequence]), satellite_id=np.array([satellite]),
        station_id=np.array([0]), flags=np.array([flags]), payloads=[bytes(size)],
    )  # fmt: skip
    return frame


def test_frames_that_were_not_kept_are_new_when_they_come_again__F5_26() -> None:
    processor = PacketProcessor(remembered=1000)
    frames = [*telemetry(10), *telemetry(10, satellite=0)]
    processed(frames, processor)
    processor.forget(frames_of([*frames[5:15], b"short", one(0, 999, 7, 0, 1)]))
    found = rows(processed(frames, processor))
    assert sorted(found["routine"]) == list(range(5, 15))
    assert found["duplicates"] == [*range(5), *range(15, 20)]
    assert rows(processed(frames, processor))["duplicates"] == list(range(20))


def test_the_header_has_24_bytes_in_falling_alignment__F5_1_17() -> None:
    assert TELEMETRY_HEADER.fields is not None
    offsets = {name: TELEMETRY_HEADER.fields[name][1] for name in TELEMETRY_HEADER.names or ()}
    assert TELEMETRY_HEADER_BYTES == 24
    assert offsets == {
        "timestamp_ms": 0, "sequence": 8, "satellite_id": 16, "byte_count": 20, "station_id": 22, "flags": 23,
    }  # fmt: skip


def test_a_duplicate_is_found_across_batches_and_the_first_survives__F5_10_26_27() -> None:
    processor = PacketProcessor(remembered=100)
    assert rows(processed(telemetry(3), processor))["routine"] == [0, 1, 2]
    found = rows(processed(telemetry(3, first=2), processor))
    assert (found["duplicates"], found["routine"]) == ([0], [1, 2])


def test_a_key_with_another_time_or_length_is_a_conflict__F5_32() -> None:
    found = rows(processed([one(5, 1, 7, 0, 8), one(5, 1, 7, 0, 9), one(6, 1, 7, 0, 8), one(5, 1, 7, 0, 8)]))
    assert (found["routine"], found["conflicts"], found["duplicates"]) == ([0], [1, 2], [3])


def test_flagged_short_and_lying_frames_are_invalid__F5_9_30() -> None:
    (good,) = telemetry(1)
    frames = [*telemetry(1, first=1, flags=INVALID_FLAG), good[:-1], good + b"x", good[:23], b"", good]
    assert rows(processed(frames))["invalid"] == [0, 1, 2, 3, 4]


def test_emergency_frames_come_first_and_each_class_in_order_of_time__F5_11() -> None:
    frames = [one(30, 3, 1, 0, 1), one(10, 1, 1, 0, 1), one(20, 2, 1, EMERGENCY_FLAG, 1), one(10, 1, 0, 0, 1)]
    found = rows(processed(frames))
    assert (found["emergency"], found["routine"]) == ([2], [3, 1, 0])


def test_a_batch_beyond_the_bound_is_refused__F5_8() -> None:
    frames = Frames(np.zeros(1, np.uint8), np.zeros(MAX_BATCH + 1, np.int64), np.zeros(MAX_BATCH + 1, np.int64))
    with pytest.raises(BatchTooLarge):
        PacketProcessor(remembered=10).process(frames)


def test_a_key_is_remembered_for_the_promised_number_of_frames__F5_27() -> None:
    processor = PacketProcessor(remembered=1_000)
    processed(telemetry(1), processor)
    for first in range(1, 1_000, 100):
        processed(telemetry(min(100, 1_000 - first), first=first), processor)
    assert rows(processed(telemetry(1), processor))["duplicates"] == [0]


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 2), st.integers(0, 1),
                           st.sampled_from([0, EMERGENCY_FLAG, INVALID_FLAG])), max_size=20),
        max_size=6,
    )
)  # fmt: skip
def test_every_frame_is_in_one_class_as_the_rule_says__F5_7_31(
    batches: list[list[tuple[int, int, int, int, int]]],
) -> None:
    processor, known = PacketProcessor(remembered=10_000), dict[tuple[int, int], tuple[int, int]]()
    for batch in batches:
        expected: dict[str, list[int]] = {name: [] for name in Processed.__slots__}
        for row, (time_ms, sequence, satellite, size, flags) in enumerate(batch):
            if flags & INVALID_FLAG:
                expected["invalid"].append(row)
            elif (satellite, sequence) in known:
                same = known[satellite, sequence] == (time_ms, size)
                expected["duplicates" if same else "conflicts"].append(row)
            else:
                known[satellite, sequence] = (time_ms, size)
                expected["emergency" if flags else "routine"].append(row)
        found = rows(processed([one(t, q, s, f, n) for t, q, s, n, f in batch], processor))
        for name in ("emergency", "routine"):
            expected[name].sort(key=lambda row: (batch[row][0], batch[row][2], batch[row][1]))
        assert found == expected
        assert sorted(chain.from_iterable(found.values())) == list(range(len(batch)))


def test_allocations_depend_on_the_batch_and_not_on_its_frames__F5_2_16() -> None:
    """After a first batch: the blocks that stay allocated are as many for 100 frames as for 10,000."""
    processor = PacketProcessor(remembered=2**16)

    def blocks(count: int, first: int) -> int:
        frames = frames_of(telemetry(count, first=first))
        tracemalloc.start()
        result = processor.process(frames)
        found = len(tracemalloc.take_snapshot().traces)
        tracemalloc.stop()
        assert len(result.routine) == count
        return found

    blocks(100, 0)
    assert blocks(10_000, 1_000) <= blocks(100, 20_000) + 10
