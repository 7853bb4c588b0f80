"""Requests of sources of kind `pull`, once and now: what `sda connect` does while no collector needs to run.

State and limits are those of the collector of the same home, so neither of them repeats a request of the other.
"""

import io
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from sda_platform.clock import MissionClock
from sda_platform.edge.config import ServiceConfig, SourceConfig, built
from sda_platform.edge.host_limits import HostLimits
from sda_platform.edge.ledger import Ledger
from sda_platform.edge.logs import Log
from sda_platform.edge.sources.documents import UnexpectedContent
from sda_platform.edge.sources.pull import Pulled, PullSource
from sda_platform.edge.sources.source import Services, SourceFailed, SourceMisconfigured
from sda_platform.edge.workers import ProcessExecutor, Worker
from sda_platform.edge.zone import ZoneEntry
from sda_platform.landing.first_lines import Mappings
from sda_platform.landing.partner_bounds import PartnerBounds
from sda_platform.list_settings import FleetFile


@dataclass(frozen=True)
class Fetched:
    """What became of the request of one source; ``problem``: why it failed."""

    source: str
    zone: str
    pulled: Pulled = field(default_factory=Pulled)
    problem: str = ""


async def fetch(
    sources: Mapping[str, SourceConfig],
    service: ServiceConfig,
    *,
    landing_root: str,
    home: Path,
    clock: MissionClock,
    fleet: FleetFile,
) -> AsyncIterator[Fetched]:
    """Request each of ``sources`` that is due, one after the other; yield what became of it."""
    directory = home / "collector"
    directory.mkdir(parents=True, exist_ok=True)
    executor, worker = ThreadPoolExecutor(1), Worker(ProcessExecutor, UnexpectedContent)
    services = Services(
        clock,
        Ledger(),
        Log(io.StringIO()),
        _no_entry,
        landing_root,
        executor,
        directory,
        HostLimits(directory),
        documents=worker,
        files=worker,
        bounds=PartnerBounds(least_free_bytes=service.least_free_bytes),
        mappings=Mappings.of(home),
        internal_names=service.internal_names,
        fleet=fleet,
    )
    try:
        for name, described in sources.items():
            source = built(name, described, services)
            assert isinstance(source, PullSource), f"{name} requests nothing"
            try:
                yield Fetched(name, source.zone, await source.once())
            except (SourceFailed, SourceMisconfigured, UnexpectedContent, OSError) as error:
                yield Fetched(name, source.zone, problem=str(error))
    finally:
        worker.close()
        executor.shutdown()


def _no_entry(zone: str) -> ZoneEntry:
    raise NotImplementedError(f"a document is sealed at once, without an edge of {zone}")
