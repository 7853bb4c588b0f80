"""Restoring rows of a table: what a commit should have written takes the place of what the table holds of it.

The restoration is not a commit of the platform: like a compaction it has no manifest and moves no progress. Its
metadata names what it restores, so that it is not taken for a writer that bypasses the platform (`lake.bypasses`).
Consumers that read the damaged rows are found, and restored, by the same comparison with their own inputs.
"""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable

from sda_platform import failpoints
from sda_platform.lake import durable
from sda_platform.lake.lake import Lake
from sda_platform.lake.object_store import delta_options
from sda_platform.lake.storage import location
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

RESTORED = "sda restoration of rows "
"""How the metadata of a restoration begins."""

_DAMAGED: Final = "_damaged"


def restore_rows(lake: Lake, table: Table, sequence: int, rows: pa.Table) -> None:
    """Make ``rows`` the rows that the commit ``sequence`` of ``table`` has; on disk on return.

    The caller excludes other writers.
    """
    _overwrite(lake, table, rows, f"{COMMIT_SEQUENCE} = {sequence}")


def remove_strays(lake: Lake, table: Table, last_sequence: int) -> None:
    """Remove the rows of ``table`` that no commit up to ``last_sequence``, its newest, can have written."""
    where = f"{COMMIT_SEQUENCE} < 1 OR {COMMIT_SEQUENCE} > {last_sequence} OR {COMMIT_SEQUENCE} IS NULL"
    _overwrite(lake, table, table.arrow_schema.empty_table(), where)


def restore_files(lake: Lake, table: Table, damaged: Sequence[str], rows: pa.Table) -> None:
    """Let ``rows``, which only the ``damaged`` data files of ``table`` had, take the place of these files.

    The rows are added first: until the log no longer names the files, the table is damaged, and the restoration is
    repeated. What is left of the files is set aside. The caller excludes other writers.
    """
    log = lake.log(table)
    try:
        if rows.num_rows:
            append_with_spark(lake.frame(table, rows, stamped=True), log.uri)
    finally:
        lake.clear_staging()
    failpoints.hit("restoration.rows_added", table.name)
    place = location(log.uri) / _DAMAGED
    for name in damaged:
        source = location(log.uri) / name
        if source.exists():
            durable.make_directory(place)
            source.rename(place / source.name)
            durable.sync([place, source.parent])
    failpoints.hit("restoration.files_set_aside", table.name)
    restored = {"userMetadata": f"{RESTORED}of {len(damaged)} lost data files"}
    stored = DeltaTable(log.uri, storage_options=delta_options(log.uri))
    stored.repair(commit_properties=CommitProperties(custom_metadata=restored))
    lake.head(table)


def append_with_spark(rows: Any, uri: str) -> None:
    """Add ``rows``, a DataFrame, to the table at ``uri``."""
    rows.write.format("delta").mode("append").option("userMetadata", f"{RESTORED}of lost data files").save(uri)


def overwrite_with_spark(rows: Any, uri: str, where: str) -> None:
    """Put ``rows``, a DataFrame, in the place of those of the table at ``uri`` that ``where`` (SQL) selects."""
    write = rows.write.format("delta").mode("overwrite").option("replaceWhere", where)
    write.option("userMetadata", f"{RESTORED}where {where}").save(uri)


def _overwrite(lake: Lake, table: Table, rows: pa.Table, where: str) -> None:
    try:
        overwrite_with_spark(lake.frame(table, rows, stamped=True), lake.log(table).uri, where)
    finally:
        lake.clear_staging()
    lake.head(table)
