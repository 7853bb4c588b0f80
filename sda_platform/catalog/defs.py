"""What package catalog adds to the Dagster definitions."""

import dagster as dg

from sda_platform.catalog import health, sensors, serving_index
from sda_platform.catalog.sites_resource import SitesResource
from sda_platform.catalog.space_weather import SpaceWeatherResource
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {"catalog": GroupPolicy("team:catalogue", warn_h=24, fail_h=48)}


def defs(settings: Settings) -> dg.Definitions:
    """Assets, checks, sensors and schedules of the package, and space weather as a resource."""
    return dg.Definitions(
        assets=[
            health.catalogue_report,
            serving_index.catalog_index,
        ],
        asset_checks=[serving_index.index_is_current],
        sensors=[serving_index.index_sensor],
        schedules=[sensors.screening_refresh],
        resources={
            "weather": SpaceWeatherResource.of(settings),
            "sites": SitesResource(**settings.access.model_dump(include={"sites"})),
        },
    )
