"""Collectors for tests: in this process, on loopback, with the ports that the kernel gives."""

import asyncio
import io
import os
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sda_platform.clock import MissionClock
from sda_platform.edge.address import Address
from sda_platform.edge.collector import Collector
from sda_platform.edge.config import CollectorConfig
from sda_platform.edge.logs import Log
from sda_platform.edge.sources.source import SourceState
from sda_platform.edge.workers import ProcessExecutor
from sda_platform.formats.cutting import split_records
from sda_platform.formats.isl import encode_isl_frames
from sda_platform.formats.radar import encode_radar_frames
from sda_platform.formats.segments import SegmentMeta
from sda_platform.formats.telemetry import encode_telemetry_frames
from sda_platform.landing.zone import LandingZone

WORKER_THREAD = partial(ThreadPoolExecutor, 1)
NOW_NS = 1_730_419_200_000_000_000
"""Mission time of a test's collector, which is stopped."""


def config(sources: Mapping[str, Mapping[str, Any]], **service: Any) -> CollectorConfig:
    return CollectorConfig.model_validate({"collector": {"seal_after_s": 0.02, **service}, "sources": sources})


@asynccontextmanager
async def collecting(
    home: Path,
    sources: Mapping[str, Mapping[str, Any]],
    *,
    start_worker: Callable[[], Executor] | None = None,
    **service: Any,
) -> AsyncIterator[Collector]:
    """A running collector of these sources; ends in order.

    Under pytest documents are read in a thread by default: it starts at once, and tests inject faults there.
    """
    if start_worker is None:
        start_worker = WORKER_THREAD if "PYTEST_CURRENT_TEST" in os.environ else ProcessExecutor
    described = config(sources, **service)
    clock = MissionClock(NOW_NS, 0, 0.0)
    log = Log(io.StringIO())
    collector = Collector(
        described.collector,
        landing_root=str(home / "landing"),
        home=home,
        clock=clock,
        log=log,
        start_worker=start_worker,
    )
    await collector.start(described)
    try:
        await until(
            lambda: all(each.source.state is not SourceState.STARTING for each in collector.supervised.values())
        )
        yield collector
    finally:
        await collector.stop()


async def until(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    """Return once ``condition`` holds. Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.002)


def log_text(collector: Collector) -> str:
    """What the collector of `collecting` has logged."""
    assert isinstance(collector.log.stream, io.StringIO)
    return collector.log.stream.getvalue()


def address(collector: Collector, name: str) -> Address:
    """Where the source ``name`` listens."""
    return Address.parse(collector.supervised[name].source.address)


def landed(home: Path, zone: str) -> list[tuple[SegmentMeta, list[bytes]]]:
    """The segments that wait in a zone, with their records, in the order of sealing.

    Mission time stands still in tests, so the names of segments do not have this order.
    """
    found = []
    landing = LandingZone(str(home / "landing"), zone)
    pending = home / "landing" / zone / "pending"
    for segment in sorted(landing.pending(), key=lambda each: (pending / f"{each.name}.meta.json").stat().st_mtime_ns):
        loaded = landing.read(segment)
        assert loaded.defect is None
        assert loaded.meta is not None
        records = [record.payload for record in split_records(loaded.data, loaded.meta.format)]
        found.append((loaded.meta, records))
    return found


def payloads(home: Path, zone: str, priority: str | None = None) -> list[bytes]:
    """All records that wait in a zone (of one priority), in the order of sealing."""
    return [record for meta, records in landed(home, zone) if priority in (None, meta.priority) for record in records]


def radar_frames(count: int, *, tracks: int = 1, every_ns: int = 1_000_000, array_id: int = 1) -> list[bytes]:
    """Frames of an array that looks at ``tracks`` tracks in turn."""
    numbers = np.arange(count)
    ones = np.ones(count)
    return encode_radar_frames(
        array_id=np.full(count, array_id),
        target_track_id=numbers % tracks,
        timestamp_ns=NOW_NS + numbers * every_ns,
        range_m=ones * 1e6 + numbers,
        range_rate_m_s=ones,
        azimuth_rad=ones,
        elevation_rad=ones,
        sigma_range_m=ones,
        sigma_rate_m_s=ones,
    )


def beacons(count: int, norad_id: int = 25_544) -> list[bytes]:
    """Beacons of one satellite, a second apart."""
    numbers = np.arange(count)
    vectors = np.tile([7e6, 0.0, 0.0], (count, 1))
    return encode_isl_frames(
        norad_id=np.full(count, norad_id),
        timestamp_ns=NOW_NS + numbers * 1_000_000_000,
        position_m=vectors,
        velocity_m_s=vectors / 1e3,
        position_sigma_m=np.ones(count),
        velocity_sigma_m_s=np.ones(count),
        clock_quality=["gps_locked"] * count,
        clock_age_s=np.zeros(count),
    )


def telemetry(count: int, *, satellite: int = 7, first: int = 0, flags: int = 0, size: int = 32) -> list[bytes]:
    """Telemetry frames of one satellite with rising sequence and time."""
    numbers = np.arange(first, first + count)
    return encode_telemetry_frames(
        timestamp_ms=NOW_NS // 1_000_000 + numbers,
        sequence=numbers,
        satellite_id=np.full(count, satellite),
        station_id=np.zeros(count, int),
        flags=np.full(count, flags),
        payloads=[bytes([number % 256]) * size for number in numbers],
    )


def framed(frames: list[bytes], order: Any = "little") -> bytes:
    """Frames as they go over TCP: each behind its length."""
    return b"".join(len(frame).to_bytes(4, order) + frame for frame in frames)
