"""An endpoint over a small lake, as `sda catalog serve` builds it, without a socket."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette

from sda_platform.lake.lake import Lake
from sda_platform.runtime.catalogue_source import LakeSource
from sda_platform.runtime.submitted_ephemerides import SubmittedEphemerides
from sda_platform.serving.clients import ANYONE, KnownClients, load_clients
from sda_platform.serving.live import LiveCatalogue
from sda_platform.serving.puts import Puts
from sda_platform.serving.server import application
from sda_platform.serving.store import IndexStore
from sda_platform_tests.support.ephemerides_of_operators import oem_through
from sda_platform_tests.support.segments import START_NS, after
from sda_platform_tests.support.small_catalogue import small_catalogue
from sda_platform_tests.unit.serving.client import Client

TOKENS = {"AURORA_TOKEN": "aurora-0123456789", "SURVEY_TOKEN": "survey-0123456789"}
FILE = """
[clients.aurora]
token_variable = "AURORA_TOKEN"
norad_ids = [25544]
rank = 30

[clients.survey]
token_variable = "SURVEY_TOKEN"
"""
PLACE, SPEED = np.array([7000.0, 0.0, 0.0]), np.array([0.0, 5.0, 5.7])


def plan(norad_id: int) -> bytes:
    return oem_through(norad_id, START_NS, PLACE, SPEED, begin_ns=START_NS, end_ns=after(7200))


def clients_of(tmp_path: Path, text: str = FILE) -> KnownClients:
    path = tmp_path / "clients.toml"
    path.write_text(text)
    return load_clients(path)


@contextmanager
def application_over(home: Path, clients: KnownClients = ANYONE, **options: Any) -> Iterator[tuple[Starlette, Lake]]:
    """The endpoint over the lake below ``home``, which has objects 5, 11 and 25544; and that lake.

    ``options`` are those of `application`.
    """
    lake = small_catalogue(home, [5, 11, 25544])
    source = LakeSource(lake, str(home / "landing"))
    live = LiveCatalogue(source, IndexStore(home / "serving"), lambda: START_NS)
    live.start()
    puts = Puts(live, source.land)
    submissions = SubmittedEphemerides(lake, str(home / "landing"))
    yield application(live, puts, submissions, clients, **options), lake
    puts.close()
    live.close()


@contextmanager
def endpoint_over(home: Path, clients: KnownClients = ANYONE, **options: Any) -> Iterator[tuple[Client, Lake]]:
    """A client of `application_over`, and the lake."""
    with application_over(home, clients, **options) as (app, lake), Client(app) as client:
        yield client, lake
