"""The archive in Dagster: an asset for each report on how the lake is kept, and the jobs that make them."""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from sda_platform.archive.encoding_asset import KEY as ENCODING_KEY
from sda_platform.archive.encoding_asset import encoding_asset
from sda_platform.archive.layout_asset import KEY as LAYOUT_KEY
from sda_platform.archive.layout_asset import layout_asset
from sda_platform.archive.maintenance import maintenance_job, nightly
from sda_platform.archive.report_asset import report_asset
from sda_platform.archive.stores import Store, holds, stores
from sda_platform.lake.table import Table
from sda_platform.orchestration.policy import GroupPolicy
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.warning import warning
from sda_platform.settings import Settings
from sda_platform.spark.pools import Pool
from sda_platform.spark.session import POOL_TAG

GROUP = "archive"
POLICIES = {GROUP: GroupPolicy("team:platform", warn_h=26, fail_h=50)}
RETENTION_KEY = dg.AssetKey([GROUP, "retention"])


def archive_definitions(tables: Sequence[Table], settings: Settings) -> dg.Definitions:
    """Maintenance and reports over ``tables``."""
    maintenance = maintenance_job(tables)
    reports = _report_job(
        "archive_reports", "Reports on how the lake is kept. They change nothing.", RETENTION_KEY, LAYOUT_KEY
    )
    encodings = _report_job(
        "archive_encodings", "Measures the encodings of all tables. It changes nothing.", ENCODING_KEY
    )
    return dg.Definitions(
        assets=[retention_asset(tables, settings), layout_asset(tables, GROUP), encoding_asset(tables, GROUP)],
        jobs=[maintenance, reports, encodings],
        schedules=[
            nightly(maintenance),
            _regular("daily", reports, "30 5 * * *"),
            _regular("weekly", encodings, "45 5 * * 1"),
        ],
    )


def retention_asset(tables: Sequence[Table], settings: Settings) -> dg.AssetsDefinition:
    """The asset whose history shows the size of every store."""

    @report_asset(
        RETENTION_KEY,
        GROUP,
        checks={
            "nothing_is_kept_too_long": "No store holds what the nightly maintenance should have removed three days "
            "ago."
        },
        description="Every store of the platform: how long it keeps what, what removes it, and how much it holds. "
        "`sda retention` shows the same.",
    )
    def archive_retention(lake: LakeResource) -> Iterator[dg.MaterializeResult[Any]]:
        opened = lake.open()
        found = list(stores(opened, tables, settings.home.absolute(), settings.landing_uri))
        late = [
            f"{each.name}: {each.oldest_days:,.0f} days old, kept {each.most_days:g}" for each in found if each.is_late
        ]
        sizes = {f"{_identifier(each)}_mb": each.size_bytes / 1e6 for each in found if each.size_bytes is not None}
        yield dg.MaterializeResult(
            metadata={
                "stores": dg.MetadataValue.md(_table(found)),
                "leases_and_tags": list(holds(opened)),
                **sizes,
            },
            check_results=[warning(late, name="nothing_is_kept_too_long")],
        )

    return archive_retention


def _report_job(name: str, description: str, *assets: dg.AssetKey) -> Any:
    return dg.define_asset_job(
        name,
        selection=dg.AssetSelection.assets(*assets),
        tags={POOL_TAG: Pool.MAINTENANCE},
        executor_def=dg.in_process_executor,
        description=description,
    )


def _regular(how_often: str, job: Any, cron: str) -> dg.ScheduleDefinition:
    return dg.ScheduleDefinition(
        name=f"{how_often}_{job.name}",
        job=job,
        cron_schedule=cron,
        description=f"Starts `{job.name}`.",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )


def _identifier(store: Store) -> str:
    return store.name.lower().replace("'", "").replace(" ", "_")


def _table(found: Sequence[Store]) -> str:
    lines = [
        "| store | kept | removed by | files | MB | MB a year | oldest, days |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for each in found:
        files = "" if each.files is None else f"{each.files:,}"
        size = "" if each.size_bytes is None else f"{each.size_bytes / 1e6:,.1f}"
        oldest = "" if each.oldest_days is None else f"{each.oldest_days:,.1f}"
        growth = "" if each.yearly_bytes is None else f"{each.yearly_bytes / 1e6:,.1f}"
        lines.append(f"| {each.name} | {each.kept} | {each.removed_by} | {files} | {size} | {growth} | {oldest} |")
    return "\n".join(lines)
