"""Hostile input: any bytes on any socket are counted and landed or refused, and the other sources continue."""

import asyncio
import random
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.edge.frames import frames_of
from sda_platform.edge.packets import PacketProcessor
from sda_platform.edge.redundancy import RecentSamples
from sda_platform.edge.sources.frame_stream import FrameStream, FrameTimeouts, LengthPrefix, StreamEnded
from sda_platform.edge.sources.source import SourceState
from sda_platform_tests.support.collectors import (
    address,
    beacons,
    collecting,
    framed,
    landed,
    payloads,
    radar_frames,
    telemetry,
    until,
)
from sda_platform_tests.support.socket_sources import LINKS, RADAR, STATIONS

SEED = 20_261_122


async def read_all(data: bytes, chunks: list[int], framing: LengthPrefix) -> tuple[list[bytes], str, bytes]:
    """The frames of a stream that arrives in chunks of these sizes, why it ended, and the rest."""
    reader = asyncio.StreamReader()
    stream = FrameStream(reader, framing, FrameTimeouts())

    async def feed() -> None:
        at, turn = 0, 0
        while at < len(data):
            size = chunks[turn % len(chunks)]
            reader.feed_data(data[at : at + size])
            at, turn = at + size, turn + 1
            await asyncio.sleep(0)
        reader.feed_eof()

    feeding, found = asyncio.create_task(feed()), list[bytes]()
    try:
        while True:
            frames = await stream.read()
            found += [frames.payload(row) for row in range(len(frames))]
    except StreamEnded as ended:
        return found, ended.reason, ended.rest
    finally:
        await feeding


@settings(max_examples=150, deadline=None)
@given(
    data=st.binary(max_size=400),
    chunks=st.lists(st.integers(1, 50), min_size=1, max_size=5),
    is_big_endian=st.booleans(),
)
def test_any_stream_ends_with_a_declared_reason_and_no_byte_is_lost__F1(
    data: bytes, chunks: list[int], is_big_endian: bool
) -> None:
    found, reason, rest = asyncio.run(read_all(data, chunks, LengthPrefix(is_big_endian, max_bytes=100)))
    order = "big" if is_big_endian else "little"
    whole = framed(found, order)
    assert data.startswith(whole + rest)
    assert reason in ("closed", "torn", "oversized")
    if reason != "oversized":  # what comes behind a violation is not read
        assert whole + rest == data
        assert (reason == "closed") == (rest == b"")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=120), max_size=30))
def test_the_kernels_take_any_bytes_and_put_each_frame_into_one_class(frames: list[bytes]) -> None:
    batch = frames_of(frames)
    found = PacketProcessor(remembered=64).process(batch)
    assert sum(len(getattr(found, name)) for name in type(found).__slots__) == len(frames)
    is_high, is_bad = RecentSamples(slots=16).are_high(batch)
    assert is_bad.tolist() == [len(frame) != 60 for frame in frames]
    assert not (is_high & is_bad).any()


def test_random_bytes_on_every_socket_stop_nothing__DP1_Q1(tmp_path: Path) -> None:
    dice = random.Random(SEED)

    async def scenario() -> None:
        async with collecting(tmp_path, {**RADAR, **LINKS, **STATIONS}) as collector:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                for _ in range(200):
                    sender.sendto(dice.randbytes(dice.randrange(0, 1_400)), address(collector, "radar-a"))
            for name in ("links", "stations"):
                for _ in range(30):
                    _, writer = await asyncio.open_connection(*address(collector, name))
                    writer.write(dice.randbytes(dice.randrange(0, 3_000)))
                    writer.close()
            _, writer = await asyncio.open_connection(*address(collector, "links"))
            writer.write(framed(beacons(3)))
            await until(lambda: len(payloads(tmp_path, "isl", "high")) >= 3)
            await until(lambda: collector.ledger.of_source("radar-a").sealed == 200)
            await until(lambda: collector.supervised["stations"].source.connections == 0)
            assert {each.source.state for each in collector.supervised.values()} == {SourceState.RUNNING}
            assert collector.health == []
            writer.close()

    asyncio.run(scenario())
    assert all(meta.priority == "low" for meta, _ in landed(tmp_path, "radar"))


def test_a_sender_that_stalls_within_a_frame_holds_up_no_other__F1(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, STATIONS) as collector:
            stalled = [await asyncio.open_connection(*address(collector, "stations")) for _ in range(20)]
            for _, writer in stalled:
                writer.write(framed(telemetry(1), "big")[:17])
            _, good = await asyncio.open_connection(*address(collector, "stations"))
            good.write(framed(telemetry(500, satellite=8), "big"))
            await until(lambda: collector.ledger.of_source("stations").sealed == 500)
            for _, writer in (*stalled, (None, good)):
                writer.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(("sent", "reason"), [(b"", "idle"), (b"\x50\x00", "slow"), (b"\x50\x00\x00\x00xyz", "slow")])
def test_a_silent_or_slow_peer_is_closed_after_its_timeout__F4(sent: bytes, reason: str) -> None:
    async def scenario() -> str:
        reader = asyncio.StreamReader()
        reader.feed_data(sent)
        stream = FrameStream(reader, LengthPrefix(is_big_endian=False), FrameTimeouts(idle_s=0.01, frame_s=0.02))
        with pytest.raises(StreamEnded) as ended:
            await stream.read()
        assert ended.value.rest == sent
        return ended.value.reason

    assert asyncio.run(scenario()) == reason


def test_replayed_and_reordered_frames_land_once_and_in_order__F5(tmp_path: Path) -> None:
    frames = telemetry(100)
    shuffled = [*frames, *frames]
    random.Random(SEED).shuffle(shuffled)

    async def scenario() -> None:
        async with collecting(tmp_path, STATIONS, seal_after_s=0.2) as collector:
            _, writer = await asyncio.open_connection(*address(collector, "stations"))
            writer.write(framed(shuffled, "big"))
            await until(lambda: collector.ledger.of_source("stations").sealed == 100)
            assert collector.supervised["stations"].source.errors == {"duplicate": 100}
            writer.close()

    asyncio.run(scenario())
    assert payloads(tmp_path, "telemetry") == frames


def test_a_flood_of_garbage_is_shed_before_one_fresh_observation__DP4_Q3(tmp_path: Path) -> None:
    """The lake is behind: garbage is deferred, and what a radar sees anew still lands at once."""

    async def scenario() -> None:
        async with collecting(tmp_path, RADAR, deferred_seal_after_s=0.01, backlog_max_bytes=1) as collector:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.sendto(radar_frames(5_000, tracks=5_000)[-1], address(collector, "radar-a"))
            await until(lambda: collector.entry("radar").pressure.backlog > 1.0)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                for number in range(2_000):
                    sender.sendto(b"garbage", address(collector, "radar-a"))
                    if number % 200 == 0:
                        sender.sendto(radar_frames(number + 1, tracks=5_000)[number], address(collector, "radar-a"))
                        await asyncio.sleep(0)
            await until(lambda: collector.ledger.of_source("radar-a").sealed == 2_011)
            assert collector.ledger.of_source("radar-a").dropped == 0
            assert collector.ledger.of_source("radar-a").deferred == 2_000

    asyncio.run(scenario())
    assert len(payloads(tmp_path, "radar", "high")) == 11
