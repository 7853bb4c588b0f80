"""What package catalog adds to the Dagster definitions."""

import dagster as dg

from sda_platform.catalog import assets, health, sensors
from sda_platform.catalog.checks import checks
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {"catalog": GroupPolicy("team:catalogue", warn_h=24, fail_h=48)}


def defs(settings: Settings) -> dg.Definitions:
    """Assets, checks, sensors and schedules of the package."""
    return dg.Definitions(
        assets=[
            assets.element_zone,
            assets.element_sets,
            assets.orbital_catalog,
            assets.ephemeris_zone,
            assets.ephemerides,
            assets.edit_zone,
            assets.catalog_edits,
            assets.catalog_conflicts,
            health.catalogue_report,
        ],
        asset_checks=checks,
        sensors=sensors.build_sensors(settings.sensor_interval_s),
        schedules=[sensors.screening_refresh],
    )
