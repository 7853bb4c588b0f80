"""Acknowledged means sealed, also for what is sent again before, during and after the seal of its first copy."""

import asyncio
import errno
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sda_platform.edge import sealing
from sda_platform.edge.address import Address
from sda_platform.edge.collector import Collector
from sda_platform.edge.first_copies import FirstCopies
from sda_platform.edge.frames import frames_of
from sda_platform.edge.packets import PacketProcessor
from sda_platform.edge.priority import Priority
from sda_platform.edge.sealed_log import SealedLog
from sda_platform.edge.sources.intake import TelemetryIntake
from sda_platform.formats.cutting import split_records
from sda_platform.formats.framing.container import pack_records
from sda_platform.formats.segments import Origin
from sda_platform.formats.telemetry import EMERGENCY_FLAG
from sda_platform.ingest.telemetry import decode
from sda_platform.lake import durable
from sda_platform.landing.zone import LandingZone
from sda_platform_tests.support.collectors import collecting, framed, landed, payloads, telemetry, until
from sda_platform_tests.support.socket_sources import STATIONS, connect, ended

ACKNOWLEDGING = {"stations": {**STATIONS["stations"], "acknowledge": True}}
FRAMES = telemetry(20)


class Disk:
    """Refuses every seal while ``is_full``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = True
        real = durable.create

        def create(path: object, data: bytes) -> bool:
            if self.is_full:
                raise OSError(errno.ENOSPC, "No space left on device", str(path))
            return real(path, data)  # type: ignore[arg-type]

        monkeypatch.setattr(durable, "create", create)
        monkeypatch.setattr(sealing, "pause_s", lambda *_, **__: 0.01)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def run(scenario: Callable[[Collector], Awaitable[None]], home: Path) -> None:
    async def whole() -> None:
        async with collecting(home, ACKNOWLEDGING) as collector:
            await scenario(collector)

    asyncio.run(whole())


async def sent(collector: Collector, frames: list[bytes]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await connect(collector, "stations")
    writer.write(framed(frames, "big"))
    return reader, writer


async def acknowledged(reader: asyncio.StreamReader) -> int:
    return int.from_bytes(await reader.readexactly(8), "big")


def test_what_is_sent_again_before_the_seal_is_acknowledged_with_it__DP1_I18(tmp_path: Path, disk: Disk) -> None:
    async def scenario(collector: Collector) -> None:
        source = collector.supervised["stations"].source
        (await sent(collector, FRAMES))[1].close()
        await until(lambda: collector.ledger.of_source("stations").received == 20)
        reader, writer = await sent(collector, FRAMES)
        await until(lambda: source.errors["duplicate"] == 20)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await acknowledged(reader)
        assert landed(tmp_path, "telemetry") == []
        disk.is_full = False
        assert await acknowledged(reader) == 20
        assert payloads(tmp_path, "telemetry") == FRAMES
        writer.write(framed(FRAMES[:5], "big"))  # and once more, after the seal
        assert await acknowledged(reader) == 25
        writer.close()

    run(scenario, tmp_path)
    assert payloads(tmp_path, "telemetry") == FRAMES


def test_a_copy_lands_in_the_place_of_a_first_one_that_is_dropped__DP1_I18(tmp_path: Path) -> None:
    async def scenario(collector: Collector) -> None:
        lanes = collector.entry("telemetry").lanes
        high, deferred = lanes[Priority.HIGH], lanes[Priority.DEFERRED]
        high.edge = replace(high.edge, deadline_s=0.05)
        for lane in (high, deferred):
            lane.used += lane.edge.capacity
        first, _ = await sent(collector, FRAMES)
        await until(lambda: high.waiting == 1)
        high.edge = replace(high.edge, deadline_s=60.0)  # for the copy
        again, writer = await sent(collector, FRAMES)
        assert await ended(first) == b""
        high.release(high.edge.capacity)
        assert await acknowledged(again) == 20
        assert payloads(tmp_path, "telemetry") == FRAMES
        writer.close()

    run(scenario, tmp_path)
    assert payloads(tmp_path, "telemetry") == FRAMES


def test_what_is_sent_again_after_a_restart_is_acknowledged_and_no_new_frame__F5_27(tmp_path: Path) -> None:
    """The segments are pending, or consumed by then; one was never sealed, because the process was killed before."""

    async def first(collector: Collector) -> None:
        for part in (FRAMES[:8], FRAMES[8:12]):
            reader, writer = await sent(collector, part)
            assert await acknowledged(reader) == len(part)
            writer.close()

    run(first, tmp_path)
    zone = LandingZone(str(tmp_path / "landing"), "telemetry")
    consumed = next(each for each in map(zone.read, zone.pending()) if each.meta and each.meta.records == 8)
    zone.acknowledge([consumed.ref(records=8)])
    with (tmp_path / "collector" / "telemetry.sealed").open("a") as log:
        log.write(f"{'0' * 64} telemetry-killed.bin\n")

    async def again(collector: Collector) -> None:
        reader, writer = await sent(collector, FRAMES)
        assert await acknowledged(reader) == 20
        assert collector.supervised["stations"].source.errors == {"duplicate": 12}
        writer.close()

    run(again, tmp_path)
    assert sorted(payloads(tmp_path, "telemetry")) == sorted(FRAMES[8:])


def test_the_log_of_sealed_segments_is_bounded_and_the_last_ones_are_read(tmp_path: Path) -> None:
    zone = LandingZone(str(tmp_path / "landing"), "telemetry")
    log = SealedLog(tmp_path / "log", zone)
    for number in range(3 * 4_096):
        log.note(f"s{number}", "0" * 64)
    assert len((tmp_path / "log").read_text().splitlines()) == 4_096 + 4_096
    for number in range(3):
        data = pack_records(FRAMES[number : number + 1], [0])
        zone.seal_at(1, f"t{number}.bin", data, "telemetry-frames")
        log.note(f"t{number}.bin", hashlib.sha256(data).hexdigest())
    assert list(log.payloads(2)) == [[FRAMES[1]], [FRAMES[2]]]


@dataclass
class World:
    """Senders that share a memory of keys, and edges that no one empties but the test."""

    collector: Collector
    sealed: set[bytes] = field(default_factory=set)
    answers: list["asyncio.Task[bool]"] = field(default_factory=list)
    is_full: bool = False

    def __post_init__(self) -> None:
        source = self.collector.supervised["stations"].source
        services = replace(source.services, packets=PacketProcessor(remembered=64), first_copies=FirstCopies())
        source.services = services
        self.intake = TelemetryIntake(source)
        self.lanes = self.intake._entry.lanes
        self.high, deferred = self.lanes[Priority.HIGH], self.lanes[Priority.DEFERRED]
        self.high.edge = replace(self.high.edge, deadline_s=3600.0)
        self.bounded = (self.high, deferred)
        for task in self.collector._sealing:
            task.cancel()

    async def seal(self, priority: Priority) -> None:
        """Seal what waits on an edge."""
        lane = self.lanes[priority]
        if not lane._items:
            return
        batches = await lane.take(1, 0.0)
        for batch in batches:
            self.sealed |= {record.payload for record in split_records(batch.data, "telemetry-frames")}
            lane.release(batch.weight)
            batch.receipt.settle()

    def send(self, numbers: list[int]) -> None:
        """Send these frames, and judge the acknowledgement when it comes."""
        frames = frames_of([FRAMES[number] for number in numbers])

        async def judged() -> bool:
            receipt = await self.intake.take(frames)
            is_durable = await receipt.durable()
            assert not is_durable or {FRAMES[number] for number in numbers} <= self.sealed
            return is_durable

        self.answers.append(asyncio.create_task(judged()))

    def fill(self, is_full: bool) -> None:
        """Have no room on the edges, or room again."""
        for lane in self.bounded if is_full is not self.is_full else ():
            if is_full:
                lane.used += lane.edge.capacity
            else:
                lane.release(lane.edge.capacity)
        self.is_full = is_full

    def expire(self) -> None:
        """Have the oldest hand-over that waits for room wait no longer."""
        if self.high._waiting:
            self.high._waiting[0][0].set_exception(TimeoutError())

    async def do(self, step: list[int] | str) -> None:
        """One step, and what follows from it at once."""
        if isinstance(step, list):
            self.send(step)
        elif step in ("seal high", "seal deferred"):
            await self.seal(Priority.HIGH if step == "seal high" else Priority.DEFERRED)
        elif step == "expire":
            self.expire()
        else:
            self.fill(step == "fill")
        for _ in range(8):
            await asyncio.sleep(0)


SENDS = st.lists(st.integers(0, 5), min_size=1, max_size=6)
STEPS = st.lists(
    st.one_of(SENDS, st.sampled_from(["seal high", "seal deferred", "fill", "release", "expire", "lose"])), max_size=12
)


def with_losses(steps: list[list[int] | str]) -> Iterator[list[int] | str]:
    """The steps; "lose" stands for a hand-over that finds no room in time."""
    for step in steps:
        if step == "lose":
            yield "fill"
            yield [0, 1, 2]
            yield "expire"
            yield "release"
        else:
            yield step


@settings(max_examples=80, deadline=None)
@given(steps=STEPS)
def test_no_order_of_sends_seals_and_drops_acknowledges_what_is_not_sealed(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[int] | str]
) -> None:
    async def scenario() -> None:
        async with collecting(tmp_path_factory.mktemp("home"), ACKNOWLEDGING) as collector:
            world = World(collector)
            for step in [*with_losses(steps), "release", *["seal high", "seal deferred"] * 4]:
                await world.do(step)
            async with asyncio.timeout(5):
                answers = await asyncio.gather(*world.answers)
            assert all(answers) or {"expire", "lose"} & {step for step in steps if isinstance(step, str)}

    asyncio.run(scenario())


def test_segments_state_source_and_peer_and_conflicts_become_dead_letters__F1_38_F5_32(tmp_path: Path) -> None:
    routine = telemetry(3)
    conflict = telemetry(1, size=16)
    urgent = telemetry(1, first=1, flags=EMERGENCY_FLAG)
    peers = []

    async def scenario(collector: Collector) -> None:
        for frames in (routine, [*conflict, *urgent, *routine]):
            reader, writer = await sent(collector, frames)
            peers.append(str(Address(*writer.get_extra_info("sockname")[:2])))
            while await acknowledged(reader) < len(frames):
                pass
            writer.close()

    run(scenario, tmp_path)
    rows = {}
    zone = LandingZone(str(tmp_path / "landing"), "telemetry")
    for loaded in map(zone.read, zone.pending()):
        assert loaded.meta is not None
        rows[loaded.meta.priority] = decode(loaded.data, loaded.meta).to_pylist()
        (origin,) = loaded.meta.origins or ()
        assert origin == Origin(
            len(rows[loaded.meta.priority]), "stations", peers[loaded.meta.priority != "high"], origin.is_conflict
        )
    assert [row["error_kind"] for row in rows["high"]] == [None] * 3
    assert [(row["error_kind"], row["is_conflict"]) for row in rows["emergency"]] == [(None, True)], "usable, marked"
    assert [row["is_conflict"] for row in rows["high"]] == [False] * 3
    (dead,) = rows["low"]
    assert (dead["error_kind"], dead["error"]) == (
        "frame_conflict", "repeats satellite 7, sequence 0 with other content",
    )  # fmt: skip
    assert (dead["payload"], dead["satellite_id"]) == (conflict[0], None)
