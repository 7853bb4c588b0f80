"""The history in Dagster: the nightly maintenance, the daily files, and the report of how long stores keep what."""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from sda_platform import markdown_elements
from sda_platform.foreign_text import Markdown
from sda_platform.history.daily_files import daily_files_asset
from sda_platform.history.maintenance import maintenance_job, nightly
from sda_platform.history.stores import Store, leases_and_tags, stores
from sda_platform.lake.retention import retention_of
from sda_platform.lake.table import Table
from sda_platform.orchestration.jobs import upkeep_job
from sda_platform.orchestration.materialization import in_ui
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.warning import warning
from sda_platform.settings import Settings
from sda_platform.spark.pools import Pool

GROUP = "history"
POLICIES = {GROUP: GroupPolicy("team:platform", warn_h=26, fail_h=50)}
RETENTION_KEY, DAILY_FILES_KEY = dg.AssetKey([GROUP, "retention"]), dg.AssetKey([GROUP, "daily_files"])


def history_definitions(tables: Sequence[Table], settings: Settings) -> dg.Definitions:
    """Make the maintenance and the report of retention over ``tables``."""
    retention = retention_of(settings.retention)
    maintenance = maintenance_job(tables, retention)
    report = upkeep_job(
        "retention_report",
        dg.AssetSelection.assets(RETENTION_KEY),
        "Reports how long each store keeps what. It changes nothing.",
    )
    daily = dg.ScheduleDefinition(
        name="daily_retention_report",
        job=report,
        cron_schedule="30 5 * * *",
        description="Starts `retention_report`.",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    files = upkeep_job(
        "daily_files",
        dg.AssetSelection.assets(DAILY_FILES_KEY),
        "Writes the catalogue, the alerts and their messages of the day as files with checksums.",
    )
    each_morning = dg.ScheduleDefinition(
        name="morning_daily_files",
        job=files,
        cron_schedule="0 6 * * *",
        description="Starts `daily_files`.",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    return dg.Definitions(
        assets=[
            retention_asset(tables, settings),
            daily_files_asset(DAILY_FILES_KEY, GROUP, settings.home, retention),
        ],
        jobs=[maintenance, report, files],
        schedules=[nightly(maintenance), daily, each_morning],
    )


def retention_asset(tables: Sequence[Table], settings: Settings) -> dg.AssetsDefinition:
    """Return the asset whose history shows the size of every store."""

    @dg.asset(
        key=RETENTION_KEY,
        group_name=GROUP,
        kinds={"python"},
        pool=Pool.MAINTENANCE,
        check_specs=[
            dg.AssetCheckSpec(
                "nothing_is_kept_too_long",
                asset=RETENTION_KEY,
                description="No store holds what the nightly maintenance should have removed three days ago.",
            )
        ],
        description="Every store of the platform: how long it keeps what, what removes it, and how much it holds. "
        "`sda lake retention` shows the same.",
    )
    def history_retention(lake: LakeResource) -> Iterator[dg.MaterializeResult[Any]]:
        opened = lake.open()
        retention = retention_of(settings.retention)
        found = list(stores(opened, tables, settings.home.absolute(), settings.landing_uri, retention))
        late = [
            f"{each.name}: {each.oldest_days:,.0f} days old, kept {each.most_days:g}" for each in found if each.is_late
        ]
        sizes = {f"{_identifier(each)}_mb": each.size_bytes / 1e6 for each in found if each.size_bytes is not None}
        yield dg.MaterializeResult(
            metadata={
                "stores": in_ui(_table(found)),
                "leases_and_tags": list(leases_and_tags(opened)),
                **sizes,
            },
            check_results=[warning(late, name="nothing_is_kept_too_long")],
        )

    return history_retention


def _identifier(store: Store) -> str:
    return store.name.lower().replace("'", "").replace(" ", "_")


def _table(found: Sequence[Store]) -> Markdown:
    rows = []
    for each in found:
        files = "" if each.files is None else f"{each.files:,}"
        size = "" if each.size_bytes is None else f"{each.size_bytes / 1e6:,.1f}"
        oldest = "" if each.oldest_days is None else f"{each.oldest_days:,.1f}"
        growth = "" if each.yearly_bytes is None else f"{each.yearly_bytes / 1e6:,.1f}"
        rows.append((each.name, each.kept, each.removed_by, files, size, growth, oldest))
    header = ("store", "kept", "removed by", "files", "MB", "MB a year", "oldest, days")
    return markdown_elements.table(header, rows, numbers=4)
