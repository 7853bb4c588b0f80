"""Sealing: batches become segments that are on disk, and only then are they acknowledged.

One sealer per zone and priority. It seals what waits once there is enough, or once the first record has waited long
enough. Capacity and receipts are given back after the seal, so that an acknowledgement means a synced segment. A disk
that refuses is tried again with growing pauses, and the edges in front of it fill up; no record is given up.
"""

import asyncio
import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import groupby

from sda_platform.clock import MissionClock
from sda_platform.edge.batch import ReceivedBatch
from sda_platform.edge.channel import Channel
from sda_platform.edge.latency import Latency
from sda_platform.edge.ledger import Ledger
from sda_platform.edge.logs import Log
from sda_platform.edge.priority import Priority
from sda_platform.edge.sealed_log import SealedLog
from sda_platform.formats.registry import ZONES
from sda_platform.formats.segments import Origin, SegmentMeta
from sda_platform.landing.lander import seal, segment_name
from sda_platform.resilience import pause_s

_MOST_RUNS = 64


@dataclass(frozen=True)
class SealingPlan:
    """How much and how long records wait for their segment."""

    max_bytes: int
    after_s: float


@dataclass
class Sealer:
    """Seals the records of one zone and priority."""

    zone: str
    priority: Priority
    channel: Channel[ReceivedBatch]
    plan: SealingPlan
    landing_root: str
    clock: MissionClock
    ledger: Ledger
    executor: Executor
    log: Log
    sealed_log: SealedLog | None = None
    segments: int = 0
    sealed_bytes: int = 0
    failures: int = 0
    last_sealed_time_ns: int | None = None
    latency: Latency = field(default_factory=Latency)

    async def run(self) -> None:
        """Seal until the channel is closed and empty."""
        enough = min(self.plan.max_bytes, self.channel.edge.capacity // 2)
        while batches := await self.channel.take(enough, self.plan.after_s):
            for group in _groups(batches, self.plan.max_bytes):
                await self._seal(group)

    async def _seal(self, batches: list[ReceivedBatch]) -> None:
        loop = asyncio.get_running_loop()
        data, meta = await loop.run_in_executor(self.executor, self._segment, batches)
        while not await loop.run_in_executor(self.executor, self._attempt, data, meta):
            self.failures += 1
            await asyncio.sleep(pause_s(self.failures, base_s=0.1, cap_s=5.0, seed=meta.sha256))
        self.failures = 0
        self.segments += 1
        self.sealed_bytes += len(data)
        self.last_sealed_time_ns = meta.sealed_time_ns
        self._settle(batches, loop.time())

    def _segment(self, batches: Sequence[ReceivedBatch]) -> tuple[bytes, SegmentMeta]:
        """Bytes and metadata of a segment. Hashing takes milliseconds, in which the sockets must be read."""
        runs = {(batch.source, batch.peer, batch.is_conflict) for batch in batches}
        if len(batches) > _MOST_RUNS > len(runs):  # many senders in turns: their records side by side
            batches = sorted(batches, key=lambda batch: (batch.source, batch.peer or "", batch.is_conflict))
        data = b"".join(batch.data for batch in batches)
        meta = SegmentMeta(
            feed=self.zone,
            format=ZONES[self.zone][0],
            bytes=len(data),
            records=sum(batch.records for batch in batches),
            sha256=hashlib.sha256(data).hexdigest(),
            sealed_time_ns=self.clock.now_ns(),
            sealed_wall_time_ns=time.time_ns(),
            priority=self.priority.label,
            origins=tuple(_origins(batches)),
        )
        return data, meta

    def _attempt(self, data: bytes, meta: SegmentMeta) -> bool:
        """Return whether the segment is durable now. Errors of the disk are logged; others are faults of ours and
        raised.
        """
        stem = f"{self.zone}-{meta.sealed_time_ns}"
        if self.sealed_log is not None:
            self.sealed_log.note(segment_name(meta, stem), meta.sha256)
        try:
            seal(data, meta, self.landing_root, stem=stem)
        except OSError as error:
            self.log.error("segment not sealed", zone=self.zone, priority=self.priority.label, reason=str(error))
            return False
        return True

    def _settle(self, batches: Iterable[ReceivedBatch], now_s: float) -> None:
        for batch in batches:
            self.ledger.account(batch.source, batch.priority).sealed += batch.records
            self.latency.add(now_s - batch.received_s, batch.records)
            self.channel.release(batch.weight)
            batch.receipt.settle()


def _origins(batches: Iterable[ReceivedBatch]) -> Iterator[Origin]:
    """Yield the runs of batches of one source and peer."""
    runs = groupby(batches, lambda each: (each.source, each.peer, each.is_conflict, each.marking))
    for (source, peer, is_conflict, marking), run in runs:
        yield Origin(sum(batch.records for batch in run), source, peer, is_conflict, **marking.columns())


def _groups(batches: Iterable[ReceivedBatch], max_bytes: int) -> Iterator[list[ReceivedBatch]]:
    """Batches in order, in groups that fit into one segment each."""
    group: list[ReceivedBatch] = []
    size = 0
    for batch in batches:
        if group and size + len(batch.data) > max_bytes:
            yield group
            group, size = [], 0
        group.append(batch)
        size += len(batch.data)
    if group:
        yield group
