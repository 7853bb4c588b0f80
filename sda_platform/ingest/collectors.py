"""The collectors in Dagster: a check that says what is wrong with a source, with the rates of all."""

from pathlib import Path
from typing import Any

import dagster as dg

from sda_platform.edge.report_client import NoReport, fetch_report
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.orchestration.resources import LakeResource
from sda_platform.published import COLLECTOR, published


@dg.asset_check(asset=RAW_RECORDS.name, description="Every source of the collector runs; passes where none is used.")
def collectors_are_healthy(lake: LakeResource) -> dg.AssetCheckResult:
    """Failed sources with their reason, and of each source rate, deferred and dropped records."""
    control = published(Path(lake.home), COLLECTOR)
    if control is None:
        return dg.AssetCheckResult(passed=True, description="no collector runs here")
    problems, facts = collector_report(control)
    return dg.AssetCheckResult(
        passed=not problems,
        severity=dg.AssetCheckSeverity.WARN,
        description="; ".join(problems)[:1000] or None,
        metadata=facts,
    )


def collector_report(control: str) -> tuple[list[str], dict[str, Any]]:
    """What is wrong by the report of the collector at ``control``, and the figures of all its sources."""
    try:
        report = fetch_report(control)
    except NoReport as error:
        return [str(error)], {}
    names = ("rate_per_s", "sealed", "deferred", "dropped", "kernel_drops")
    facts = {
        f"{each['name']}_{name}": each[name] for each in report["sources"] for name in names if each[name] is not None
    }
    return list(report["problems"]), {**facts, "bottleneck": report["bottleneck"] or "none"}
