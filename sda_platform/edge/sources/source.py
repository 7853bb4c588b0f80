"""What every source is: something that runs until it is stopped, and counts what it cannot use.

A source raises `SourceFailed` (or an OSError) for what a restart may cure. Any other exception is a fault of the
program.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from sda_platform.clock import MissionClock
from sda_platform.edge.first_copies import FirstCopies
from sda_platform.edge.host_limits import HostLimits
from sda_platform.edge.ledger import Ledger
from sda_platform.edge.logs import Log
from sda_platform.edge.packets import PacketProcessor
from sda_platform.edge.priority import Priority
from sda_platform.edge.redundancy import RecentSamples
from sda_platform.edge.zone import ZoneEntry
from sda_platform.resilience import BreakerState, pause_s


class SourceFailed(Exception):
    """The source cannot continue now; a restart may help. The text has the reason."""


class SourceGone(SourceFailed):
    """The source gives up for good: it is not restarted until it is configured anew."""


class SourceState(StrEnum):
    """The state of a source, as `sda sources` shows it."""

    STARTING = "starting"
    RUNNING = "running"
    RETRYING = "retrying"
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class Services:
    """What sources use of the collector."""

    clock: MissionClock
    ledger: Ledger
    log: Log
    entry: Callable[[str], ZoneEntry]
    landing_root: str
    executor: Executor
    state_directory: Path
    hosts: HostLimits
    recent_samples: RecentSamples = field(default_factory=RecentSamples)
    packets: PacketProcessor = field(default_factory=PacketProcessor)
    first_copies: FirstCopies = field(default_factory=FirstCopies)


class Source(ABC):
    """One configured source. ``errors`` counts what it refused, by reason."""

    kind: str
    zone: str
    is_stateful = False
    """Whether it keeps progress of its own; such a source is restarted less often (spec DP2: 3 in 60 s, not 5)."""

    def __init__(self, name: str, services: Services) -> None:
        self.name = name
        self.services = services
        self.log = services.log.bind(source=name)
        self.state = SourceState.STARTING
        self.detail = ""
        self.errors: Counter[str] = Counter()
        self.last_received_s: float | None = None
        self.stopping = asyncio.Event()

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

    def count_landed(self, records: int) -> None:
        """Account for ``records`` that were sealed as they came, without an edge."""
        account = self.services.ledger.account(self.name, Priority.HIGH)
        account.received += records
        account.sealed += records
        self.last_received_s = asyncio.get_running_loop().time()

    async def retry_later(self, failures: int, reason: Exception) -> None:
        """Wait after the ``failures``-th failure in a row, with jitter, up to half a minute."""
        pause = pause_s(failures, base_s=1.0, cap_s=30.0, seed=f"{self.name}{time.time_ns()}")
        self.errors["failed_request"] += 1
        self.state, self.detail = SourceState.RETRYING, str(reason)
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
