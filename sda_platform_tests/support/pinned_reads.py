"""A pinned read beside the maintenance, in the order that a seed draws."""

import random
from functools import partial
from pathlib import Path

from deltalake import DeltaTable

from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import MissionClock
from sda_platform.history.expiry import expire_files
from sda_platform.history.moments import vector_of
from sda_platform.history.pinned_view import PinnedView
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.retention import Retention
from sda_platform.lake.version_leases import VersionLeases
from sda_platform_tests.unit.history.lakes import add, elements

_KEEPS_NOTHING = Retention(0, 0, 0)
_HOUR_MS = 3_600_000


def is_unchanged(directory: Path, seed: int, *, is_leased: bool = True) -> bool:
    """Whether an old version of a table, whose rows are replaced, reads the same before and after the drawn steps.

    A reader holds the version while files are compacted, rows are replaced, and all that may expire does. Without its
    lease (a control) the version may be gone.
    """
    chance = random.Random(seed)
    lake = Lake(str(directory), MissionClock(0, 0, 0.0), without_session)
    lake.reads_unverified = True
    for epoch in range(chance.randint(2, 6)):
        add(lake, ORBITAL_CATALOG, elements(7, epoch), elements(8 + epoch, epoch, record=1))
    log, leases = lake.log(ORBITAL_CATALOG), VersionLeases(lake.uri)
    version = chance.randrange(log.version() + 1)
    tables = {ORBITAL_CATALOG.name: ORBITAL_CATALOG}

    def rows() -> object:
        view = PinnedView(lake, tables, vector_of(lake, tables, f"orbital_catalog={version}"))
        return view.rows("FROM orbital_catalog ORDER BY norad_id")

    before = rows()
    pinned = vector_of(lake, tables, f"orbital_catalog={version}").snapshots.values()
    with leases.held(pinned if is_leased else (), "a long query"):
        for step in range(chance.randint(2, 5)):
            match chance.randrange(3):
                case 0:
                    DeltaTable(log.uri).optimize.compact()
                case 1:
                    add(lake, ORBITAL_CATALOG, elements(7, 100 + step))
                case _:
                    held = partial(leases.versions_of, ORBITAL_CATALOG.name)
                    for now_ms in (0, 25 * _HOUR_MS):
                        expire_files(log, held, now_ms=now_ms, retention=_KEEPS_NOTHING)
        return rows() == before
