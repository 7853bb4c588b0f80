"""Is the encoding that the profile gives each column of compacted files the smallest that the engine reads?

    python benchmarks/encodings.py LAKE [TABLE ...]        of a lake with data, such as ~/.sda/lake of a demo

Rows of the latest week of each table are written with each encoding that a column's type allows, compressed like the
files of the table. Fails where another encoding would save 5 % of a table. The peer is the form that the lake replaces:
gzipped JSON lines of the same rows without nulls (DL1-I9, DL1-A7); a table must not be larger.
"""

import argparse
import gzip
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from rich.console import Console

from sda_platform.clock import MissionClock
from sda_platform.history.parquet_profile import encoding_of
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.log import TableLog
from sda_platform.lake.merge_process import Encoding
from sda_platform.lake.table import Column, Table
from sda_platform.registry import tables_named
from sda_platform_tests.support.parquet_encodings import UNREADABLE, candidates, write_encoded

console = Console(highlight=False, soft_wrap=True)
SAMPLE_ROWS = 50_000
JUDGED_FROM_ROWS = 1_000
"""Of fewer rows, headers and dictionaries weigh more than values."""
MOST_LOSS = 0.05
_WEEK_MS = 7 * 86_400_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and fail where the profile is not the best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lake")
    parser.add_argument("tables", nargs="*", default=["all"])
    chosen = parser.parse_args(arguments)
    lake = Lake(chosen.lake, MissionClock(0, 0, 0.0), without_session)
    tables = [table for name in chosen.tables for table in tables_named(name)]
    problems = [problem for table in tables for problem in audited(table, sampled(lake.log(table)))]
    for problem in problems:
        console.print(problem)
    return 1 if problems else 0


def sampled(log: TableLog) -> pa.Table:
    """At most `SAMPLE_ROWS` rows of the commits of the table's latest week."""
    commits = log.commits(None)
    if not commits:
        return log.table.arrow_schema.empty_table()
    newest = max(commits, key=lambda commit: commit.sequence)
    week = [commit.sequence for commit in commits if commit.timestamp_ms > newest.timestamp_ms - _WEEK_MS]
    return log.some_rows_of((min(week) - 1, newest.sequence), SAMPLE_ROWS)


def audited(table: Table, rows: pa.Table) -> Iterator[str]:
    """Print the sizes of ``rows``, and give what is not as it should be."""
    if rows.num_rows < JUDGED_FROM_ROWS:
        return
    profile = {column.name: encoding_of(table, column) for column in table.columns}
    by_profile, by_default, as_json = stored_bytes(rows, profile), stored_bytes(rows, {}), json_lines_bytes(rows)
    console.print(
        f"{table.name}: {rows.num_rows:,} rows, KB by the profile {by_profile / 1e3:,.1f}, by the writer's defaults "
        f"{by_default / 1e3:,.1f}, as gzipped JSON lines {as_json / 1e3:,.1f} ({as_json / by_profile:.1f} times)"
    )
    if as_json < by_profile:
        yield f"{table.name}: gzipped JSON lines would be {as_json / by_profile:.0%} of its size"
    for column in table.columns:
        sizes = _sizes(rows, column)
        if sizes:
            best = min(sizes, key=lambda each: sizes[each])
            loss = (sizes[profile[column.name]] - sizes[best]) / by_profile
            if loss > MOST_LOSS:
                yield f"{table.name}.{column.name}: {best} would save {loss:.0%} of the table"


def _sizes(rows: pa.Table, column: Column) -> dict[Encoding, int]:
    """Bytes of a column alone with each encoding that its type allows and the engine reads."""
    alone = rows.select([column.name])
    return {
        encoding: stored_bytes(alone, {column.name: encoding})
        for encoding in candidates(column)
        if encoding not in UNREADABLE
    }


def stored_bytes(rows: pa.Table, encodings: Mapping[str, Encoding]) -> int:
    """Bytes of a Parquet file of ``rows``; a column without an encoding has a dictionary, as by default."""
    stream = io.BytesIO()
    write_encoded(rows, stream, encodings)
    return stream.tell()


def json_lines_bytes(rows: pa.Table) -> int:
    """Bytes of the same rows as gzipped JSON lines; nulls are left out, bytes are hexadecimal."""
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=6, mtime=0) as lines:
        for batch in rows.to_batches(max_chunksize=8_192):
            for row in batch.to_pylist():
                present = {name: value for name, value in row.items() if value is not None}
                lines.write(json.dumps(present, default=bytes.hex, separators=(",", ":")).encode() + b"\n")
    return stream.tell()


if __name__ == "__main__":
    sys.exit(main())
