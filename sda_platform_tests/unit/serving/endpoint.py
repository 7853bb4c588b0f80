"""An endpoint over a small lake, as `sda catalog serve` builds it, without a socket."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sda_platform.lake.lake import Lake
from sda_platform.runtime.catalogue_source import LakeSource
from sda_platform.runtime.submitted_ephemerides import SubmittedEphemerides
from sda_platform.serving.clients import ANYONE, KnownClients
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts
from sda_platform.serving.server import application
from sda_platform.serving.store import IndexStore
from sda_platform_tests.support.segments import START_NS
from sda_platform_tests.support.small_catalogue import small_catalogue
from sda_platform_tests.unit.serving.client import Client


@contextmanager
def endpoint_over(home: Path, clients: KnownClients = ANYONE) -> Iterator[tuple[Client, Lake]]:
    """A client of the endpoint over the lake below ``home``, which has objects 5, 11 and 25544; and that lake."""
    lake = small_catalogue(home, [5, 11, 25544])
    source = LakeSource(lake, str(home / "landing"))
    live = LiveCatalogue(source, IndexStore(home / "serving"), lambda: START_NS)
    live.start()
    puts = Puts(live, source.land)
    submissions = SubmittedEphemerides(lake, str(home / "landing"))
    with Client(application(live, puts, submissions, clients)) as client:
        yield client, lake
    puts.close()
    live.close()
