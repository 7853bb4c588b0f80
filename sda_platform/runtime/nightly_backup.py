"""The backup of each night in Dagster: an asset whose history shows what was backed up, its job and its schedule."""

from pathlib import Path
from typing import Any, Final

import dagster as dg

from sda_platform.orchestration.jobs import upkeep_job
from sda_platform.recovery.backups import LOCK
from sda_platform.runtime.backup import back_up, described
from sda_platform.settings import Settings
from sda_platform.spark.pools import Pool

GROUP: Final = "history"
KEY: Final = dg.AssetKey([GROUP, "backup"])
JOB: Final = upkeep_job(
    "backup",
    dg.AssetSelection.assets(KEY),
    "Makes a backup of the platform, as `sda backup` does, and removes old ones.",
)
SCHEDULE: Final = dg.ScheduleDefinition(
    name="nightly_backup",
    job=JOB,
    cron_schedule="0 2 * * *",
    description="Starts `backup`, before the maintenance; the audit `restore_drill` reads it later in the night.",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)


def backup_asset(settings: Settings) -> dg.AssetsDefinition:
    """Return the asset whose materialization makes a backup below the directory of the settings."""
    target, kept = Path(settings.retention.backup).absolute(), settings.retention.backups_kept

    @dg.asset(
        key=KEY,
        group_name=GROUP,
        kinds={"python"},
        pool=Pool.MAINTENANCE,
        description=f"A backup below `{target}` each night: lake, landing zones and home, as of one consistent moment. "
        f"The newest {kept} are kept. `sda --home NEW restore {target}` restores it.",
    )
    def history_backup() -> dg.MaterializeResult[Any]:
        if not (target / LOCK).exists():  # a disk that is not mounted: its backup would fill the one of the system
            raise dg.Failure(
                f"{target} is no directory of backups: is its disk mounted? `sda backup {target}` makes the first one",
                allow_retries=False,
            )
        made = back_up(settings, target, kept=kept)
        return dg.MaterializeResult(
            metadata={
                "backup": dg.MetadataValue.path(made.path),
                "files": made.files,
                "size_mb": made.size_bytes / 1e6,
                "new_mb": made.new_bytes / 1e6,
                "removed": made.removed,
                "report": list(described(made, settings)),
            }
        )

    return history_backup
