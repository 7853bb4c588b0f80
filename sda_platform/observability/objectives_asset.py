"""The service levels in Dagster: an asset whose history shows every day, with a check for each objective."""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from sda_platform import markdown_elements
from sda_platform.clock import MissionClock, iso
from sda_platform.foreign_text import Markdown
from sda_platform.lake.lake import Lake, without_session
from sda_platform.observability.metrics.exporter import availability
from sda_platform.observability.objectives import OBJECTIVES, ServiceLevel, events_since, service_levels
from sda_platform.observability.vitals import history
from sda_platform.observability.vitals.assets import GROUP
from sda_platform.orchestration.materialization import in_ui
from sda_platform.settings import Settings
from sda_platform.units import DAY_NS

KEY = dg.AssetKey(["platform", "service_levels"])


def levels_now(settings: Settings) -> tuple[int, list[ServiceLevel]]:
    """Mission time now, and every objective over its day so far; read from the logs, without an engine."""
    lake = Lake(settings.lake_uri, MissionClock.load(settings.home), without_session)
    now_ns = lake.clock.now_ns()
    rounds = availability(history.load(settings.home), lake)
    return now_ns, service_levels([*events_since(lake, now_ns - now_ns % DAY_NS), *rounds], now_ns)


def service_levels_asset(settings: Settings) -> dg.AssetsDefinition:
    """Return the asset, for the lake and the home of ``settings``."""

    @dg.asset(
        key=KEY,
        group_name=GROUP,
        kinds={"python"},
        check_specs=[
            dg.AssetCheckSpec(each.name, asset=KEY, description=f"{each.target:.2%} of events are good: {each.good}.")
            for each in OBJECTIVES
        ],
        description="What the platform promises and how much of it the day (UTC, mission time) has kept so far: share "
        "of good events, error budget left, and the rate at which the last hour spent it.",
    )
    def platform_service_levels() -> Iterator[dg.MaterializeResult[Any]]:
        now_ns, levels = levels_now(settings)
        yield dg.MaterializeResult(
            metadata={"as_of": iso(now_ns), "levels": in_ui(_table(levels)), **_figures(levels)},
            check_results=[_check(level) for level in levels],
        )

    return platform_service_levels


SERVICE_LEVELS_JOB = dg.define_asset_job(
    "service_levels",
    selection=dg.AssetSelection.assets(KEY),
    executor_def=dg.in_process_executor,
    description="Computes the service levels of the day so far.",
)
SERVICE_LEVELS_SCHEDULE = dg.ScheduleDefinition(
    name="daily_service_levels",
    job=SERVICE_LEVELS_JOB,
    cron_schedule="58 23 * * *",
    description="Starts `service_levels` at the end of the day (UTC).",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
"""Two minutes before midnight (UTC), so that its materializations are the days. The job shows the day so far."""


def _check(level: ServiceLevel) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=level.objective.name,
        passed=level.is_kept,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"good": level.good, "events": level.total, "budget_left": level.budget_left},
    )


def _figures(levels: Sequence[ServiceLevel]) -> dict[str, float]:
    shown: dict[str, float] = {}
    for level in levels:
        name = level.objective.name
        shown |= {f"{name}_good_share": level.share, f"{name}_budget_left": level.budget_left}
        shown[f"{name}_burn_rate"] = level.burn_rate
    return shown


def _table(levels: Sequence[ServiceLevel]) -> Markdown:
    rows = [
        (
            level.objective.name, f"{level.objective.target:.2%}", f"{level.share:.3%}", f"{level.total:,.0f}",
            f"{level.budget_left:.0%}", f"{level.burn_rate:.2f}",
        )
        for level in levels
    ]  # fmt: skip
    return markdown_elements.table(("objective", "target", "good", "events", "budget left", "burn rate"), rows)
