"""`sda serve`: the catalogue's lookup endpoint, by the settings."""

from sda_platform.catalog.sources import source_priority
from sda_platform.clock import MissionClock
from sda_platform.lake.lake import Lake, without_session
from sda_platform.runtime.catalogue_source import LakeSource
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts
from sda_platform.serving.server import serve
from sda_platform.serving.store import IndexStore
from sda_platform.settings import Settings


def run_endpoint(settings: Settings, *, host: str, port: int) -> None:
    """Serve the catalogue of the lake at ``host`` and ``port`` until a signal ends it."""
    clock = MissionClock.load(settings.home)
    source = LakeSource(Lake(settings.lake_uri, clock, without_session), settings.landing_uri)
    store = IndexStore(settings.home.absolute() / "serving", settings.serving_engine)
    live = LiveCatalogue(source, store, clock.now_ns)
    serve(live, Puts(live, source.land, source_priority), host=host, port=port)
