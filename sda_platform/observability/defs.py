"""What package observability adds to the Dagster definitions."""

import dagster as dg

from sda_platform.observability.objectives_asset import (
    SERVICE_LEVELS_JOB,
    SERVICE_LEVELS_SCHEDULE,
    service_levels_asset,
)
from sda_platform.observability.vitals.assets import ASSET, GROUP, VITALS_JOB, vitals_checks, vitals_sensor
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings

POLICIES = {GROUP: GroupPolicy("team:platform", warn_h=1 / 6, fail_h=1)}


def defs(settings: Settings) -> dg.Definitions:
    """Vitals and service levels: assets, checks, jobs, and what evaluates them."""
    return dg.Definitions(
        assets=[ASSET, service_levels_asset(settings)],
        asset_checks=[vitals_checks(settings)],
        jobs=[VITALS_JOB, SERVICE_LEVELS_JOB],
        schedules=[SERVICE_LEVELS_SCHEDULE],
        sensors=[vitals_sensor(settings)],
    )
