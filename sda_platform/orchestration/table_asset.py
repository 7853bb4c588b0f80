"""How a table appears in Dagster: its definition, and the metadata of its materializations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa

from sda_platform.clock import iso
from sda_platform.foreign_text import in_markdown
from sda_platform.lake.commit import CommitReceipt
from sda_platform.lake.lake import Lake
from sda_platform.lake.number_rules import FINITE
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE, Column, Table
from sda_platform.orchestration.jobs import Job
from sda_platform.orchestration.retries import with_retries
from sda_platform.orchestration.step_order import at_priority
from sda_platform.orchestration.zone_asset import zone_key
from sda_platform.replay.history import History

PREVIEW_ROWS = 5
# The UI shows Markdown that is shorter than this in place, and a link instead of what is longer.
_SHOWN_IN_PLACE = 1000
_PREVIEW_WIDTH = 22
_SAME_IN_A_COMMIT = {COMMIT_SEQUENCE, "as_of_ns"}
_ID_WIDTH = 8
_UUID_LENGTH = 36
_SIGNS = {
    "greater_than_or_equal_to": "≥",
    "greater_than": ">",
    "less_than_or_equal_to": "≤",
    "less_than": "<",
}

AssetBody = Callable[..., dg.MaterializeResult[Any]]
# The resources that take the place of an asset's own in a replay: given those, the live lake, what is replayed and a
# scratch directory.
StandIns = Callable[[Mapping[str, Any], Lake, History, Path], Mapping[str, Any]]


@dataclass(frozen=True)
class TableAsset:
    """How a table is materialized."""

    table: Table
    jobs: tuple[Job, ...]
    body: AssetBody
    stand_ins: StandIns | None = None


DECLARED: dict[str, TableAsset] = {}
"""Every declared table asset, by the table's name."""


def table_asset(
    table: Table, *, jobs: Sequence[Job], priority: int = 0, stand_ins: StandIns | None = None
) -> Callable[[AssetBody], dg.AssetsDefinition]:
    """Declare the asset that writes ``table``; the docstring of the body is its description in the UI.

    ``jobs`` materialize it; the first serves it: when commits of its inputs are unconsumed, that job is started. Its
    dependencies are the inputs that the table declares. ``priority`` orders independent assets of one run (higher
    first). An asset that reaches other systems declares the ``stand_ins`` with which a replay reaches none.
    """
    pools = {job.pool for job in jobs}

    def declare(body: AssetBody) -> dg.AssetsDefinition:
        DECLARED[table.name] = TableAsset(table, tuple(jobs), body, stand_ins)
        return dg.asset(
            name=table.name,
            group_name=table.group,
            deps=[*map(zone_key, table.zones), *(source.name for source in (*table.consumes, *table.reads))],
            # An asset of several jobs takes the pool of the run that it is part of.
            pool=pools.pop() if len(pools) == 1 else None,
            op_tags=at_priority(priority),
            metadata={"dagster/column_schema": column_schema(table), "dagster/table_name": f"lake.{table.name}"},
        )(with_retries(table.name, body))

    return declare


def declared(table: Table) -> TableAsset:
    """How ``table`` is materialized; calling the body directly bypasses the retry policy."""
    return DECLARED[table.name]


def tables_of(job: Job) -> tuple[Table, ...]:
    """The tables that ``job`` materializes."""
    return tuple(each.table for each in DECLARED.values() if job in each.jobs)


def jobs_of(table: Table) -> tuple[Job, ...]:
    """The jobs that materialize ``table``."""
    return DECLARED[table.name].jobs


def zones_of(job: Job) -> tuple[str, ...]:
    """The landing zones that a run of ``job`` empties."""
    return tuple(feed for table in tables_of(job) for feed in table.zones)


def served_by(job: Job) -> tuple[Table, ...]:
    """The tables that ``job`` brings up to date when commits of their inputs are unconsumed."""
    return tuple(each.table for each in DECLARED.values() if each.jobs[0] == job)


def materialized(lake: Lake, receipt: CommitReceipt, **facts: Any) -> dg.MaterializeResult[Any]:
    """The metadata of a commit: counts, the consumed window, identity, preview, and the caller's own ``facts``."""
    table, plan = receipt.plan.table, receipt.plan
    metadata: dict[str, Any] = {
        "dagster/row_count": lake.log(table).row_count(),
        "dagster/column_lineage": column_lineage(table),
        "rows_written": receipt.rows_written,
        "commit_sequence": plan.sequence,
        "delta_version": receipt.commit.version,
        "as_of_mission_time": iso(plan.as_of_ns),
        "code_version": receipt.commit.manifest.code_version,
        "consumed": dg.MetadataValue.md(_consumed(plan)),
        "preview": dg.MetadataValue.md(_preview(lake, table, plan.sequence)),
        **facts,
    }
    return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(str(plan.sequence)))


def nothing_new(
    lake: Lake, plan: Plan, reason: str = "nothing new upstream", /, **facts: Any
) -> dg.MaterializeResult[Any]:
    """The result of a plan that found nothing to consume: no commit, the reason, and a preview of the last commit.

    The UI shows the newest result only, so this result also shows the table's rows and the lineage of its columns.
    """
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": lake.log(plan.table).row_count(),
            "dagster/column_lineage": column_lineage(plan.table),
            "rows_written": 0,
            "commit_sequence": plan.sequence - 1,
            "as_of_mission_time": iso(plan.as_of_ns),
            "consumed": reason,
            "preview": dg.MetadataValue.md(_preview(lake, plan.table, plan.sequence - 1)),
            **facts,
        },
        data_version=dg.DataVersion(str(plan.sequence - 1)),
    )


def column_schema(table: Table) -> dg.TableSchema:
    """The table's columns for the UI, units in the description."""
    return dg.TableSchema(columns=[_column(column) for column in table.columns])


def column_lineage(table: Table) -> dg.TableColumnLineage:
    """Which upstream columns each column comes from."""
    deps: Mapping[str, list[dg.TableColumnDep]] = {
        name: [dg.TableColumnDep(dg.AssetKey(source), column) for source, column in sources]
        for name, sources in table.lineage.items()
    }
    return dg.TableColumnLineage(deps_by_column=deps)


def _column(column: Column) -> dg.TableColumn:
    unit = f" [{column.unit}]" if column.unit else ""
    return dg.TableColumn(
        column.name,
        column.data_type.simpleString(),
        description=column.description + unit,
        constraints=dg.TableColumnConstraints(
            nullable=column.nullable, other=[_rule(rule) for rule in column.rules if rule is not FINITE]
        ),
    )


def _rule(rule: Any) -> str:
    """A pandera check as a person writes it: ≥ 0; insert or retract."""
    bounds = list((rule.statistics or {}).values())
    if rule.name == "isin":
        return " or ".join(map(str, bounds[0]))
    if rule.name in _SIGNS:
        return f"{_SIGNS[rule.name]} {bounds[0]:.6g}"
    return str(rule.error)


def _consumed(plan: Plan) -> str:
    lines = [f"- {window}" for window in plan.windows]
    lines += [f"- {s.table} as of v{s.version}" for s in plan.snapshots]
    lines += [f"- {s.zone}/{s.name}: {s.defect or f'{s.records} records'}" for s in plan.segments[:20]]
    if len(plan.segments) > 20:
        lines.append(f"- and {len(plan.segments) - 20} more segments")
    return "\n".join(lines) or "nothing"


def _preview(lake: Lake, table: Table, sequence: int) -> str:
    rows = lake.log(table).some_rows_of((sequence - 1, sequence), PREVIEW_ROWS)
    return markdown_table(rows) if rows.num_rows else "no rows"


def markdown_table(rows: pa.Table) -> str:
    """``rows`` as a Markdown table: at least one of them, and no more than the UI shows in place.

    Instants are written in ISO 8601, ids as the prefix that `sda alert trace` accepts, and long cells are cut. Omitted
    are columns without a value, and columns that are equal for the commit and are in its metadata.
    """
    shown = [name for name in rows.column_names if name not in _SAME_IN_A_COMMIT]
    names = [name for name in shown if rows.column(name).null_count < rows.num_rows]
    text = "| " + " | ".join(names) + " |\n|" + "---|" * len(names)
    for number, row in enumerate(rows.select(names).to_pylist()):
        line = "\n| " + " | ".join(_cell(name, row[name]) for name in names) + " |"
        if number and len(text) + len(line) >= _SHOWN_IN_PLACE:
            break
        text += line
    return text


def _cell(column: str, value: object) -> str:
    if isinstance(value, int) and column.endswith("_ns"):
        return iso(value).replace("T", " ")
    if isinstance(value, str) and len(value) == _UUID_LENGTH and "_id" in column:
        return value[:_ID_WIDTH]
    if value is None or isinstance(value, list):
        return "–" if value is None else f"{len(value)} values"
    text = value.hex() if isinstance(value, bytes) else f"{value:.6g}" if isinstance(value, float) else str(value)
    return in_markdown(text if len(text) <= _PREVIEW_WIDTH else text[: _PREVIEW_WIDTH - 1] + "…")
