"""The audit of encodings in Dagster: measured sizes, the footers of all tables, and a check of each rule."""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from sda_platform.archive.encoding_audit import TableAudit, audit_encodings
from sda_platform.archive.report_asset import report_asset
from sda_platform.lake.table import Table
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.warning import warning

KEY = dg.AssetKey(["archive", "encoding_audit"])
_CHECKS = {
    "encodings_are_best": "No column would save 5 % of its table with another encoding that the engine reads.",
    "engine_reads_encodings": "No data file has an encoding that the pinned Spark does not read.",
    "smaller_than_json_lines": "No table is larger than gzipped JSON lines of the same rows.",
}


def encoding_asset(tables: Sequence[Table], group: str) -> dg.AssetsDefinition:
    """The asset over ``tables``; it reads rows of the latest week, and footers."""

    @report_asset(
        KEY,
        group,
        checks=_CHECKS,
        description="Rows of the latest week of each table, written with each encoding that a column's type allows, "
        "and what the footers of the stored files say. `sda layout TABLE --encodings` shows the same.",
    )
    def archive_encoding_audit(lake: LakeResource) -> Iterator[dg.MaterializeResult[Any]]:
        audited = list(audit_encodings(lake.open(), tables))
        yield dg.MaterializeResult(
            metadata={
                "tables": dg.MetadataValue.md(_tables(audited)),
                "columns": dg.MetadataValue.md(_columns(audited)),
                "footers": dg.MetadataValue.md(_footers(audited)),
                "rows": sum(each.rows for each in audited),
            },
            check_results=[
                warning([line for each in audited for line in each.choice_problems], name="encodings_are_best"),
                warning([line for each in audited for line in each.reading_problems], name="engine_reads_encodings"),
                warning([line for each in audited for line in each.gain_problems], name="smaller_than_json_lines"),
            ],
        )

    return archive_encoding_audit


def _tables(audited: Sequence[TableAudit]) -> str:
    lines = [
        "| table | rows | KB, profile | KB, defaults | KB, gzipped JSON lines | gain |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for each in audited:
        sizes = " | ".join(f"{n / 1e3:,.1f}" for n in (each.profile_bytes, each.default_bytes, each.json_bytes))
        lines.append(f"| {each.table} | {each.rows:,} | {sizes} | {each.gain:.1f} |")
    return "\n".join(lines)


def _columns(audited: Sequence[TableAudit]) -> str:
    lines = ["| column | profile | best | loss, KB |", "|---|---|---|---:|"]
    for table in audited:
        for each in table.columns:
            if each.loss_bytes:
                loss = f"{each.loss_bytes / 1e3:,.1f}"
                lines.append(f"| {table.table}.{each.name} | {each.chosen} | {each.best} | {loss} |")
    return "\n".join(lines)


def _footers(audited: Sequence[TableAudit]) -> str:
    lines = ["| table | files read | row groups | codecs | encodings |", "|---|---:|---:|---|---|"]
    for each in audited:
        codecs = " ".join(sorted({codec for column in each.layout.columns for codec in column.codecs}))
        encodings = " ".join(sorted({name for column in each.layout.columns for name in column.encodings}))
        lines.append(f"| {each.table} | {each.layout.read} | {each.layout.row_groups} | {codecs} | {encodings} |")
    return "\n".join(lines)
