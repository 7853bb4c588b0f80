"""What package runtime adds to the Dagster definitions: the backup of each night, where the settings have a place."""

from collections.abc import Mapping

import dagster as dg

from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.runtime.nightly_backup import JOB, SCHEDULE, backup_asset
from sda_platform.settings import Settings

POLICIES: Mapping[str, GroupPolicy] = {}


def defs(settings: Settings) -> dg.Definitions:
    """The asset, job and schedule of backups; nothing where none are wanted."""
    if not settings.retention.backup:
        return dg.Definitions()
    return dg.Definitions(assets=[backup_asset(settings)], jobs=[JOB], schedules=[SCHEDULE])
