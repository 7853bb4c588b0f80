"""How a table lies on disk, by the footers of its data files: sizes, row groups, codecs and encodings of columns."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow.parquet as pq

from sda_platform.lake import delta_log
from sda_platform.lake.log import TableLog

HEALTHY_BYTES = (64 * 2**20, 512 * 2**20)
"""Sizes of data files that neither planning nor decoding suffers from."""


@dataclass
class ColumnLayout:
    """One column over all files that were read; ``encodings`` as the footers name them, dictionary pages included."""

    name: str
    stored_bytes: int = 0
    plain_bytes: int = 0
    encodings: set[str] = field(default_factory=set)
    codecs: set[str] = field(default_factory=set)

    @property
    def ratio(self) -> float:
        """Encoded bytes over compressed bytes."""
        return self.plain_bytes / self.stored_bytes if self.stored_bytes else 1.0


@dataclass(frozen=True)
class TableLayout:
    """The live files of a table: counts and bytes of all, and what the footers of the ``read`` largest say."""

    table: str
    files: int
    rows: int
    size_bytes: int
    small: int
    healthy: int
    large: int
    read: int
    row_groups: int
    columns: Sequence[ColumnLayout]


def table_layout(log: TableLog, most_files: int = 20) -> TableLayout:
    """Return the layout of a table; footers are read of its ``most_files`` largest files."""
    live = log.live_files().sort_by([("size_bytes", "descending")])
    sizes = live.column("size_bytes").to_pylist()
    directory = delta_log.table_directory(log.uri)
    columns: dict[str, ColumnLayout] = {}
    groups = 0
    chosen = live.column("path").to_pylist()[:most_files]
    for path in chosen:
        with (directory / path).open("rb") as stream:
            footer = pq.ParquetFile(stream).metadata
            groups += footer.num_row_groups
            for number in range(footer.num_row_groups):
                _add(columns, footer.row_group(number))
    kinds = Counter("small" if s < HEALTHY_BYTES[0] else "large" if s > HEALTHY_BYTES[1] else "healthy" for s in sizes)
    return TableLayout(
        log.table.name,
        len(sizes),
        log.row_count(),
        sum(sizes),
        kinds["small"],
        kinds["healthy"],
        kinds["large"],
        len(chosen),
        groups,
        sorted(columns.values(), key=lambda each: -each.stored_bytes),
    )


def _add(columns: dict[str, ColumnLayout], group: pq.RowGroupMetaData) -> None:
    for number in range(group.num_columns):
        chunk = group.column(number)
        name = chunk.path_in_schema.partition(".")[0]
        each = columns.setdefault(name, ColumnLayout(name))
        each.stored_bytes += chunk.total_compressed_size
        each.plain_bytes += chunk.total_uncompressed_size
        each.encodings |= set(chunk.encodings)
        each.codecs.add(chunk.compression)
