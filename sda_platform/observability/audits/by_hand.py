"""Jobs that a person starts in the UI: `replay`, `verify`, `reconcile` and `impact`, as the commands of these names.

They change nothing and may run beside all others, in the pool of the maintenance. Each leaves an audit event. The run
of one that verifies fails where a table differs or is damaged. What repairs is a command, because it excludes every
other writer.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from sda_platform import audit_log
from sda_platform.lake.errors import LakeError
from sda_platform.lake.lake import Lake
from sda_platform.orchestration.reconciling import reconcile
from sda_platform.orchestration.replaying import replay_lake
from sda_platform.orchestration.resources import LakeResource
from sda_platform.recovery.examination import Depth
from sda_platform.recovery.repair import recover
from sda_platform.registry import TABLES, TABLES_BY_NAME, UnknownTable, landing_zones, tables_named
from sda_platform.replay.history import Span
from sda_platform.replay.shadow import temporary_shadow
from sda_platform.settings import Settings
from sda_platform.spark.pools import Pool
from sda_platform.spark.session import POOL_TAG

if TYPE_CHECKING:
    from sda_platform.history.recomputed_alerts import RecomputedImpact

_SHOWN = 20


class CommitsConfig(dg.Config):
    """Which commits the launchpad selects."""

    table: str = Field(default="all", description="A table, or `all`.")
    from_sequence: int = Field(default=1, ge=1, description="First commit.")
    to_sequence: int = Field(default=0, ge=0, description="Last commit; 0: the newest.")

    def span(self) -> Span:
        """Return the chosen commits."""
        return Span(self.from_sequence, self.to_sequence or sys.maxsize)


class DepthConfig(dg.Config):
    """How deep a verification reads."""

    deep: bool = Field(default=False, description="Read every column of every file; else only each file's footer.")


class InputConfig(dg.Config):
    """Which input is imagined away."""

    source: str = Field(description="A segment (name or SHA-256), a sensor, or an element set (25544@EPOCH).")


def recomputed(settings: Settings, lake: Lake, chosen: InputConfig) -> "RecomputedImpact":
    """Recompute the alerts without the chosen input. Raises UnknownInput, NotReplayable."""
    # With DuckDB, which every process that loads the definitions would import.
    from sda_platform.definitions import default_resources  # which loads this package
    from sda_platform.history.impact import impact_of
    from sda_platform.history.recomputed_alerts import recompute_impact

    tables, resources = TABLES_BY_NAME, default_resources(settings)
    with temporary_shadow(lake.uri, "impact") as uri:
        return recompute_impact(lake, tables, impact_of(lake, tables, chosen.source), uri, resources)


def replay_problems(settings: Settings, lake: Lake, chosen: CommitsConfig) -> list[str]:
    """Replay the chosen commits and list the differences. Raises UnknownTable, NotReplayable."""
    from sda_platform.definitions import default_resources  # which loads this package

    tables, resources = tables_named(chosen.table), default_resources(settings)
    with temporary_shadow(lake.uri, "replay") as uri:
        found = replay_lake(lake, uri, resources, tables=tables, span=chosen.span())
    reasons = [each.not_replayed for each in found if each.not_replayed]
    return [*reasons, *(f"{each.table}: {line}" for each in found for line in each.differences)]


def reconcile_problems(settings: Settings, lake: Lake, chosen: CommitsConfig) -> list[str]:
    """Return the rows that differ from what follows from the inputs, with the remedy. Raises UnknownTable,
    NotReplayable.
    """
    from sda_platform.definitions import default_resources  # which loads this package

    tables, resources = tables_named(chosen.table), default_resources(settings)
    with temporary_shadow(lake.uri, "reconcile") as uri:
        found = reconcile(lake, uri, resources, tables=tables, span=chosen.span(), apply=False)
    return [
        f"{each.table}: {line}; {each.refused or f'`sda lake reconcile {each.table} --apply` restores it'}"
        for each in found
        for line in each.differences
    ]


def verify_problems(settings: Settings, lake: Lake, chosen: DepthConfig) -> list[str]:
    """List the damage in the tables and their logs."""
    zones = landing_zones(settings.landing_uri)
    found = recover(lake, TABLES, zones, depth=Depth.COLUMNS if chosen.deep else Depth.FOOTERS, repair=False)
    return [f"{each.examination.table}: {problem}" for each in found for problem in each.problems]


def jobs_by_hand(settings: Settings) -> list[dg.JobDefinition]:
    """Return the jobs, for the platform of ``settings``."""

    @dg.op(pool=Pool.MAINTENANCE, description="Compares the chosen commits with a replay of them, bit for bit.")
    def compare_with_replay(context: dg.OpExecutionContext, config: CommitsConfig, lake: LakeResource) -> None:
        _run(context, settings, "replay", config, lambda: replay_problems(settings, lake.open(), config))

    @dg.op(pool=Pool.MAINTENANCE, description="Compares the chosen commits with what follows from their inputs.")
    def compare_with_inputs(context: dg.OpExecutionContext, config: CommitsConfig, lake: LakeResource) -> None:
        _run(context, settings, "reconcile", config, lambda: reconcile_problems(settings, lake.open(), config))

    @dg.op(pool=Pool.MAINTENANCE, description="Examines the log and the data files of every table.")
    def examine_tables(context: dg.OpExecutionContext, config: DepthConfig, lake: LakeResource) -> None:
        _run(context, settings, "verify", config, lambda: verify_problems(settings, lake.open(), config))

    @dg.op(pool=Pool.MAINTENANCE, description="Makes again what rests on an input, as if it had never come.")
    def leave_out_input(context: dg.OpExecutionContext, config: InputConfig, lake: LakeResource) -> None:
        record = partial(audit_log.record, settings.home, "impact", config.model_dump(), by=f"run {context.run_id}")
        try:
            found = recomputed(settings, lake.open(), config)
        except LakeError as error:
            record(f"refused: {error}")
            raise dg.Failure(str(error), allow_retries=False) from error
        record(found.summary)
        context.add_output_metadata({"outcome": found.summary, "alerts": dg.MetadataValue.json(found.to_dict())})

    return [
        _job("replay", compare_with_replay, "Makes commits again in a shadow, and compares them bit for bit."),
        _job("reconcile", compare_with_inputs, "Compares tables with inputs; `sda lake reconcile --apply` repairs."),
        _job("impact", leave_out_input, "Shows what the alerts would be without an input."),
        _job("verify", examine_tables, "Verifies that commits and data files are as they were written."),
    ]


def _job(name: str, op: dg.OpDefinition, description: str) -> dg.JobDefinition:
    graph = dg.GraphDefinition(name=name, node_defs=[op])
    return graph.to_job(
        name=name,
        description=f"{description} Nothing is changed.",
        tags={POOL_TAG: Pool.MAINTENANCE},
        executor_def=dg.in_process_executor,
    )


def _run(
    context: dg.OpExecutionContext,
    settings: Settings,
    operation: str,
    config: CommitsConfig | DepthConfig,
    problems_of: Callable[[], list[str]],
) -> None:
    """Report and record what was found. Raises Failure where there is a problem, or where nothing can be compared."""
    try:
        problems = problems_of()
        outcome = f"{len(problems)} problems, such as {problems[0]}" if problems else "no problem"
    except (LakeError, UnknownTable) as error:
        problems, outcome = [str(error)], f"refused: {error}"
    audit_log.record(settings.home, operation, config.model_dump(), outcome, by=f"run {context.run_id}")
    for problem in problems[:_SHOWN]:
        context.log.error(problem)
    if problems:
        raise dg.Failure(outcome, metadata={"problems": problems[:_SHOWN]}, allow_retries=False)
    context.add_output_metadata({"outcome": outcome})
