"""Audit of encodings: rows of the latest week, written with each encoding that a column's type allows, and measured.

A choice of the profile is judged against the smallest that the pinned engine reads. All candidates are compressed like
the files of the table. The baseline is the form that the archive replaces: gzipped JSON lines of the same rows, without
nulls (DL1-I9, DL1-A7).
"""

import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sda_platform.archive.footers import TableLayout, table_layout
from sda_platform.archive.parquet_profile import CODEC, CODEC_LEVEL, UNREADABLE, candidates, encoding_of
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.merge_process import Encoding
from sda_platform.lake.table import Column, Table

SAMPLE_ROWS = 50_000
JUDGED_FROM_ROWS = 1_000
"""Of fewer rows, headers and dictionaries weigh more than values."""
MOST_LOSS = 0.05
"""What a choice may cost, as a share of its table, before the audit reports it."""
LEAST_GAIN = 1.0
"""Bytes of gzipped JSON lines over those of the profile, for the same rows. The criterion's five times needs numbers of
few digits or many nulls; `docs/reference/storage.md` has what tables reach."""
_WEEK_MS = 7 * 86_400_000


@dataclass(frozen=True)
class ColumnAudit:
    """One column: the profile's choice, and the bytes of the sampled rows with each encoding."""

    name: str
    chosen: Encoding
    sizes: Mapping[Encoding, int]

    @property
    def best(self) -> Encoding:
        """The encoding of the fewest bytes among those that the engine reads."""
        return min((each for each in self.sizes if each not in UNREADABLE), key=lambda each: self.sizes[each])

    @property
    def loss_bytes(self) -> int:
        """What the profile's choice costs beyond the best."""
        return self.sizes[self.chosen] - self.sizes[self.best]


@dataclass(frozen=True)
class TableAudit:
    """A table: sampled rows, and their bytes by the profile, by the writer's defaults, and as gzipped JSON lines."""

    table: str
    rows: int
    columns: Sequence[ColumnAudit]
    profile_bytes: int
    default_bytes: int
    json_bytes: int
    layout: TableLayout = field(repr=False)

    @property
    def gain(self) -> float:
        """How many times smaller than gzipped JSON lines."""
        return self.json_bytes / self.profile_bytes

    @property
    def choice_problems(self) -> list[str]:
        """Columns whose encoding is no longer the best, where that matters."""
        if self.rows < JUDGED_FROM_ROWS:
            return []
        return [
            f"{self.table}.{each.name}: {each.best} would take {each.loss_bytes / self.profile_bytes:.0%} of the table "
            f"less than {each.chosen}"
            for each in self.columns
            if each.loss_bytes > MOST_LOSS * self.profile_bytes
        ]

    @property
    def gain_problems(self) -> list[str]:
        """Whether the table is not much smaller than gzipped JSON lines."""
        if self.rows < JUDGED_FROM_ROWS or self.gain >= LEAST_GAIN:
            return []
        return [f"{self.table}: gzipped JSON lines would be {self.gain:.0%} of its size"]

    @property
    def reading_problems(self) -> list[str]:
        """Columns whose stored files have an encoding that the engine does not read."""
        return [f"{self.table}.{c.name}: {', '.join(found)}" for c in self.layout.columns
                if (found := sorted(c.encodings & UNREADABLE))]  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        columns = [{"name": c.name, "chosen": c.chosen, "best": c.best, "bytes": c.sizes} for c in self.columns]
        return {
            "table": self.table, "rows": self.rows, "profile_bytes": self.profile_bytes,
            "default_bytes": self.default_bytes, "gzipped_json_lines_bytes": self.json_bytes, "gain": self.gain,
            "columns": columns,
            "problems": [*self.choice_problems, *self.gain_problems, *self.reading_problems],
        }  # fmt: skip


def audit_encodings(lake: Lake, tables: Iterable[Table]) -> Iterator[TableAudit]:
    """Audit each table that has rows of its latest week."""
    for table in tables:
        log = lake.log(table)
        if (rows := sampled(log)).num_rows:
            yield audit_rows(table, rows, table_layout(log))


def sampled(log: TableLog) -> pa.Table:
    """At most `SAMPLE_ROWS` rows of the commits of the table's latest week."""
    commits = log.commits(None)
    if not commits:
        return log.table.arrow_schema.empty_table()
    newest = max(commits, key=lambda commit: commit.sequence)
    week = [commit.sequence for commit in commits if commit.timestamp_ms > newest.timestamp_ms - _WEEK_MS]
    return log.some_rows_of((min(week) - 1, newest.sequence), SAMPLE_ROWS)


def audit_rows(table: Table, rows: pa.Table, layout: TableLayout) -> TableAudit:
    """Measure ``rows``, which have the columns of ``table``."""
    chosen = {column.name: encoding_of(table, column) for column in table.columns}
    return TableAudit(
        table.name,
        rows.num_rows,
        [_audited(rows, column, chosen[column.name]) for column in table.columns if candidates(column)],
        stored_bytes(rows, chosen),
        stored_bytes(rows, {}),
        json_lines_bytes(rows),
        layout,
    )


def stored_bytes(rows: pa.Table, encodings: Mapping[str, Encoding]) -> int:
    """Bytes of a Parquet file of ``rows``; a column without an encoding has a dictionary, as by default."""
    stream = io.BytesIO()
    write_encoded(rows, stream, encodings)
    return stream.tell()


def write_encoded(rows: pa.Table, to: str | io.BytesIO, encodings: Mapping[str, Encoding]) -> None:
    """Write a Parquet file of ``rows`` with these encodings of columns, compressed as the files of tables are."""
    others = {name: each for name, each in encodings.items() if each != "DICTIONARY"}
    pq.write_table(
        rows,
        to,
        compression=CODEC,
        compression_level=CODEC_LEVEL,
        use_dictionary=[_path(column) for column in rows.schema if column.name not in others],
        column_encoding=others or None,
        data_page_version="2.0",
        store_schema=False,
    )


def json_lines_bytes(rows: pa.Table) -> int:
    """Bytes of the same rows as gzipped JSON lines; nulls are left out, bytes are hexadecimal."""
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=6, mtime=0) as lines:
        for batch in rows.to_batches(max_chunksize=8_192):
            for row in batch.to_pylist():
                present = {name: value for name, value in row.items() if value is not None}
                lines.write(json.dumps(present, default=bytes.hex, separators=(",", ":")).encode() + b"\n")
    return stream.tell()


def _path(column: pa.Field) -> str:
    """The path of a column's values in a Parquet schema."""
    return f"{column.name}.list.element" if pa.types.is_list(column.type) else str(column.name)


def _audited(rows: pa.Table, column: Column, chosen: Encoding) -> ColumnAudit:
    alone = rows.select([column.name])
    sizes = {encoding: stored_bytes(alone, {column.name: encoding}) for encoding in candidates(column)}
    return ColumnAudit(column.name, chosen, sizes)
