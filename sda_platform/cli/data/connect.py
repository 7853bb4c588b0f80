"""`sda connect`: fetch what one downloads of a provider, and have the collector fetch it from now on."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from sda_platform.clock import MissionClock, iso_to_second
from sda_platform.counts import counted
from sda_platform.edge.config import CollectorConfig, ConfigError, add_source, load_config
from sda_platform.edge.fetching import Fetched, fetch
from sda_platform.edge.providers import ProviderConfig
from sda_platform.observability.vitals.faults import duration
from sda_platform.orbits.earth_parameters import published_span_ns
from sda_platform.published import COLLECTOR, published
from sda_platform.settings import Settings
from sda_platform.units import DAY_NS

_WARNED_NS: Final = 30 * DAY_NS


def connect_provider(settings: Settings, provider: str, say: Callable[[str], None], *, is_once: bool) -> bool:
    """Fetch what is due of ``provider``, a kind of source, and write it to the collector's file, unless ``is_once``.

    Returns whether all requests succeeded or were not due. Raises ConfigError.
    """
    path = settings.collect_path
    config = load_config(path) if path.exists() else CollectorConfig()
    configured = [name for name, each in config.described.items() if each.kind == provider]
    described = config.described[configured[0]] if configured else ProviderConfig.model_validate({"kind": provider})
    assert isinstance(described, ProviderConfig)
    if not configured and provider in config.described:
        raise ConfigError(f"{path}: sources.{provider} is of another kind: give it another name")

    async def run() -> bool:
        clock, is_complete = MissionClock.load(settings.home), True
        async for found in fetch(
            described.sources(),
            config.collector,
            landing_root=settings.landing_uri,
            home=settings.home.absolute(),
            clock=clock,
            fleet=settings.screening,
        ):
            say(f"{found.source}: {_outcome(found)}")
            is_complete &= not found.problem
        return is_complete

    is_complete = asyncio.run(run())
    say(_earth_orientation())
    if not is_once and not configured:
        path.parent.mkdir(parents=True, exist_ok=True)
        add_source(path, provider, {"kind": provider})
        say(f"{path}: [sources.{provider}] added; the collector of `sda up` fetches from now on")
    elif configured and published(settings.home, COLLECTOR) is None:
        say("no collector runs: `sda up` fetches from now on")
    return is_complete


def _outcome(found: Fetched) -> str:
    pulled = found.pulled
    if found.problem:
        return f"failed: {found.problem}"
    if pulled.wait_s:
        return f"nothing to do; the next request is allowed in {duration(pulled.wait_s)}"
    if pulled.records is None:
        return "not changed since the last request"
    return f"{counted(pulled.records, 'record')} landed" if found.zone else f"{counted(pulled.records, 'day')} saved"


def _earth_orientation() -> str:
    """State how far the Earth's orientation is known: it comes with the software, so that replays repeat."""
    end_ns = published_span_ns()[1]
    late = "" if end_ns - time.time_ns() > _WARNED_NS else "; update the package astropy-iers-data soon"
    return f"earth orientation: installed up to {iso_to_second(end_ns)[:10]}{late}"
