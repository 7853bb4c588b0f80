"""`sda serve`: the catalogue's lookup endpoint, by the settings."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from sda_platform.catalog.sources import source_priority
from sda_platform.catalog.tables import ELEMENTS_FEED
from sda_platform.clock import MissionClock
from sda_platform.lake.lake import Lake, without_session
from sda_platform.landing.partner_files import identify
from sda_platform.runtime.catalogue_source import LakeSource
from sda_platform.serving import micro_segment
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts, accepted_sets
from sda_platform.serving.server import serve
from sda_platform.serving.store import IndexStore
from sda_platform.settings import Settings


def run_endpoint(settings: Settings, *, host: str, port: int) -> None:
    """Serve the catalogue of the lake at ``host`` and ``port`` until a signal ends it."""
    clock = MissionClock.load(settings.home)
    source = _source(settings, clock)
    store = IndexStore(settings.home.absolute() / "serving", settings.serving_engine)
    live = LiveCatalogue(source, store, clock.now_ns)
    serve(live, Puts(live, source.land, source_priority), host=host, port=port)


def put_file(settings: Settings, file: Path) -> tuple[int, list[dict[str, Any]]]:
    """Make the usable element sets of ``file`` durable in the landing zone: how many, and the refusals of others.

    A running endpoint serves them within seconds. Raises PartnerFileError for a file of another format.
    """
    clock = MissionClock.load(settings.home)
    segment_format = identify(file, feed=ELEMENTS_FEED).format
    sets, refused = accepted_sets(file.read_bytes(), segment_format, clock.now_ns())
    if sets:
        data = micro_segment.encode(sets)
        _source(settings, clock).land(micro_segment.segment_name(data), data)
    return len(sets), [asdict(each) for each in refused]


def _source(settings: Settings, clock: MissionClock) -> LakeSource:
    return LakeSource(Lake(settings.lake_uri, clock, without_session), settings.landing_uri)
