"""The stages of the collector, each timed apart on the same seeded frames; prints ns per frame as JSON.

    python benchmarks/audit_stages.py [--samples 30] [--size 1000]

Whatever is not measured (building the frames, starting) is outside the timed region; results are used and checked. With
PYTHONPATH set to another checkout it measures that version: `audit.py` compares two so.
"""

import argparse
import json
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np

from sda_platform.edge.frames import cut_stream, frames_of
from sda_platform.edge.packets import PacketProcessor
from sda_platform.edge.redundancy import RecentSamples
from sda_platform.formats.radar import RADAR_FRAME
from sda_platform.formats.segments import describe_segment
from sda_platform.formats.telemetry import EMERGENCY_FLAG, encode_telemetry_frames
from sda_platform.landing.lander import seal

SEED = 20_261_122
SIZES = (100, 500, 1_000, 5_000)
_HEAD = struct.Struct("<I")
_RECORD = struct.Struct("<IQ")

_TURNS = 16

Work = Callable[[], object]


def radar(count: int) -> list[bytes]:
    """Frames of 60 bytes with random content. A track has eight of them, four of which are redundant."""
    rows = np.random.default_rng(SEED).integers(0, 256, (count, RADAR_FRAME.itemsize), np.uint8)
    rows[:, :8] = rows[np.arange(count) // 8, :8]
    rows[:, 8:16] = rows[0, 8:16]  # at one time
    return [row.tobytes() for row in rows]


def telemetry(count: int, first: int = 0) -> list[bytes]:
    """Frames with 256 bytes of payload, in random order: a third are duplicates, a tenth is emergency traffic."""
    order = first + np.random.default_rng(SEED).permutation(count) * 2 // 3
    return encode_telemetry_frames(
        timestamp_ms=order, sequence=order, satellite_id=order % 48, station_id=order % 12,
        flags=np.where(order % 10 == 0, EMERGENCY_FLAG, 0), payloads=[b"x" * 256] * count,
    )  # fmt: skip


def stages(count: int, directory: Path) -> dict[str, Work]:
    """What is timed, each with its input ready."""
    frames = radar(count)
    wire = b"".join(_HEAD.pack(len(frame)) + frame for frame in frames)
    buffer, batch = np.frombuffer(wire, np.uint8), frames_of(frames)
    # Each call gets frames that the processor does not remember any more: new ones are what costs.
    packets = cycle([frames_of(telemetry(count, turn * count)) for turn in range(_TURNS)])
    memory, processor, data = RecentSamples(), PacketProcessor(remembered=_TURNS // 4 * count), batch.packed(0)
    plain, number = dict[bytes, list[int]](), iter(range(10**9))

    def sealed() -> None:
        unique = data[:-8] + next(number).to_bytes(8, "little")
        meta = describe_segment(
            unique, feed="radar", segment_format="radar-frames", sealed_time_ns=0, sealed_wall_time_ns=0
        )
        seal(unique, meta, str(directory), stem="audit")

    return {
        "cut": lambda: cut_stream(buffer, is_big_endian=False).frames,
        "classify": lambda: memory.are_high(batch),
        "packets": lambda: processor.process(next(packets)),
        "pack": lambda: batch.packed(0),
        "seal": sealed,
        "cut, classify, pack": lambda: _chain(buffer, memory),
        "the same, an object a frame": lambda: _plain_chain(wire, plain),
    }


def _chain(buffer: np.ndarray, memory: RecentSamples) -> tuple[bytes, bytes]:
    """The frames of high and of low priority, as two containers."""
    frames = cut_stream(buffer, is_big_endian=False).frames
    is_high, _ = memory.are_high(frames)
    return frames.where(is_high).packed(0), frames.where(~is_high).packed(0)


def _plain_chain(wire: bytes, recent: dict[bytes, list[int]]) -> tuple[bytes, bytes]:
    """What the chain does, written with one object for each frame: the version before the kernels."""
    outputs: tuple[list[bytes], list[bytes]] = ([], [])
    at = 0
    while at + 4 <= len(wire):
        (length,) = _HEAD.unpack_from(wire, at)
        frame = wire[at + 4 : at + 4 + length]
        at += 4 + length
        time_ns = int.from_bytes(frame[8:16], "little", signed=True)
        seen = recent.setdefault(frame[:8], [])
        is_high = len(seen) < 4 or abs(time_ns - seen[0]) >= 30_000_000_000
        if is_high:
            seen.append(time_ns)
            del seen[:-4]
        outputs[not is_high].append(_RECORD.pack(length, 0) + frame)
    return b"".join(outputs[0]), b"".join(outputs[1])


def timed(work: Work, count: int, samples: int, clock: Callable[[], int]) -> list[float]:
    """ns per frame of each sample by ``clock``; as many calls a sample as take about two milliseconds."""
    work()
    began = clock()
    work()
    calls = max(1, int(2e6 / max(clock() - began, 1)))
    found = []
    for _ in range(samples):
        began = clock()
        for _ in range(calls):
            work()
        found.append((clock() - began) / calls / count)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--size", type=int, action="append")
    chosen = parser.parse_args()
    found: dict[str, dict[int, list[float]]] = {}
    for count in chosen.size or SIZES:
        with tempfile.TemporaryDirectory() as directory:
            works = stages(count, Path(directory))
            frames = radar(count)
            wire = b"".join(_HEAD.pack(len(frame)) + frame for frame in frames)
            memory, plain = RecentSamples(), dict[bytes, list[int]]()
            for _ in range(2):  # with an empty memory, and with one that has the frames already
                high, low = _chain(np.frombuffer(wire, np.uint8), memory)
                assert (high, low) == _plain_chain(wire, plain), "both versions give each priority the same bytes"
                assert low, "some frames are redundant"
            for name, work in works.items():
                # Sealing waits for the disk; what only computes is timed apart from the machine's other work.
                few, clock = chosen.samples, time.process_time_ns
                if name == "seal":
                    few, clock = max(5, few // 3), time.perf_counter_ns
                found.setdefault(name, {})[count] = timed(work, count, few, clock)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
