"""Rebuild a table: set it aside with all that was made from it, so that the platform makes them anew.

The segments of bronze tables are put back from the archive. Nothing is deleted. The caller excludes other writers. A
rebuild that was killed is repeated: a table that is set aside already is passed over.
"""

from collections.abc import Sequence

from sda_platform import failpoints
from sda_platform.lake import delta_log, durable, properties
from sda_platform.lake.errors import InvalidRequest
from sda_platform.lake.lake import Lake
from sda_platform.lake.lost_tables import made_from
from sda_platform.lake.storage import location
from sda_platform.lake.table import Table
from sda_platform.landing.beyond_archive import accept_loss, beyond_archive
from sda_platform.landing.zone import LandingZone
from sda_platform.recovery.repair import Sources, put_back
from sda_platform.recovery.unheld import unheld

SET_ASIDE_TABLES = "_set_aside"
"""In the lake: the tables that a rebuild replaced."""


class NotRebuildable(InvalidRequest):
    """A rebuild would lose rows, and the loss was not accepted."""


def rebuild(
    lake: Lake, tables: Sequence[Table], table: Table, sources: Sources, *, accepted: frozenset[str] = frozenset()
) -> list[str]:
    """Set ``table`` aside with every table that was made from it, and put back what it took; what was done, in words.

    Raises NotRebuildable, before anything moves, if segments of one of them are beyond the archive and its name is not
    ``accepted``.
    """
    chosen = made_from(tables, table)
    zones = {each.name: sources.get(each.name, ()) for each in chosen}
    for each in chosen:
        _require_archive(each, zones[each.name], accepted)
    done = []
    for each in reversed(chosen):  # what consumed it first: a killed rebuild leaves tables that fit together
        if _move(lake, each.name):
            done.append(f"set {each.name} aside in {SET_ASIDE_TABLES}/")
        failpoints.hit("recovery.table_set_aside", each.name)
    for each in chosen:
        own = zones[each.name]
        done += [f"{each.name}: {step}" for step in put_back(unheld(lake.log(each), own, -1), own)]
        done += accept_loss(beyond_archive(own))
    return done


def rebuild_derived(lake: Lake, tables: Sequence[Table]) -> list[str]:
    """Set every table aside that is not filled from landing zones, also those that ``tables`` no longer have.

    The others get the Delta properties that an earlier version of the platform did not set.
    """
    root = location(lake.uri)
    landed = {table.name: table for table in tables if table.zones}
    stored = sorted(path.name for path in root.iterdir() if delta_log.log_directory(str(path)).exists())
    derived = sorted({*stored, *(table.name for table in tables)} - landed.keys())
    done = [f"set {name} aside in {SET_ASIDE_TABLES}/" for name in derived if _move(lake, name)]
    for log in (lake.log(landed[name]) for name in stored if name in landed):
        done += [f"{log.table.name}: {step}" for step in properties.correct(log.uri, log.properties())]
    return done


def _require_archive(table: Table, zones: Sequence[LandingZone], accepted: frozenset[str]) -> None:
    beyond = beyond_archive(zones)
    if beyond.marks and table.name not in accepted:
        raise NotRebuildable(
            f"{table.name} cannot be rebuilt as it was: {beyond}. Restore it from a backup, or accept the loss with "
            f"`--accept-loss {table.name}`: what is lost may then be delivered again"
        )


def _move(lake: Lake, name: str) -> bool:
    root = location(lake.uri)
    source, place = root / name, root / SET_ASIDE_TABLES
    lake.verdicts.discard(name)  # of a table that was lost it is all that is left
    if not source.exists():
        return False
    durable.make_directory(place)
    taken = sum(1 for path in place.iterdir() if path.name.rpartition(".")[0] == name)
    source.rename(place / f"{name}.{taken}")
    durable.sync([place, root])
    return True
