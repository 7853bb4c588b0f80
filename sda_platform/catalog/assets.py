"""Assets of the catalog room: landing zone → element_sets → orbital_catalog."""

from typing import Any

import dagster as dg

from sda_platform.catalog import decoding, transforms
from sda_platform.catalog.tables import ELEMENT_SETS, ELEMENTS_FEED, ORBITAL_CATALOG
from sda_platform.lake.assets import materialized, nothing_new, table_asset
from sda_platform.lake.jobs import CATALOG_TO_ALERTS
from sda_platform.lake.landing.bronze import land
from sda_platform.lake.landing.decoding import one_by_one
from sda_platform.lake.landing.zone_asset import zone_asset
from sda_platform.lake.resource import LakeResource, LandingResource

element_zone = zone_asset(
    ELEMENTS_FEED,
    ELEMENT_SETS,
    "elements_landing",
    "Element sets as files: OMM in CSV or JSON, two- and three-line sets.",
    replayable="yes",
    ordering="none",
    delivery="at least once",
)


@table_asset(ELEMENT_SETS, jobs=[CATALOG_TO_ALERTS])
def element_sets(
    context: dg.AssetExecutionContext, lake: LakeResource, landing: LandingResource
) -> dg.MaterializeResult[Any]:
    """Every element set that arrived, kept for ever; one that cannot be read, or that SGP4 refuses, says why."""
    return land(lake, landing, ELEMENT_SETS, one_by_one(decoding.decode), tell=context.log_event)


@table_asset(ORBITAL_CATALOG, jobs=[CATALOG_TO_ALERTS])
def orbital_catalog(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """The best element set of each object in orbit, by epoch, source priority, set number and source.

    Older sets stay in `element_sets`; the catalogue as of any moment is an earlier version of this table.
    """
    store = lake.open()
    plan = store.plan(ORBITAL_CATALOG)
    if plan.is_empty:
        return nothing_new(store, plan)
    current = store.frame(ORBITAL_CATALOG, store.current_rows(plan))
    changed = transforms.improvements(store.window(plan, ELEMENT_SETS), current)
    receipt = store.replace(plan, changed.toArrow())
    return materialized(store, receipt)
