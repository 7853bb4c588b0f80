"""What Dagster shows of a table: its columns, and the metadata of its materializations."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any

import dagster as dg
import pyarrow as pa

from sda_platform import markdown_elements
from sda_platform.clock import iso
from sda_platform.foreign_text import Markdown, in_markdown
from sda_platform.lake.commit import CommitReceipt
from sda_platform.lake.lake import Lake
from sda_platform.lake.number_rules import FINITE
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE, Column, Table
from sda_platform.published import CATALOGUE, url_of

PREVIEW_ROWS = 5
# The UI shows Markdown that is shorter than this in place, and a link instead of what is longer.
_SHOWN_IN_PLACE = 1000
_PREVIEW_WIDTH = 22
LONGEST_OUTCOME = 1_000
_SAME_IN_A_COMMIT = {COMMIT_SEQUENCE, "as_of_ns"}
_ID_WIDTH = 8
_UUID_LENGTH = 36
_NO_ROWS = in_markdown("no rows")
_SIGNS = {
    "greater_than_or_equal_to": "≥",
    "greater_than": ">",
    "less_than_or_equal_to": "≤",
    "less_than": "<",
}


def in_ui(text: Markdown) -> dg.MarkdownMetadataValue:
    """Return what Dagster's UI renders: only Markdown, whose parts from outside are escaped."""
    return dg.MetadataValue.md(text)


def outcome_text(text: str) -> Markdown | None:
    """Return a check's description, which the UI renders as Markdown: cut at a word after 1,000 characters."""
    return in_markdown(shorten(text, LONGEST_OUTCOME, placeholder=" …")) or None


def shown_table(rows: list[dict[str, Any]]) -> dg.MarkdownMetadataValue:
    """Return rows, at least one, as a table in the UI."""
    return in_ui(markdown_table(pa.Table.from_pylist(rows)))


def with_console(result: dg.MaterializeResult[Any], home: str, path: str) -> dg.MaterializeResult[Any]:
    """Add a link to the page ``path`` of the console, while the catalogue of ``home`` is served."""
    url = url_of(Path(home), CATALOGUE)
    if url is None:
        return result
    return result._replace(metadata={"console": dg.MetadataValue.url(f"{url}/{path}"), **(result.metadata or {})})


def materialized(lake: Lake, receipt: CommitReceipt, **facts: Any) -> dg.MaterializeResult[Any]:
    """Return the metadata of a commit: counts, the consumed window, identity, preview, and the caller's own
    ``facts``.
    """
    table, plan = receipt.plan.table, receipt.plan
    metadata: dict[str, Any] = {
        "dagster/row_count": lake.log(table).row_count(),
        "dagster/column_lineage": column_lineage(table),
        "rows_written": receipt.rows_written,
        "commit_sequence": plan.sequence,
        "delta_version": receipt.commit.version,
        "as_of_mission_time": iso(plan.as_of_ns),
        "code_version": receipt.commit.manifest.code_version,
        "consumed": in_ui(_consumed(plan)),
        "preview": in_ui(_preview(lake, table, plan.sequence)),
        **facts,
    }
    return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(str(plan.sequence)))


def nothing_new(
    lake: Lake, plan: Plan, reason: str = "nothing new upstream", /, **facts: Any
) -> dg.MaterializeResult[Any]:
    """Return the result of a plan that found nothing to consume: no commit, the reason, and a preview of the last
    commit.

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
            "preview": in_ui(_preview(lake, plan.table, plan.sequence - 1)),
            **facts,
        },
        data_version=dg.DataVersion(str(plan.sequence - 1)),
    )


def column_schema(table: Table) -> dg.TableSchema:
    """Return the table's columns for the UI, units in the description."""
    return dg.TableSchema(columns=[_column(column) for column in table.columns])


def code_reference(function: Callable[..., object]) -> dg.CodeReferencesMetadataValue:
    """Return where ``function`` is written: the page of its asset has a link that opens it in an editor."""
    written = function.__code__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        place = dg.LocalFileCodeReference(file_path=written.co_filename, line_number=written.co_firstlineno)
        return dg.CodeReferencesMetadataValue(code_references=[place])


def column_lineage(table: Table) -> dg.TableColumnLineage:
    """Return which upstream columns each column comes from."""
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


def _consumed(plan: Plan) -> Markdown:
    lines = [str(window) for window in plan.windows]
    lines += [f"{s.table} as of v{s.version}" for s in plan.snapshots]
    lines += [f"{s.zone}/{s.name}: {s.defect or f'{s.records} records'}" for s in plan.segments[:20]]
    if len(plan.segments) > 20:
        lines.append(f"and {len(plan.segments) - 20} more segments")
    return markdown_elements.bullets(lines)


def _preview(lake: Lake, table: Table, sequence: int) -> Markdown:
    rows = lake.log(table).some_rows_of((sequence - 1, sequence), PREVIEW_ROWS)
    return markdown_table(rows) if rows.num_rows else _NO_ROWS


def markdown_table(rows: pa.Table) -> Markdown:
    """``rows`` as a Markdown table: at least one of them, and no more than the UI shows in place.

    Instants are written in ISO 8601, ids as the prefix that `sda alert trace` accepts, and long cells are cut. Omitted
    are columns without a value, and columns that are equal for the commit and are in its metadata.
    """
    shown = [name for name in rows.column_names if name not in _SAME_IN_A_COMMIT]
    names = [name for name in shown if rows.column(name).null_count < rows.num_rows]
    cells, length = list[list[str]](), len(markdown_elements.table(names, ()))
    for row in rows.select(names).to_pylist():
        found = [_cell(name, row[name]) for name in names]
        length += len(markdown_elements.line(found)) + 1
        if cells and length >= _SHOWN_IN_PLACE:
            break
        cells.append(found)
    return markdown_elements.table(names, cells)


def _cell(column: str, value: object) -> str:
    if isinstance(value, int) and column.endswith("_ns"):
        return iso(value).replace("T", " ")
    if isinstance(value, str) and len(value) == _UUID_LENGTH and "_id" in column:
        return value[:_ID_WIDTH]
    if value is None or isinstance(value, list):
        return "–" if value is None else f"{len(value)} values"
    text = value.hex() if isinstance(value, bytes) else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _PREVIEW_WIDTH else text[: _PREVIEW_WIDTH - 1] + "…"
