"""Restoring rows of a table: what a commit should have written takes the place of what the table holds of it.

The restoration is not a commit of the platform: like a compaction it has no manifest and moves no progress. Its
metadata names what it restores, so that it is not taken for a writer that bypasses the platform (`lake.bypasses`).
Consumers that read the damaged rows are found, and restored, by the same comparison with their own inputs.
"""

from typing import Any

import pyarrow as pa

from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

RESTORED = "sda restoration of rows where "
"""How the metadata of a restoration begins."""


def restore_rows(lake: Lake, table: Table, sequence: int, rows: pa.Table) -> None:
    """Make ``rows`` the rows that the commit ``sequence`` of ``table`` has; on disk on return.

    The caller excludes other writers.
    """
    _overwrite(lake, table, rows, f"{COMMIT_SEQUENCE} = {sequence}")


def remove_strays(lake: Lake, table: Table, last_sequence: int) -> None:
    """Remove the rows of ``table`` that no commit up to ``last_sequence``, its newest, can have written."""
    where = f"{COMMIT_SEQUENCE} < 1 OR {COMMIT_SEQUENCE} > {last_sequence} OR {COMMIT_SEQUENCE} IS NULL"
    _overwrite(lake, table, table.arrow_schema.empty_table(), where)


def overwrite_with_spark(rows: Any, uri: str, where: str) -> None:
    """Put ``rows``, a DataFrame, in the place of those of the table at ``uri`` that ``where`` (SQL) selects."""
    write = rows.write.format("delta").mode("overwrite").option("replaceWhere", where)
    write.option("userMetadata", f"{RESTORED}{where}").save(uri)


def _overwrite(lake: Lake, table: Table, rows: pa.Table, where: str) -> None:
    try:
        overwrite_with_spark(lake.frame(table, rows, stamped=True), lake.log(table).uri, where)
    finally:
        lake.clear_staging()
    lake.head(table)
