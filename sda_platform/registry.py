"""Every table of the platform, in the order in which data flows."""

from collections.abc import Mapping

from sda_platform.catalog.tables import ELEMENT_SETS, ELEMENTS_FEED, ORBITAL_CATALOG
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    CONJUNCTION_MESSAGES,
    MESSAGES_FEED,
)
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.clock_tables import CLOCK_OFFSETS
from sda_platform.fusion.own_element_tables import PROVISIONAL_ELEMENTS, REFINED_ELEMENTS
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.ingest.feeds import OBSERVATION_FEEDS
from sda_platform.ingest.tables import DEAD_LETTERS, OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.table import Table

TABLES = (
    RAW_RECORDS,
    OBSERVATIONS,
    ELEMENT_SETS,
    CONJUNCTION_MESSAGES,
    DEAD_LETTERS,
    ORBITAL_CATALOG,
    FUSED_TRACKS,
    CLOCK_OFFSETS,
    TRACKS,
    REFINED_ELEMENTS,
    PROVISIONAL_ELEMENTS,
    CONJUNCTION_CANDIDATES,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_ALERTS,
    ALERT_DELIVERIES,
)

# The tables that take their input from landing zones, by name.
FEEDS: Mapping[str, tuple[str, ...]] = {
    RAW_RECORDS.name: tuple(feed.name for feed in OBSERVATION_FEEDS),
    ELEMENT_SETS.name: (ELEMENTS_FEED,),
    CONJUNCTION_MESSAGES.name: (MESSAGES_FEED,),
}


class UnknownTable(LookupError):
    """No table has this name."""


def tables_named(name: str) -> tuple[Table, ...]:
    """The table ``name``, or every table for ``all``. Raises UnknownTable."""
    chosen = tuple(table for table in TABLES if name in (table.name, "all"))
    if not chosen:
        raise UnknownTable(f"no table is named {name!r}; there are: {', '.join(t.name for t in TABLES)}, or all")
    return chosen
