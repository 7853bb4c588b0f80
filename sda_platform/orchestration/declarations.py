"""How a table is declared: the asset that writes it, its landing zones and its checks, all in one place.

The platform's definitions contain whatever is declared in the `assets` modules of its packages.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from sda_platform.lake.lake import Lake
from sda_platform.lake.table import Table
from sda_platform.orchestration.freshness import nothing_waits
from sda_platform.orchestration.jobs import Job
from sda_platform.orchestration.materialization import code_reference, column_schema
from sda_platform.orchestration.retries import with_retries
from sda_platform.orchestration.step_order import at_priority
from sda_platform.orchestration.table_checks import DataFreshness, table_checks
from sda_platform.orchestration.zone_asset import zone_key
from sda_platform.recovery.review import Balance
from sda_platform.replay.history import History

AssetBody = Callable[..., dg.MaterializeResult[Any]]
# The resources that take the place of an asset's own in a replay: given those, the live lake, what is replayed and a
# scratch directory.
StandIns = Callable[[Mapping[str, Any], Lake, History, Path], Mapping[str, Any]]
_MOST_NAMES = 4
MAX_WAIT_S = 120.0
"""How long a commit may wait for the tables that consume it, where these do not say more."""


@dataclass(frozen=True)
class TableAsset:
    """How a table is materialized and judged."""

    table: Table
    jobs: tuple[Job, ...]
    body: AssetBody
    asset: dg.AssetsDefinition
    checks: tuple[dg.AssetChecksDefinition, ...]
    zones: tuple[dg.AssetSpec, ...] = ()
    """Its landing zones, which partners fill."""
    stand_ins: StandIns | None = None


DECLARED: dict[str, TableAsset] = {}
"""Every declared table asset, by the table's name."""


def table_asset(
    table: Table,
    *,
    jobs: Sequence[Job],
    freshness: DataFreshness | None = None,
    max_wait_s: float = MAX_WAIT_S,
    balance: Sequence[Balance] = (),
    zones: Sequence[dg.AssetSpec] = (),
    priority: int = 0,
    stand_ins: StandIns | None = None,
    written: Callable[..., object] | None = None,
) -> Callable[[AssetBody], dg.AssetsDefinition]:
    """Declare the asset that writes ``table``; the docstring of the body is its description in the UI.

    Args:
        table: its dependencies are the inputs and zones that it declares.
        jobs: materialize it. The first one serves it: when commits of its inputs are unconsumed, that job is started.
        freshness: how old its newest data may be; if it is not given, no commit of an input waits for ``max_wait_s``.
        balance: what it promises beyond chain, keys and contract, and beyond the balance of its landing zones.
        zones: its landing zones, as assets.
        priority: orders independent assets of one run (higher first).
        stand_ins: of an asset that reaches other systems, the resources with which a replay reaches none.
        written: the function that a reader looks for, where the body is made by another one.
    """
    pools = {job.pool for job in jobs}

    def declare(body: AssetBody) -> dg.AssetsDefinition:
        asset = dg.asset(
            name=table.name,
            group_name=table.group,
            deps=[*map(zone_key, table.zones), *(source.name for source in (*table.consumes, *table.reads))],
            # An asset of several jobs takes the pool of the run that it is part of.
            pool=pools.pop() if len(pools) == 1 else None,
            op_tags=at_priority(priority),
            metadata={
                "dagster/column_schema": column_schema(table),
                "dagster/table_name": f"lake.{table.name}",
                "dagster/code_references": code_reference(written or body),
            },
        )(with_retries(table.name, body))
        checks = table_checks(table, balance=balance, freshness=freshness or inputs_are_consumed(table, max_wait_s))
        DECLARED[table.name] = TableAsset(table, tuple(jobs), body, asset, tuple(checks), tuple(zones), stand_ins)
        return asset

    return declare


def inputs_are_consumed(table: Table, max_wait_s: float) -> DataFreshness:
    """Return the freshness of a table whose inputs are consumed soon."""
    names = [source.name for source in table.consumes]
    inputs = ", ".join(names) if len(names) <= _MOST_NAMES else f"its {len(names)} inputs"
    return DataFreshness(f"no commit of {inputs} waits", max_wait_s, nothing_waits)


def declared(table: Table) -> TableAsset:
    """Return how ``table`` is materialized; calling the body directly bypasses the retry policy."""
    return DECLARED[table.name]


def tables_of(job: Job) -> tuple[Table, ...]:
    """Return the tables that ``job`` materializes."""
    return tuple(each.table for each in DECLARED.values() if job in each.jobs)


def jobs_of(table: Table) -> tuple[Job, ...]:
    """Return the jobs that materialize ``table``."""
    return DECLARED[table.name].jobs


def zones_of(job: Job) -> tuple[str, ...]:
    """Return the landing zones that a run of ``job`` empties."""
    return tuple(feed for table in tables_of(job) for feed in table.zones)


def served_by(job: Job) -> tuple[Table, ...]:
    """Return the tables that ``job`` brings up to date when commits of their inputs are unconsumed."""
    return tuple(each.table for each in DECLARED.values() if each.jobs[0] == job)
