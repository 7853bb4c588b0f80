"""The layout report in Dagster: how much of each table its queries read, with a check of each rule."""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from sda_platform.archive.layout_report import LayoutJudgement, judge_layouts
from sda_platform.archive.report_asset import report_asset
from sda_platform.lake.table import Table
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.warning import warning

KEY = dg.AssetKey(["archive", "layout_report"])
_CHECKS = {
    "queries_pass_over_files": "Queries keep at most 30 % of a table's files on average, from ten files on.",
    "file_sizes_are_healthy": "Files have 64 to 512 MB; smaller ones are few, and fit in one file together.",
}


def layout_asset(tables: Sequence[Table], group: str) -> dg.AssetsDefinition:
    """The asset over ``tables``; it plans queries and reads no row."""

    @report_asset(
        KEY,
        group,
        checks=_CHECKS,
        description="Files and row groups that the queries of each table keep, by the bounds in its log. Queries are "
        "those that `sda query` recorded, and generated ones up to a hundred. `sda layout` shows the same.",
    )
    def archive_layout_report(lake: LakeResource) -> Iterator[dg.MaterializeResult[Any]]:
        judged = list(judge_layouts(lake.open(), tables))
        yield dg.MaterializeResult(
            metadata={
                "tables": dg.MetadataValue.md(_table(judged)),
                "files": sum(len(each.sizes) for each in judged),
                "recorded_queries": sum(each.recorded for each in judged),
                "generated_queries": sum(len(each.scans) - each.recorded for each in judged),
            },
            check_results=[
                warning([line for each in judged for line in each.ratio_problems], name="queries_pass_over_files"),
                warning([line for each in judged for line in each.size_problems], name="file_sizes_are_healthy"),
            ],
        )

    return archive_layout_report


def _table(judged: Sequence[LayoutJudgement]) -> str:
    lines = [
        "| table | files | MB | queries | recorded | files kept | row groups kept | queries that keep ≤ 10 % |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for each in judged:
        groups = "" if each.row_group_ratio is None else f"{each.row_group_ratio:.1%}"
        counts = f"{len(each.sizes):,} | {sum(each.sizes) / 1e6:,.1f} | {len(each.scans)} | {each.recorded}"
        lines.append(f"| {each.table} | {counts} | {each.mean_ratio:.1%} | {groups} | {each.selective_share:.0%} |")
    return "\n".join(lines)
