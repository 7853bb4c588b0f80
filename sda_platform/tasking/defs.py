"""What package tasking adds to the Dagster definitions."""

import dagster as dg

from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.settings import Settings
from sda_platform.tasking import sensors
from sda_platform.tasking.checks import class_0_is_observed, class_0_is_served
from sda_platform.tasking.resource import TaskingResource

POLICIES = {"tasking": GroupPolicy("team:sensor-tasking", warn_h=1, fail_h=6)}


def defs(settings: Settings) -> dg.Definitions:
    """Checks, schedule, sensor and resource of the package."""
    tasking = TaskingResource(**settings.scheduling.model_dump())
    return dg.Definitions(
        asset_checks=[class_0_is_served, class_0_is_observed],
        schedules=sensors.build_schedules(running=settings.tasking),
        sensors=sensors.build_sensors(running=settings.tasking),
        resources={"tasking": tasking},
    )
