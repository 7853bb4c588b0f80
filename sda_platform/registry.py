"""Every table of the platform, sources before the tables that use them.

They are what each package's ``tables`` module lists, and what the modules of ``own_tables`` do.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import sda_platform
from sda_platform import own_tables
from sda_platform.lake.table import Table, in_flow_order
from sda_platform.landing.zone import LandingZone


class UnknownTable(LookupError):
    """No table has this name."""


def tables_named(name: str) -> tuple[Table, ...]:
    """Return the table ``name``, or every table for ``all``. Raises UnknownTable."""
    chosen = tuple(table for table in TABLES if name in (table.name, "all"))
    if not chosen:
        known = ", ".join(sorted(table.name for table in TABLES))
        raise UnknownTable(f"no table is named {name!r}; there are: {known}, or all")
    return chosen


def modules_named(name: str) -> tuple[ModuleType, ...]:
    """Return the modules ``name`` of the platform's packages: `tables`, `assets` or `defs`, imported."""
    found = (path.parent.name for root in sda_platform.__path__ for path in Path(root).glob(f"*/{name}.py"))
    return tuple(import_module(f"sda_platform.{package}.{name}") for package in sorted(found))


def listed_tables() -> tuple[Table, ...]:
    """Return the tables that modules list, imported, sources before the tables that use them."""
    own = (import_module(f"{own_tables.__name__}.{each.name}") for each in iter_modules(own_tables.__path__))
    modules = (*modules_named("tables"), *own)
    return in_flow_order(sorted((table for module in modules for table in module.TABLES), key=lambda each: each.name))


TABLES = listed_tables()
TABLES_BY_NAME: Mapping[str, Table] = {table.name: table for table in TABLES}
FEEDS: Mapping[str, tuple[str, ...]] = {table.name: table.zones for table in TABLES if table.zones}
"""The landing zones of the tables that have some, by the table's name."""


def landing_zones(landing_uri: str) -> dict[str, list[LandingZone]]:
    """Return the zones of FEEDS at ``landing_uri``, by the table's name."""
    return {table: [LandingZone(landing_uri, feed) for feed in feeds] for table, feeds in FEEDS.items()}
