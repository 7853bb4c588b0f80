"""The packet processor: every frame is counted in exactly one class, and nothing but headers decides (F5)."""

from itertools import chain
from pathlib import Path

import memray
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.edge.frames import Frames, frames_of
from sda_platform.edge.gaps import EPOCH_MS, SequenceGaps
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


def one(
    time_ms: int, sequence: int, satellite: int, flags: int, size: int, *, content: int = 0, station: int = 0
) -> bytes:
    (frame,) = encode_telemetry_frames(
        timestamp_ms=np.array([time_ms]), sequence=np.array([sequence]), satellite_id=np.array([satellite]),
        station_id=np.array([station]), flags=np.array([flags]), payloads=[bytes([content]) * size],
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


def test_as_many_keys_are_remembered_as_promised_however_they_come__F5_27() -> None:
    processor = PacketProcessor(remembered=64)
    frames = telemetry(64)
    for frame in frames:
        assert rows(processed([frame], processor))["routine"] == [0]
    for frame in frames:
        assert rows(processed([frame], processor))["duplicates"] == [0], "a repetition takes no room"


def test_a_key_with_another_time_or_length_is_a_conflict__F5_32() -> None:
    found = rows(processed([one(5, 1, 7, 0, 8), one(5, 1, 7, 0, 9), one(6, 1, 7, 0, 8), one(5, 1, 7, 0, 8)]))
    assert (found["routine"], found["conflicts"], found["duplicates"]) == ([0], [1, 2], [3])


@pytest.mark.parametrize("size", [1, 7, 8, 9, 31])
def test_a_key_with_another_payload_is_a_conflict_and_with_another_station_a_duplicate__F5_32(size: int) -> None:
    frames = [one(5, 1, 7, 0, size), one(5, 1, 7, 0, size, content=1), one(5, 1, 7, 0, size, station=3)]
    found = rows(processed(frames))
    assert (found["routine"], found["conflicts"], found["duplicates"]) == ([0], [1], [2])
    late = bytearray(frames[0])
    late[-1] ^= 0x80
    assert rows(processed([frames[0], bytes(late)]))["conflicts"] == [1]


@pytest.mark.parametrize("changed", [(7, 39, 35), (0,), (95,), (3, 7), (31, 63)])
def test_a_computed_payload_does_not_pass_for_another(changed: tuple[int, ...]) -> None:
    """A station that knows a payload and is first has its own stored; the true one is a conflict, and is kept as well.

    Top bits of words are what products with public factors do not mix: the first of these passed for a duplicate.
    """
    true = one(0, 1, 7, 0, 96)
    forged = bytearray(true)
    for byte in changed:
        forged[TELEMETRY_HEADER_BYTES + byte] ^= 0x80
    assert rows(processed([bytes(forged), true]))["conflicts"] == [1]


def test_places_of_frames_are_the_secret_of_the_process() -> None:
    """Sequences that one hash puts in one place, which made a batch cost three seconds, are apart in each process."""
    inverse = pow(0xBF58476D1CE4E5B9, -1, 2**64), pow(0x9E3779B97F4A7C15, -1, 2**64)
    sequences = []
    for low in range(1000):
        value = ((0x1234 << 32) | low) * inverse[0] % 2**64
        for _ in range(3):
            value ^= value >> 29
        sequences.append(value * inverse[1] % 2**64)
    frames = [one(0, sequence, 0, 0, 0) for sequence in sequences]
    occupied = []
    for _ in range(2):
        processor = PacketProcessor(remembered=1000)
        processed(frames, processor)
        slots = np.flatnonzero(processor._young.keys[:, 1])
        together = np.diff(np.flatnonzero(np.diff(slots) > 1), prepend=-1, append=len(slots) - 1)
        assert len(slots) == 1000 and together.max() < 200, "half full, runs are of tens"
        occupied.append(slots.tolist())
    assert occupied[0] != occupied[1]


def test_emergency_is_judged_before_conflict_and_a_whole_repetition_before_it() -> None:
    urgent = one(6, 1, 7, EMERGENCY_FLAG, 8)
    frames = [one(5, 1, 7, 0, 8), urgent, one(5, 1, 7, EMERGENCY_FLAG, 8), one(5, 1, 7, 0, 8)]
    found = rows(processed(frames))
    assert (found["routine"], found["urgent_conflicts"], found["duplicates"]) == ([0], [1, 2], [3])
    processor = PacketProcessor(remembered=100)
    assert rows(processed([urgent], processor))["emergency"] == [0]
    assert rows(processed([urgent], processor))["duplicates"] == [0]


@pytest.mark.parametrize(("later_ms", "name"), [(0, "duplicates"), (1, "conflicts"), (10_000, "conflicts"),
                                                (10_001, "routine"), (3_600_000, "routine")])  # fmt: skip
@pytest.mark.parametrize("start_ms", [20_000, 2**20 - 10_000, 2**20 - 1, 2**20, 2**20 + 9_999, 1_730_419_200_000])
def test_a_counter_that_restarts_begins_an_epoch_in_which_all_is_new(later_ms: int, name: str, start_ms: int) -> None:
    processor = PacketProcessor(remembered=1_000)
    first = [one(start_ms + n, n, 7, 0, 8) for n in range(3)]
    processed(first, processor)
    for sign in (1, -1):
        again = [one(start_ms + sign * later_ms + n, n, 7, 0, 8) for n in range(3)]
        if sign == 1 or later_ms <= 10_000:
            assert sorted(rows(processed(again, processor))[name]) == [0, 1, 2]
    assert rows(processed(first, processor))["duplicates"] == [0, 1, 2]  # of the epoch before, sent again


def test_frames_that_are_missing_are_counted_once_and_again_when_they_come__F3_32() -> None:
    processor = PacketProcessor(remembered=1_000)

    def count(*frames: bytes) -> tuple[int, int]:
        processed(list(frames), processor)
        return processor.missing, processor.late

    times = [one(1_000_000 + 100 * n, n, 7, 0, 1) for n in range(30)]
    assert count(times[5]) == (0, 0)  # the first of a satellite
    assert count(times[9], times[6], one(5, 40, 8, 0, 1)) == (2, 0)  # 7 and 8; in order of time, not of arrival
    assert count(times[8], times[9]) == (0, 1)  # 9 is a duplicate
    assert count(times[7], times[10]) == (0, 1)
    assert count(one(2_000_000, 0, 7, 0, 1), one(2_000_100, 2, 7, EMERGENCY_FLAG, 1)) == (1, 0)  # it restarted
    assert count(times[29]) == (0, 0)  # of the epoch before
    assert count(one(2_000_200, 2**63 + 5, 7, 0, 1)) == (1_000_000, 0)


def test_of_more_satellites_than_are_followed_no_gap_is_counted() -> None:
    gaps = SequenceGaps()
    frames = frames_of([one(5, 0, satellite, 0, 1) for satellite in range(5_000)])
    gaps.count(frames, np.arange(5_000))
    later = frames_of([one(6, 9, satellite, 0, 1) for satellite in range(5_000)])
    assert gaps.count(later, np.arange(5_000)) == (8 * 4_096, 0)


def test_a_counter_that_restarts_for_ever_costs_no_more_than_one_that_does_not() -> None:
    """A probe of the table is bounded: 50,000 restarts with one sequence would take a minute otherwise."""
    processor = PacketProcessor(remembered=2**17)
    for first in range(0, 50_000, 5_000):
        frames = [one(n * 20_000, 0, 7, 0, 1) for n in range(first, first + 5_000)]
        assert len(processed(frames, processor).routine) == 5_000
    slots = processor._young.keys[:, 1] != 0
    edges = np.flatnonzero(np.diff(np.concatenate([[False], slots, [False]]).astype(np.int8)))
    assert (edges[1::2] - edges[::2]).max() < 1_000


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


TIMES_MS = [0, 1, 9_999, 10_001, 20_002, 2**20 - 1, 2**20]


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(
        st.lists(st.tuples(st.sampled_from(TIMES_MS), st.integers(0, 3), st.integers(0, 2),
                           st.integers(0, 1), st.integers(0, 1), st.sampled_from([0, EMERGENCY_FLAG, INVALID_FLAG])),
                 max_size=20),
        max_size=6,
    )
)  # fmt: skip
def test_every_frame_is_in_one_class_as_the_rule_says__F5_7_31(
    batches: list[list[tuple[int, int, int, int, int, int]]],
) -> None:
    processor, known = PacketProcessor(remembered=10_000), dict[tuple[int, int, int], tuple[int, int, int]]()
    for batch in batches:
        expected: dict[str, list[int]] = {name: [] for name in Processed.__slots__}
        for row, (time_ms, sequence, satellite, size, content, flags) in enumerate(batch):
            near = [key for key in known if key[:2] == (satellite, sequence) and abs(key[2] - time_ms) <= EPOCH_MS]
            frame = (size, content if size else 0, flags)
            if flags & INVALID_FLAG:
                expected["invalid"].append(row)
                continue
            if any(key[2] == time_ms and known[key] == frame for key in near):
                expected["duplicates"].append(row)
                continue
            new, repeated = ("emergency", "urgent_conflicts") if flags else ("routine", "conflicts")
            expected[repeated if near else new].append(row)
            if not near:
                known[satellite, sequence, time_ms] = frame
        found = rows(processed([one(t, q, s, f, n, content=c) for t, q, s, n, c, f in batch], processor))
        for name in ("emergency", "routine"):
            expected[name].sort(key=lambda row: (batch[row][0], batch[row][2], batch[row][1]))
            found[name].sort(key=lambda row: (batch[row][0], batch[row][2], batch[row][1], row))
        assert found == expected
        assert sorted(chain.from_iterable(found.values())) == list(range(len(batch)))


def test_allocations_depend_on_the_batch_and_not_on_its_frames__F5_2_16(tmp_path: Path) -> None:
    """All allocations, also those that are given back at once: an object per frame would add 9,900."""
    processor = PacketProcessor(remembered=2**16)

    def allocations(count: int, first: int) -> int:
        frames = frames_of(telemetry(count, first=first))
        report = tmp_path / f"{first}.bin"
        with memray.Tracker(report, trace_python_allocators=True):
            result = processor.process(frames)
        assert len(result.routine) == count
        return int(memray.FileReader(report).metadata.total_allocations)

    allocations(100, 0)
    assert allocations(10_000, 1_000) <= allocations(100, 20_000) + 50
