"""The collector: zones with their sealers, the sources of a configuration, and an orderly end.

Order of an end: stop accepting, finish what is half received, seal everything, exit. A fault of a sealer ends
the collector, because nothing is durable without it; a fault of a source ends that source only.
"""

import asyncio
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from upath import UPath

from sda_platform.clock import MissionClock
from sda_platform.edge.bottleneck import Occupancy
from sda_platform.edge.config import CollectorConfig, FramedConfig, RadarConfig, ServiceConfig, SourceConfig, built
from sda_platform.edge.frames import frames_of
from sda_platform.edge.handover import Sockets
from sda_platform.edge.host_limits import HostLimits
from sda_platform.edge.kernels import compile_kernels
from sda_platform.edge.ledger import Ledger
from sda_platform.edge.listening import ListeningLog
from sda_platform.edge.logs import Log
from sda_platform.edge.packets import MAX_BATCH
from sda_platform.edge.priority import Priority
from sda_platform.edge.rates import Rates
from sda_platform.edge.sealed_log import SealedLog
from sda_platform.edge.sealing import Sealer, SealingPlan
from sda_platform.edge.sources.documents import UnexpectedContent
from sda_platform.edge.sources.source import Services
from sda_platform.edge.sources.upload import TEMPORARY
from sda_platform.edge.supervision import Supervised
from sda_platform.edge.topology import Topology, describe
from sda_platform.edge.workers import ProcessExecutor, Worker
from sda_platform.edge.zone import ZoneEntry
from sda_platform.lake import durable
from sda_platform.lake.storage import location
from sda_platform.landing.first_lines import Mappings
from sda_platform.landing.partner_bounds import PartnerBounds
from sda_platform.landing.partner_files import PartnerFileError
from sda_platform.landing.zone import LandingZone
from sda_platform.list_settings import FleetFile
from sda_platform.resilience import Quotas

_SAMPLE_S = 0.1
_BACKLOG_S = 1.0
_LISTENING_S = 1.0
_STARTING_S = 5.0
_LAG_SAMPLES = 600
LOOP_LAG_BOUND_S = 0.2
"""What the event loop may be late by. Work that would exceed it belongs into a worker (`edge.workers`)."""
_SEALING_THREADS = 8
_FILE_THREADS = 4
_REMEMBERED = ("telemetry",)


class Collector:
    """All of it, in the running event loop. ``home`` holds the progress of its sources.

    ``fleet``: where the list of the protected fleet is.
    """

    def __init__(
        self,
        service: ServiceConfig,
        *,
        landing_root: str,
        home: Path,
        clock: MissionClock,
        log: Log,
        start_worker: Callable[[], Executor] = ProcessExecutor,
        sockets: Sockets | None = None,
        fleet: FleetFile | None = None,
    ) -> None:
        self.service, self.landing_root, self.log = service, landing_root, log
        self.topology = Topology()
        self.occupancy, self.rates = Occupancy(), Rates()
        self._lags_s: deque[float] = deque([0.0], maxlen=_LAG_SAMPLES)
        self.supervised: dict[str, Supervised] = {}
        self.sealers: list[Sealer] = []
        self.faults: asyncio.Queue[BaseException] = asyncio.Queue(maxsize=16)
        self._clock = clock
        self._config = CollectorConfig(collector=service)
        self._entries: dict[str, ZoneEntry] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._sealing: list[asyncio.Task[None]] = []
        # A large file must not hold up a seal.
        self._executor = ThreadPoolExecutor(_SEALING_THREADS, thread_name_prefix="seal")
        self._file_executor = ThreadPoolExecutor(_FILE_THREADS, thread_name_prefix="files")
        state_directory = home / "collector"
        state_directory.mkdir(parents=True, exist_ok=True)
        _sweep(state_directory, landing_root)
        self.ledger = Ledger(state_directory)
        self._sealed_logs = {
            zone: SealedLog(state_directory / f"{zone}.sealed", LandingZone(landing_root, zone)) for zone in _REMEMBERED
        }
        self.listening_log = ListeningLog(state_directory)
        self.services = Services(
            clock,
            self.ledger,
            log,
            self.entry,
            landing_root,
            self._file_executor,
            state_directory,
            HostLimits(state_directory),
            documents=Worker(start_worker, UnexpectedContent),
            files=Worker(start_worker, PartnerFileError),
            bounds=PartnerBounds(least_free_bytes=service.least_free_bytes),
            sockets=sockets or Sockets(),
            quotas=Quotas(service.quota),
            mappings=Mappings.of(home),
            internal_names=service.internal_names,
            fleet=fleet or FleetFile(),
        )

    async def start(self, config: CollectorConfig) -> None:
        """Start the sources of ``config``; what is compiled is compiled before the first socket is open."""
        compile_kernels()
        await asyncio.get_running_loop().run_in_executor(self._executor, self._remember)
        for worker in (self.services.documents, self.services.files):
            await worker.run(os.getpid)  # it starts before the first socket is open: starting holds up the loop
        await self.apply(config)
        self._tasks = [self._task(each) for each in (self._sample(), self._watch_backlog(), self._watch_listening())]

    def _remember(self) -> None:
        """Remember the telemetry that was sealed last: what stations send again after a restart is no new frame."""
        packets = self.services.packets
        for log in self._sealed_logs.values():
            for payloads in log.payloads(packets.remembered):
                for start in range(0, len(payloads), MAX_BATCH):
                    packets.process(frames_of(payloads[start : start + MAX_BATCH]))

    async def apply(self, config: CollectorConfig) -> None:
        """Make the running sources those of ``config``: removed ones are drained, changed ones replaced."""
        if config.collector != self.service:
            self.log.warning("options of [collector] take effect at the next start")
        before, after = self._config.sources, config.sources
        gone = [name for name in before if after.get(name) != before[name]]
        await asyncio.gather(*(self._remove(name) for name in gone if name in self.supervised))
        if open_ones := sorted(each for each in after.keys() - self.supervised.keys() if _is_open(after[each])):
            self.log.warning("every sender is accepted: see `allow` and `certificate`", sources=", ".join(open_ones))
        for name, source in after.items():
            if name not in self.supervised:
                self.supervised[name] = Supervised(built(name, source, self.services))
                self.supervised[name].start()
                self.log.info("source added", source=name, kind=source.kind)
        self._config = config

    async def stop(self) -> int:
        """End in order; returns how many records could not be sealed in time (0, unless the disk refuses)."""
        for entry in self._entries.values():
            entry.hurry()
        await asyncio.gather(*(each.stop() for each in self.supervised.values()))
        for entry in self._entries.values():
            entry.close()
        if self._sealing:
            await asyncio.wait(self._sealing, timeout=1.5)
        left = sum(account.in_flight for account in self.ledger.accounts().values())
        for task in (*self._tasks, *self._sealing):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._sealing, return_exceptions=True)
        with suppress(OSError):
            self.ledger.note()
        for executor in (self._executor, self._file_executor):
            executor.shutdown(wait=False, cancel_futures=True)
        for worker in (self.services.documents, self.services.files):
            worker.close()
        self.log.info("stopped", not_sealed=left)
        return left

    def entry(self, zone: str) -> ZoneEntry:
        """Return the entry of a zone; its sealers start with it."""
        if zone not in self._entries:
            self._entries[zone] = ZoneEntry(zone, self.topology, self.ledger)
            self._start_sealers(zone)
        return self._entries[zone]

    def zones(self) -> dict[str, ZoneEntry]:
        """Return the zones that are in use."""
        return dict(self._entries)

    @property
    def loop_lag_s(self) -> float:
        """The longest that a tenth of a second took longer than that, in the last minute.

        The bound is `LOOP_LAG_BOUND_S`: at 10,000 radar frames/s more than the default receive buffer holds would come.
        """
        return max(self._lags_s)

    @property
    def health(self) -> list[str]:
        """What is wrong, one line each; empty when all is well."""
        problems = {name: each.problem() for name, each in self.supervised.items()}
        failed = [f"source {name}: {problem}" for name, problem in problems.items() if problem is not None]
        return failed + [
            f"sealer of {sealer.zone} ({sealer.priority.label}): failed {sealer.failures} times in a row"
            for sealer in self.sealers
            if sealer.failures
        ]

    def _start_sealers(self, zone: str) -> None:
        lanes = self.topology.lanes(zone)
        for priority, channel in lanes.items():
            self.log.info("edge", edge=channel.edge.name, text=describe(channel.edge))
            after_s = self.service.seal_after_s
            if priority is Priority.DEFERRED:
                after_s = self.service.deferred_seal_after_s
            plan = SealingPlan(self.service.segment_max_bytes, after_s)
            sealer = Sealer(
                zone, priority, channel, plan, self.landing_root, self._clock, self.ledger, self._executor, self.log,
                self._sealed_logs.get(zone),
            )  # fmt: skip
            self.sealers.append(sealer)
            self._sealing.append(self._task(sealer.run()))

    async def _remove(self, name: str) -> None:
        supervised = self.supervised[name]
        await supervised.stop()
        del self.supervised[name]
        self.log.info("source removed", source=name)

    async def _sample(self) -> None:
        """Occupancy of every edge at 10 Hz, rates of every source at the same pace."""
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        while True:
            due_s = now_s + _SAMPLE_S
            await asyncio.sleep(_SAMPLE_S)
            now_s = loop.time()
            self._lags_s.append(max(now_s - due_s, 0.0))
            edges = {channel.edge.name: channel.occupancy for channel in self.topology.channels()}
            backlogs = {f"{zone}.intake": entry.pressure.backlog for zone, entry in self._entries.items()}
            self.occupancy.add({**edges, **backlogs})
            for name in self.supervised:
                self.rates.add(name, self.ledger.of_source(name).received, now_s)

    async def _watch_backlog(self) -> None:
        """What waits for the intake, as a share of what may wait, once a second.

        While a zone cannot be listed its last figure stays: records in memory must not be lost for it.
        """
        loop = asyncio.get_running_loop()
        while True:
            for zone, entry in list(self._entries.items()):
                try:
                    entry.pressure.backlog = await loop.run_in_executor(self._executor, self._backlog, zone)
                except OSError as error:
                    self.log.warning("backlog not read", zone=zone, reason=str(error))
            await asyncio.sleep(_BACKLOG_S)

    async def _watch_listening(self) -> None:
        """Once a second, note which sources listen (`ListeningLog`) and what became of records (`Ledger.note`)."""
        loop, sockets = asyncio.get_running_loop(), self.services.sockets
        handed_over = sockets.inherited
        for number in count():
            listening = {name for name, each in self.supervised.items() if each.source.listens}
            kept = listening & handed_over
            handed_over = handed_over - kept if number < _STARTING_S / _LISTENING_S else set()
            for names, is_kept in ((kept, True), (listening - kept, False)):
                if not names:
                    continue
                note = partial(self.listening_log.note, sorted(names), time.time_ns(), is_handed_over=is_kept)
                try:
                    for entry in await loop.run_in_executor(self._executor, note):
                        self.log.warning("not listened", source=entry.source, seconds=round(entry.seconds, 3))
                except OSError as error:
                    self.log.warning("listening not noted", reason=str(error))
            if not handed_over:
                sockets.close_unused()
            try:
                await loop.run_in_executor(self._executor, self.ledger.note)
            except OSError as error:
                self.log.warning("ledger not noted", reason=str(error))
            await asyncio.sleep(_LISTENING_S)

    def _backlog(self, zone: str) -> float:
        landing = LandingZone(self.landing_root, zone)
        waiting = landing.waiting(landing.pending_names())
        size = sum(segment.bytes for segment in waiting)
        return max(size / self.service.backlog_max_bytes, len(waiting) / self.service.backlog_max_segments)

    def _task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.log.fault("fault of the program", error)
            if not self.faults.full():
                self.faults.put_nowait(error)


def _is_open(source: SourceConfig) -> bool:
    return isinstance(source, RadarConfig | FramedConfig) and source.is_open


def _sweep(state_directory: Path, landing_root: str) -> None:
    """Remove what a killed collector has left: uploads that never ended, and partial files."""
    for folder in state_directory.glob(f"{TEMPORARY}*"):
        shutil.rmtree(folder, ignore_errors=True)
    for directory in (UPath(state_directory), location(landing_root) / ".lander"):
        with suppress(OSError):
            durable.sweep_partials(directory.glob(".*.tmp"), time.time())
