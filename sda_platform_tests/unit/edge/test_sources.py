"""Sources over real sockets on loopback: what is sent is what lands, and what is wrong is counted."""

import asyncio
from pathlib import Path

import pytest

from sda_platform.edge.priority import Priority
from sda_platform.edge.sources.source import SourceState
from sda_platform.formats.telemetry import EMERGENCY_FLAG, INVALID_FLAG
from sda_platform_tests.support.collectors import (
    beacons,
    collecting,
    config,
    framed,
    landed,
    payloads,
    radar_frames,
    telemetry,
    until,
)
from sda_platform_tests.support.socket_sources import LINKS, RADAR, STATIONS, connect, ended, sealed, send_datagrams


def test_radar_frames_land_as_they_came_with_their_priority__DP1_F2(tmp_path: Path) -> None:
    frames = radar_frames(300, tracks=10)

    async def scenario() -> None:
        async with collecting(tmp_path, RADAR) as collector:
            send_datagrams(collector, "radar-a", frames)
            await sealed(collector, "radar-a", 300)
            assert collector.supervised["radar-a"].source.kernel_drops == 0

    asyncio.run(scenario())
    assert payloads(tmp_path, "radar", "high") == frames[:40]
    assert payloads(tmp_path, "radar", "low") == frames[40:]


def test_a_datagram_of_another_length_is_counted_and_lands__DP1_Q1(tmp_path: Path) -> None:
    wrong = [b"", b"x" * 59, b"x" * 61, b"\xff" * 1500]

    async def scenario() -> None:
        async with collecting(tmp_path, RADAR) as collector:
            send_datagrams(collector, "radar-a", [*wrong, *radar_frames(1)])
            await sealed(collector, "radar-a", 5)
            assert collector.supervised["radar-a"].source.errors == {"bad_length": 4}
            assert collector.health == []

    asyncio.run(scenario())
    assert payloads(tmp_path, "radar", "low") == wrong
    assert payloads(tmp_path, "radar", "high") == radar_frames(1)


def test_beacons_are_acknowledged_once_they_are_sealed__DP1_F4_I18(tmp_path: Path) -> None:
    frames = beacons(20)

    async def scenario() -> None:
        async with collecting(tmp_path, {"links": {**LINKS["links"], "acknowledge": True}}) as collector:
            reader, writer = await connect(collector, "links")
            acknowledged = 0
            for part in (frames[:7], frames[7:]):
                writer.write(framed(part))
                while acknowledged < frames.index(part[-1]) + 1:
                    acknowledged = int.from_bytes(await reader.readexactly(8), "little")
                    assert len(payloads(tmp_path, "isl")) >= acknowledged
            writer.close()

    asyncio.run(scenario())
    assert payloads(tmp_path, "isl") == frames


@pytest.mark.parametrize("chunk", [1, 3, 83, 84, 85])
def test_frames_are_whole_however_the_stream_is_torn_into_pieces__F1(tmp_path: Path, chunk: int) -> None:
    data = framed(beacons(4))

    async def scenario() -> None:
        async with collecting(tmp_path, LINKS) as collector:
            _, writer = await connect(collector, "links")
            for start in range(0, len(data), chunk):
                writer.write(data[start : start + chunk])
                await asyncio.sleep(0)
            await sealed(collector, "links", 4)
            writer.close()

    asyncio.run(scenario())
    assert payloads(tmp_path, "isl") == beacons(4)


def test_an_oversized_length_ends_that_connection_only__F1(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, LINKS) as collector:
            _, good = await connect(collector, "links")
            good.write(framed(beacons(1)))
            reader, bad = await connect(collector, "links")
            bad.write(framed(beacons(1, norad_id=5)) + b"\xff\xff\xff\xff" + b"garbage")
            assert await ended(reader) == b""
            good.write(framed(beacons(2)[1:]))
            await sealed(collector, "links", 4)
            source = collector.supervised["links"].source
            assert source.errors["oversized"] == 1
            assert source.connections == 1
            good.close()

    asyncio.run(scenario())
    assert payloads(tmp_path, "isl", "high") == [*beacons(1), *beacons(1, norad_id=5), *beacons(2)[1:]]
    assert payloads(tmp_path, "isl", "low") == [b"\xff\xff\xff\xffgarbage"]


def test_a_frame_that_breaks_off_is_counted_and_kept__F4(tmp_path: Path) -> None:
    """The end of the stream within a frame, or within its length, is an error; between two frames it is none."""

    async def scenario() -> None:
        async with collecting(tmp_path, LINKS) as collector:
            for data in (framed(beacons(1)), framed(beacons(1))[:50], b"\x50\x00"):
                reader, writer = await connect(collector, "links")
                writer.write(data)
                writer.write_eof()
                await ended(reader)
            await sealed(collector, "links", 3)
            assert collector.supervised["links"].source.errors["torn"] == 2

    asyncio.run(scenario())
    assert sorted(map(len, payloads(tmp_path, "isl"))) == [2, 50, 80]


def test_emergency_frames_land_first_and_duplicates_not_again__F5(tmp_path: Path) -> None:
    routine, urgent = telemetry(50), telemetry(2, first=100, flags=EMERGENCY_FLAG)
    invalid = telemetry(1, first=200, flags=INVALID_FLAG)

    async def scenario() -> None:
        async with collecting(tmp_path, STATIONS) as collector:
            _, writer = await connect(collector, "stations")
            writer.write(framed([*routine, *urgent, *routine[:10], *invalid], "big"))
            await sealed(collector, "stations", 53)
            assert collector.supervised["stations"].source.errors == {"duplicate": 10, "invalid": 1, "missing": 50}
            writer.close()

    asyncio.run(scenario())
    assert payloads(tmp_path, "telemetry", "emergency") == urgent
    assert payloads(tmp_path, "telemetry", "high") == routine
    assert payloads(tmp_path, "telemetry", "low") == invalid


def test_telemetry_that_was_dropped_lands_when_it_is_sent_again__DP1_I18(tmp_path: Path) -> None:
    """The drop ends the connection. What is sent again is no duplicate: acknowledged means sealed."""
    frames = telemetry(20)

    async def scenario() -> None:
        sources = {"stations": {**STATIONS["stations"], "acknowledge": True}}
        async with collecting(tmp_path, sources) as collector:
            full = [collector.entry("telemetry").lanes[each] for each in (Priority.HIGH, Priority.DEFERRED)]
            for lane in full:
                lane.used += lane.edge.capacity
            reader, writer = await connect(collector, "stations")
            writer.write(framed(frames, "big"))
            assert await ended(reader) == b""
            writer.close()
            assert collector.ledger.of_source("stations").dropped == 20
            for lane in full:
                lane.release(lane.edge.capacity)
            reader, writer = await connect(collector, "stations")
            writer.write(framed(frames, "big"))
            while int.from_bytes(await reader.readexactly(8), "big") < 20:
                pass
            assert payloads(tmp_path, "telemetry") == frames
            writer.close()

    asyncio.run(scenario())


def test_connections_beyond_the_bound_are_refused_and_counted__F1(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, {"links": {**LINKS["links"], "max_connections": 2}}) as collector:
            source = collector.supervised["links"].source
            writers = [(await connect(collector, "links"))[1] for _ in range(2)]
            await until(lambda: source.connections == 2)
            for _ in range(20):
                reader, writer = await connect(collector, "links")
                await ended(reader)
                writer.close()
            assert source.errors["refused_connection"] == 20
            writers[0].write(framed(beacons(1)))
            await sealed(collector, "links", 1)
            writers[0].close()
            await until(lambda: source.connections == 1)
            _, again = await connect(collector, "links")
            again.write(framed(beacons(2)[1:]))
            await sealed(collector, "links", 2)

    asyncio.run(scenario())


def test_a_stop_finishes_the_frame_that_is_being_read__F1_DP1_F8(tmp_path: Path) -> None:
    (frame,) = beacons(1)
    data = framed([frame])

    async def scenario() -> None:
        async with collecting(tmp_path, LINKS) as collector:
            _, writer = await connect(collector, "links")
            writer.write(data[:40])
            source = collector.supervised["links"].source
            await until(lambda: source.connections == 1)
            await asyncio.sleep(0.02)
            stopping = asyncio.create_task(collector.supervised["links"].stop())
            await asyncio.sleep(0.02)
            writer.write(data[40:])
            await stopping
            assert source.state is SourceState.STOPPED
            writer.close()

    asyncio.run(scenario())
    assert payloads(tmp_path, "isl") == [frame]


def test_an_end_loses_nothing_that_was_received__DP1_F8_F9(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, {**RADAR, **LINKS, **STATIONS}, seal_after_s=60.0) as collector:
            send_datagrams(collector, "radar-a", radar_frames(100, tracks=50))
            _, links = await connect(collector, "links")
            links.write(framed(beacons(30)))
            _, stations = await connect(collector, "stations")
            stations.write(framed(telemetry(40), "big"))
            await until(lambda: sum(a.received for a in collector.ledger.accounts().values()) == 170)
            assert landed(tmp_path, "radar") == []
        assert all(account.in_flight == 0 for account in collector.ledger.accounts().values())

    asyncio.run(scenario())
    assert [len(payloads(tmp_path, zone)) for zone in ("radar", "isl", "telemetry")] == [100, 30, 40]


def test_sources_are_added_changed_and_removed_while_others_run__F3(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, {**RADAR, **LINKS}) as collector:
            radar = collector.supervised["radar-a"]
            _, writer = await connect(collector, "links")
            writer.write(framed(beacons(3)))
            await sealed(collector, "links", 3)
            changed = {**RADAR, "links": {**LINKS["links"], "acknowledge": True}, **STATIONS}
            await collector.apply(config(changed))
            await until(lambda: bool(collector.supervised["stations"].source.address))
            await until(lambda: bool(collector.supervised["links"].source.address))
            assert collector.supervised["radar-a"] is radar
            await collector.apply(config(RADAR))
            assert list(collector.supervised) == ["radar-a"]
            send_datagrams(collector, "radar-a", radar_frames(1))
            await sealed(collector, "radar-a", 1)
            writer.close()

    asyncio.run(scenario())
    assert payloads(tmp_path, "isl") == beacons(3)


def test_a_socket_beyond_its_quota_is_not_read_and_other_sources_are(tmp_path: Path) -> None:
    """What exceeds the quota of links lands. The next frames wait in the socket, until the end. Radar is not held."""
    sources = {**LINKS, **RADAR}

    async def scenario() -> None:
        async with collecting(tmp_path, sources, quota_records=20) as collector:
            _, first = await connect(collector, "links")
            first.write(framed(beacons(30)))
            await sealed(collector, "links", 30)
            _, second = await connect(collector, "links")
            second.write(framed(beacons(5, norad_id=5)))
            await until(lambda: collector.supervised["links"].source.errors["over_quota"] > 0)
            send_datagrams(collector, "radar-a", radar_frames(10))
            await sealed(collector, "radar-a", 10)
            assert collector.ledger.of_source("links").sealed == 30
            assert [each.partition(":")[0] for each in collector.health] == ["source links"]

    asyncio.run(scenario())
    assert payloads(tmp_path, "isl") == [*beacons(30), *beacons(5, norad_id=5)]


def test_frames_that_are_refused_have_a_quota_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, RADAR, quota_refused_frames=3) as collector:
            send_datagrams(collector, "radar-a", [b"nonsense"] * 4)
            await sealed(collector, "radar-a", 4)
            send_datagrams(collector, "radar-a", radar_frames(1))
            await until(lambda: collector.supervised["radar-a"].source.errors["over_quota"] > 0)
            assert collector.ledger.of_source("radar-a").sealed == 4
            assert "refused frames a minute" in collector.health[0]

    asyncio.run(scenario())


def test_emergency_frames_pass_a_station_beyond_its_quota(tmp_path: Path) -> None:
    """A flood of routine telemetry holds its socket up for 0.2 s a read, not until the quota allows more."""

    async def scenario() -> None:
        async with collecting(tmp_path, STATIONS, quota_records=1) as collector:
            _, writer = await connect(collector, "stations")
            writer.write(framed(telemetry(50), "big"))
            await sealed(collector, "stations", 50)
            writer.write(framed(telemetry(1, first=50, flags=EMERGENCY_FLAG), "big"))
            await sealed(collector, "stations", 51)

    asyncio.run(scenario())
    assert payloads(tmp_path, "telemetry", "emergency") == telemetry(1, first=50, flags=EMERGENCY_FLAG)


@pytest.mark.parametrize(("permitted", "urgent"), [(0, 0), (2, 2)])
def test_only_so_many_frames_a_minute_are_emergencies_by_their_senders_word__44(
    tmp_path: Path, permitted: int, urgent: int
) -> None:
    frames = telemetry(5, flags=EMERGENCY_FLAG)

    async def scenario() -> None:
        sources = {"stations": {**STATIONS["stations"], "emergencies_per_minute": permitted}}
        async with collecting(tmp_path, sources) as collector:
            _, writer = await connect(collector, "stations")
            writer.write(framed(frames, "big"))
            await sealed(collector, "stations", 5)
            assert collector.supervised["stations"].source.errors["emergency_refused"] == 5 - urgent
            writer.close()

    asyncio.run(scenario())
    assert payloads(tmp_path, "telemetry", "emergency") == frames[:urgent]
    assert payloads(tmp_path, "telemetry", "high") == frames[urgent:], "they land all the same"
