"""What happens when more comes than can be sealed: deferred by policy, counted exactly, and nothing fresh lost."""

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sda_platform.edge import collector as collector_module
from sda_platform.edge.batch import BATCH_OVERHEAD, BatchReceipt, ReceivedBatch
from sda_platform.edge.channel import Channel, ChannelClosed, OverflowPolicy
from sda_platform.edge.ledger import Account, Ledger
from sda_platform.edge.pressure import Pressure
from sda_platform.edge.priority import Priority
from sda_platform.edge.sealing import Sealer
from sda_platform.edge.topology import MIB, Topology, declared_edges
from sda_platform.edge.zone import ZoneEntry
from sda_platform.formats.framing.container import pack_records
from sda_platform.lake import durable
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.collectors import address, beacons, collecting, framed, landed, payloads, until
from sda_platform_tests.support.socket_sources import LINKS


@dataclass
class Zone:
    """A zone whose edges no one empties but the test."""

    entry: ZoneEntry
    ledger: Ledger

    async def send(self, priority: Priority, size: int = 1 * MIB - BATCH_OVERHEAD, records: int = 10) -> BatchReceipt:
        receipt = BatchReceipt()
        await self.entry.hand_over(ReceivedBatch("source", priority, bytes(size), records, 0.0, receipt))
        return receipt

    async def empty(self, priority: Priority) -> None:
        lane = self.entry.lanes[priority]
        for batch in await lane.take(1, 0.0):
            lane.release(batch.weight)
            batch.receipt.settle()
            self.ledger.account("source", batch.priority).sealed += batch.records

    def account(self, priority: Priority) -> Account:
        return self.ledger.account("source", priority)


def zone(name: str = "radar") -> Zone:
    ledger = Ledger()
    return Zone(ZoneEntry(name, Topology(), ledger), ledger)


def test_above_80_percent_low_is_deferred_until_below_50__DP4_F5(tmp_path: Path) -> None:
    async def scenario() -> None:
        here = zone()
        for _ in range(11):
            await here.send(Priority.HIGH)
        await here.send(Priority.LOW)
        assert here.account(Priority.LOW) == Account(received=10)
        await here.send(Priority.LOW)
        await here.send(Priority.LOW)  # 13 of 16 MiB are in use
        assert here.account(Priority.LOW) == Account(received=30, deferred=10)
        await here.empty(Priority.LOW)  # 11 of 16: still above half
        await here.send(Priority.LOW)
        assert here.account(Priority.LOW).deferred == 20
        await here.empty(Priority.HIGH)
        await here.send(Priority.LOW)
        assert here.account(Priority.LOW) == Account(received=50, sealed=20, deferred=20)

    asyncio.run(scenario())


def test_the_backlog_of_the_lake_defers_low_priority_too__DP4_I16() -> None:
    async def scenario() -> None:
        here = zone()
        here.entry.pressure.backlog = 0.81
        await here.send(Priority.LOW)
        assert here.account(Priority.LOW).deferred == 10
        here.entry.pressure.backlog = 0.4
        await here.send(Priority.LOW)
        assert here.account(Priority.LOW).deferred == 10

    asyncio.run(scenario())


def test_low_is_dropped_and_counted_only_when_deferred_is_full_and_high_is_never__DP4_Q3() -> None:
    async def scenario() -> None:
        here = zone()
        lost = [await here.send(Priority.LOW) for _ in range(24)]
        account = here.account(Priority.LOW)
        assert (account.received, account.dropped, account.in_flight) == (240, 40, 200)
        assert [receipt.lost for receipt in lost][-5:] == [0, 10, 10, 10, 10]
        high = [asyncio.create_task(here.send(Priority.HIGH)) for _ in range(20)]
        while not all(task.done() for task in high):
            await asyncio.sleep(0)
            await here.empty(Priority.HIGH)
        await asyncio.gather(*high)
        assert here.account(Priority.HIGH).dropped == 0
        refused = {name: dict(lane.counts.refused) for name, lane in here.entry.lanes.items() if lane.counts.refused}
        assert refused[Priority.DEFERRED] == {"low": 40}

    asyncio.run(scenario())


def test_emergency_traffic_passes_while_everything_else_is_full__F3_F0(tmp_path: Path) -> None:
    async def scenario() -> None:
        here = zone("telemetry")
        lane = here.entry.lanes[Priority.HIGH]
        for _ in range(12):
            await here.send(Priority.HIGH)
        quick = replace(lane.edge, deadline_s=0.001)
        lane.edge = quick
        await here.send(Priority.HIGH)  # routine waits for its deadline, then goes the way round
        assert here.account(Priority.HIGH) == Account(received=130, deferred=10)
        await here.send(Priority.EMERGENCY, size=1_000)
        assert here.entry.lanes[Priority.EMERGENCY].used > 0

    asyncio.run(scenario())


def test_what_waits_at_an_end_is_counted_as_dropped() -> None:
    async def scenario() -> None:
        here = zone()
        for _ in range(12):
            await here.send(Priority.HIGH)
        waiting = asyncio.create_task(here.send(Priority.HIGH))
        await until(lambda: here.entry.lanes[Priority.HIGH].waiting == 1)
        here.entry.close()
        with pytest.raises(ChannelClosed):
            await waiting
        assert here.account(Priority.HIGH).dropped == 10

    asyncio.run(scenario())


def test_pressure_has_hysteresis() -> None:
    (edge, *_) = [edge for edge in declared_edges(["radar"]) if edge.policy is OverflowPolicy.BLOCK]
    channel: Channel[ReceivedBatch] = Channel(replace(edge, capacity=100))
    pressure = Pressure([channel])
    found = []
    for used in (80, 81, 51, 50, 51, 81):
        channel.used = used
        found.append(pressure.saturated())
    assert found == [False, True, True, False, False, True]


@asynccontextmanager
async def slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[int]]:
    """Every write fails until the list is emptied."""
    broken = [1]
    real = durable.create

    def create(path: object, data: bytes) -> bool:
        if broken:
            raise OSError(28, "No space left on device", str(path))
        return real(path, data)  # type: ignore[arg-type]

    monkeypatch.setattr(durable, "create", create)
    yield broken


def test_a_disk_that_refuses_stalls_the_socket_and_loses_nothing__DP4_I17(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = beacons(50)

    async def scenario() -> None:
        links = {"links": {**LINKS["links"], "acknowledge": True}}
        async with collecting(tmp_path, links) as collector, slow_disk(tmp_path, monkeypatch) as broken:
            reader, writer = await asyncio.open_connection(*address(collector, "links"))
            writer.write(framed(frames))
            await until(lambda: bool(collector.health))
            assert "sealer of isl (high)" in collector.health[0]
            assert landed(tmp_path, "isl") == []
            broken.clear()
            acknowledged = 0
            while acknowledged < len(frames):
                acknowledged = int.from_bytes(await reader.readexactly(8), "little")
            assert collector.health == []
            writer.close()

    asyncio.run(scenario())
    assert payloads(tmp_path, "isl") == frames


def test_a_zone_that_cannot_be_listed_ends_nothing__DP4_I16(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk that refuses a seal refuses the listing too: neither may cost records that are in memory."""
    asked: list[str] = []

    def refuse(_: LandingZone) -> list[str]:
        asked.append("")
        raise OSError(errno.EIO, "Input/output error")

    async def scenario() -> None:
        monkeypatch.setattr(collector_module, "_BACKLOG_S", 0.01)
        monkeypatch.setattr(LandingZone, "pending_names", refuse)
        async with collecting(tmp_path, LINKS) as collector:
            _, writer = await asyncio.open_connection(*address(collector, "links"))
            await until(lambda: len(asked) > 2)
            writer.write(framed(beacons(3)))
            await until(lambda: collector.ledger.of_source("links").sealed == 3)
            assert collector.faults.empty()
            writer.close()

    asyncio.run(scenario())


def test_a_fault_of_a_sealer_ends_the_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, LINKS) as collector:
            monkeypatch.setattr(Sealer, "_attempt", lambda *_: 1 / 0)
            _, writer = await asyncio.open_connection(*address(collector, "links"))
            writer.write(framed(beacons(1)))
            async with asyncio.timeout(5):
                fault = await collector.faults.get()
            assert isinstance(fault, ZeroDivisionError)
            writer.close()

    asyncio.run(scenario())


def test_segments_are_within_their_bound_whatever_waits(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path, LINKS, segment_max_bytes=64 * 2**10) as collector:
            entry = collector.entry("isl")
            for part in range(10):
                data = pack_records(beacons(200, norad_id=part + 1), [0] * 200)
                receipt = BatchReceipt()
                await entry.hand_over(ReceivedBatch("links", Priority.HIGH, data, 200, 0.0, receipt))
            await until(lambda: collector.ledger.of_source("links").sealed == 2000)

    asyncio.run(scenario())
    sizes = [meta.bytes for meta, _ in landed(tmp_path, "isl")]
    assert len(sizes) >= 3
    assert max(sizes) <= 64 * 2**10
    assert sum(meta.records for meta, _ in landed(tmp_path, "isl")) == 2000
