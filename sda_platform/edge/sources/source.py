"""What every source is: something that runs until it is stopped, and counts what it cannot use.

A source raises `SourceFailed` (or an OSError) for what may pass: it is started again, after pauses that grow to a
minute. Any other exception is a fault of the program, which is logged; the source is started again all the same. Only
`SourceMisconfigured` is final.
"""

import asyncio
import socket
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from sda_platform.clock import MissionClock
from sda_platform.edge.address import Address
from sda_platform.edge.first_copies import FirstCopies
from sda_platform.edge.handover import Sockets
from sda_platform.edge.host_limits import HostLimits
from sda_platform.edge.ledger import Ledger
from sda_platform.edge.logs import Log
from sda_platform.edge.packets import PacketProcessor
from sda_platform.edge.priority import Priority
from sda_platform.edge.redundancy import RecentSamples
from sda_platform.edge.workers import Worker
from sda_platform.edge.zone import ZoneEntry
from sda_platform.formats.markings import UNMARKED, Marking
from sda_platform.formats.segments import Sender
from sda_platform.landing.first_lines import NO_MAPPINGS, Mappings
from sda_platform.landing.partner_bounds import PartnerBounds
from sda_platform.list_settings import FleetFile
from sda_platform.resilience import BreakerState, OverQuota, Quotas, pause_s

LONGEST_PAUSE_S: Final = 60.0
_GROWING: Final = 20  # failures in a row, after which pauses grow no more
REFUSED_FILES: Final = "refused files"
REFUSED_FRAMES: Final = "refused frames"
DEFAULT_QUOTA: Final = {"bytes": 2.0 * 2**30, "records": 20e6, REFUSED_FILES: 120.0, REFUSED_FRAMES: 600e3}
"""What one source of files may use in a minute: bytes and records as landed, and files that are refused."""
_NOTE_SHOWN_S: Final = 300.0


class SourceFailed(Exception):
    """The source cannot continue now; later it may. The text has the reason."""


class SourceBlocked(SourceFailed):
    """Only a person can remove the cause, so it is reported at once. The source continues when it is gone."""


class SourceMisconfigured(Exception):
    """A setting is wrong or missing: the source is not started again until it is configured anew."""


class SourceState(StrEnum):
    """The state of a source, as `sda collector status` shows it.

    RETRYING: it fails, and tries again. FAILED: misconfigured.
    """

    STARTING = "starting"
    RUNNING = "running"
    RETRYING = "retrying"
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class Services:
    """What sources use of the collector. ``documents`` is for short tasks, ``files`` for files of any size."""

    clock: MissionClock
    ledger: Ledger
    log: Log
    entry: Callable[[str], ZoneEntry]
    landing_root: str
    executor: Executor
    state_directory: Path
    hosts: HostLimits
    documents: Worker
    files: Worker
    bounds: PartnerBounds = field(default_factory=PartnerBounds)
    sockets: Sockets = field(default_factory=Sockets)
    quotas: Quotas = field(default_factory=lambda: Quotas(DEFAULT_QUOTA))
    recent_samples: RecentSamples = field(default_factory=RecentSamples)
    packets: PacketProcessor = field(default_factory=PacketProcessor)
    first_copies: FirstCopies = field(default_factory=FirstCopies)
    mappings: Mappings = NO_MAPPINGS
    internal_names: Collection[str] = ()
    fleet: FleetFile = field(default_factory=FleetFile)
    """Where the list of the protected fleet is."""
    marking: Marking = UNMARKED
    """What the configuration of the source states of all that it brings."""


class Source(ABC):
    """One configured source. ``errors`` counts what it refused, by reason. ``listens``: senders reach it now."""

    kind: str
    zone: str
    is_stateful = False
    """Whether it keeps progress of its own."""
    patience_s = 10.0
    """How long it may fail before the collector counts as unhealthy."""
    emergencies_per_minute = 600
    """How many telemetry frames a minute count as emergency traffic because their sender flags them so."""

    def __init__(self, name: str, services: Services, rank: int | None = None) -> None:
        self.name, self.rank = name, rank
        self.listens = False
        self.services = services
        self.log = services.log.bind(source=name)
        self.state = SourceState.STARTING
        self.detail = ""
        self.errors: Counter[str] = Counter()
        self.failures = 0
        self.failing_since_s: float | None = None
        self.noted: tuple[float, str] | None = None
        self.last_received_s: float | None = None
        self.stopping = asyncio.Event()

    @contextmanager
    def listening(self, bind: Address, make: Callable[[], socket.socket]) -> Iterator[socket.socket]:
        """The listening socket of the source, also that of the process before, see `Sockets`. Raises OSError."""
        key, sockets = f"{self.name} {bind}", self.services.sockets
        opened = sockets.listen(key, make)
        self.listens = True
        try:
            yield opened
        finally:
            self.listens = False
            sockets.release(key)

    @property
    def marking(self) -> Marking:
        """What its configuration states of all that it brings."""
        return self.services.marking

    def sender(self, peer: str | None = None) -> Sender:
        """Return the sender of what comes through this source from ``peer``."""
        classification, data_mode = self.marking
        return Sender(self.name, peer, self.rank, classification=classification, data_mode=data_mode)

    @property
    def address(self) -> str:
        """Where it listens or what it reads; empty before it started."""
        return ""

    @property
    def connections(self) -> int | None:
        """Open connections; None for a source that has none."""
        return None

    @property
    def kernel_drops(self) -> int | None:
        """Datagrams that the kernel dropped; None for a source that receives none."""
        return None

    @property
    def breaker_state(self) -> BreakerState | None:
        """The breaker in front of its server; None for a source without requests."""
        return None

    @abstractmethod
    async def run(self) -> None:
        """Run until `stop`; then finish what is half received, and return."""

    def stop(self) -> None:
        """Request its end: it accepts nothing new and hands over what it has received."""
        self.stopping.set()

    def count_landed(self, records: int, size: int) -> None:
        """Account for ``records`` of ``size`` bytes that were sealed as they came, without an edge."""
        self.services.quotas.spend(self.name, records=records, bytes=size)
        account = self.services.ledger.account(self.name, Priority.HIGH)
        account.received += records
        account.sealed += records
        self.last_received_s = asyncio.get_running_loop().time()

    def works(self) -> None:
        """It does what it is for, or waits for its next turn."""
        if not self.stopping.is_set():
            self.state, self.detail = SourceState.RUNNING, ""
        self.received()

    def received(self) -> None:
        """Something came, so that it fails no more."""
        self.failures, self.failing_since_s = 0, None

    def fails(self, reason: object) -> float:
        """It failed once more, for ``reason``; returns seconds to wait, with jitter and up to a minute."""
        self.failures += 1
        if self.failing_since_s is None:
            self.failing_since_s = asyncio.get_running_loop().time()
        self.state, self.detail = SourceState.RETRYING, str(reason)
        return pause_s(min(self.failures, _GROWING), base_s=0.5, cap_s=LONGEST_PAUSE_S, seed=_seed(self.name))

    def note_fault(self, error: Exception) -> str:
        """Log and count a fault of the program, and have it on the health page for some minutes; returns its text."""
        text = f"fault of the program: {type(error).__name__}: {error}"
        self.log.fault("fault of the program", error)
        self.errors["fault"] += 1
        self.note(text)
        return text

    def note(self, text: str) -> None:
        """Have ``text`` on the health page for some minutes: a person must know of it, though the source goes on."""
        self.log.error("note", reason=text)
        self.noted = asyncio.get_running_loop().time(), text

    def count_refused(self) -> None:
        """Account for a file that was refused."""
        self.errors["refused_file"] += 1
        self.services.quotas.spend(self.name, **{REFUSED_FILES: 1})

    def count_refused_frames(self, reason: str, count: int) -> None:
        """Account for ``count`` live frames that become dead letters, for ``reason``."""
        if count:
            self.errors[reason] += count
            self.services.quotas.spend(self.name, **{REFUSED_FRAMES: count})

    async def within_quota(self, longest_s: float) -> None:
        """Wait while the source is over its quota: at most ``longest_s``, and at most until a stop is requested."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + longest_s
        while not self.stopping.is_set() and loop.time() < end_s:
            try:
                self.require_quota()
                return
            except OverQuota as error:
                await self.pause(min(error.wait_s, end_s - loop.time()))

    def require_quota(self) -> None:
        """Raise OverQuota where the source has used its quota; the health page names it then."""
        try:
            self.services.quotas.require(self.name)
        except OverQuota as error:
            self.errors["over_quota"] += 1
            if self.problem(asyncio.get_running_loop().time()) is None:
                self.log.warning("over quota", reason=str(error))
            self.noted = asyncio.get_running_loop().time(), f"over its quota: {error}"
            raise

    def problem(self, now_s: float) -> str | None:
        """Return what a person must know of it at the loop's time ``now_s``; None: nothing."""
        if self.state is SourceState.FAILED:
            return self.detail
        if self.noted is not None and now_s - self.noted[0] < _NOTE_SHOWN_S:
            return self.noted[1]
        if self.failing_since_s is not None and now_s - self.failing_since_s >= self.patience_s:
            return f"{self.detail} (fails for {now_s - self.failing_since_s:,.0f} s; it is tried again)"
        return None

    async def retry_later(self, reason: Exception) -> None:
        """Wait after a failed request, longer after each in a row."""
        pause = self.fails(reason)
        self.errors["failed_request"] += 1
        self.log.warning("trying again", in_s=round(pause, 1), reason=str(reason))
        await self.pause(pause)

    async def pause(self, seconds: float) -> bool:
        """Wait, at most until a stop is requested; True in that case."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            return False
        return True


def _seed(name: str) -> str:
    return f"{name}{time.time_ns()}"
