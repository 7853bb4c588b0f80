"""What package dead_letters adds to the Dagster definitions."""

import dagster as dg

from sda_platform.dead_letters.growth import GrowthResource, no_growth
from sda_platform.dead_letters.reprocess_job import reprocess
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {"dead_letters": GroupPolicy("team:sensor-operations", warn_h=1 / 6, fail_h=1)}


def defs(settings: Settings) -> dg.Definitions:
    """Asset, checks, job and resource of the package."""
    growth = GrowthResource(**settings.growth.model_dump())
    return dg.Definitions(asset_checks=[no_growth], jobs=[reprocess], resources={"growth": growth})
