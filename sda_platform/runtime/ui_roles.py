"""Roles of the UI's users: viewers change nothing, operators start and end runs, schedules and sensors, admins all."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final

PROBES: Final = "platform"
"""The name under which the platform's own probes log in; they view."""


class Role(IntEnum):
    """What a user may do; each role may do all that the ones below may."""

    VIEWER = 0
    OPERATOR = 1
    ADMIN = 2


ROLE_NAMES: Final = tuple(role.name.lower() for role in Role)
_PAGE_ITSELF: Final = frozenset({"logTelemetry", "setNuxSeen"})
"""Mutations that the page sends by itself: which hints a user has seen."""
_OPERATORS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "launch_pipeline_execution": ("launchRun", "launchPipelineExecution", "launchMultipleRuns"),
        "launch_pipeline_reexecution": ("launchRunReexecution", "launchPipelineReexecution"),
        "launch_partition_backfill": (
            "launchPartitionBackfill", "resumePartitionBackfill", "reexecutePartitionBackfill",
        ),
        "cancel_partition_backfill": ("cancelPartitionBackfill",),
        "terminate_pipeline_execution": ("terminateRun", "terminatePipelineExecution", "terminateRuns"),
        "start_schedule": ("startSchedule", "resetSchedule"),
        "stop_running_schedule": ("stopRunningSchedule",),
        "schedule_dry_run": ("scheduleDryRun",),
        "edit_sensor": ("startSensor", "stopSensor", "resetSensor"),
        "sensor_dry_run": ("sensorDryRun",),
    }
)  # fmt: skip
"""What operators may do: Dagster's permissions, by which the UI shows its buttons, and the mutations of each."""
_OPERATORS_MUTATIONS: Final = frozenset(name for names in _OPERATORS.values() for name in names)


@dataclass(frozen=True)
class User:
    """Who sends a request."""

    name: str
    role: Role


def may_mutate(role: Role, mutation: str) -> bool:
    """Return whether ``role`` may execute a mutation of Dagster's schema; one that is not known here is for admins."""
    if mutation in _PAGE_ITSELF:
        return True
    return role >= (Role.OPERATOR if mutation in _OPERATORS_MUTATIONS else Role.ADMIN)


def has_permission(role: Role, permission: str) -> bool:
    """Return whether ``role`` has a permission of Dagster's."""
    return role >= (Role.OPERATOR if str(permission) in _OPERATORS else Role.ADMIN)
