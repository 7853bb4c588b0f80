"""What package tasking adds to the Dagster definitions."""

import dagster as dg

from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings
from sda_platform.tasking import assets, sensors
from sda_platform.tasking.checks import checks
from sda_platform.tasking.resource import TaskingResource

POLICIES = {"tasking": GroupPolicy("team:sensor-tasking", warn_h=1, fail_h=6)}


def defs(settings: Settings) -> dg.Definitions:
    """Assets, checks, schedule and resource of the package."""
    tasking = TaskingResource(**settings.scheduling.model_dump())
    return dg.Definitions(
        assets=[assets.observation_requests, assets.pass_windows, assets.pass_schedule],
        asset_checks=checks,
        schedules=sensors.build_schedules(running=settings.tasking),
        resources={"tasking": tasking},
    )
