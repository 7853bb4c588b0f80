"""How much of a table its queries read: files and row groups that a planner keeps, and the sizes of files.

Rules (DL3). A table passes over files well if its queries keep at most 30 % of them on average. A file has a healthy
size from 64 to 512 MB. Tables that are small, or grow between two compactions, need stated exceptions:

- small files are allowed while they are at most 50, which is when the maintenance compacts, and fit in one file;
- the mean is judged from ten files on: of fewer, one file more or less decides.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sda_platform.archive.footers import HEALTHY_BYTES
from sda_platform.archive.lifecycle import POLICY
from sda_platform.archive.pruning import ROWS, Bounds, Kept, may_match
from sda_platform.archive.query_log import LoggedQuery, QueryLog, generated
from sda_platform.lake import delta_log
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.table import Table

MOST_MEAN_RATIO = 0.3
JUDGED_FROM_FILES = 10
ENOUGH_QUERIES = 100
"""Queries of a table; where fewer are recorded, generated ones are added."""
_MOST_FOOTERS = 1_000


@dataclass(frozen=True)
class Scan:
    """What one query keeps of a table; row groups are None where the table has too many files to open."""

    query: LoggedQuery
    files_total: int
    files_kept: int
    row_groups_total: int | None
    row_groups_kept: int | None

    @property
    def ratio(self) -> float:
        """Files kept over files."""
        return self.files_kept / self.files_total


@dataclass(frozen=True)
class LayoutJudgement:
    """A table under the queries of its log."""

    table: str
    sizes: Sequence[int]
    scans: Sequence[Scan] = field(repr=False)

    @property
    def mean_ratio(self) -> float:
        """Mean share of files that a query keeps."""
        return float(np.mean([scan.ratio for scan in self.scans])) if self.scans else 1.0

    @property
    def selective_share(self) -> float:
        """Share of queries that keep at most a tenth of the files."""
        return float(np.mean([scan.ratio <= 0.1 for scan in self.scans])) if self.scans else 0.0

    @property
    def row_group_ratio(self) -> float | None:
        """Mean share of row groups that a query keeps."""
        shares = [s.row_groups_kept / s.row_groups_total for s in self.scans if s.row_groups_kept is not None
                  and s.row_groups_total]  # fmt: skip
        return float(np.mean(shares)) if shares else None

    @property
    def recorded(self) -> int:
        """How many of its queries people ran."""
        return sum(scan.query.source == "recorded" for scan in self.scans)

    @property
    def problems(self) -> list[str]:
        """What breaks a rule, in words."""
        return [*self.size_problems, *self.ratio_problems]

    @property
    def size_problems(self) -> list[str]:
        """Which files have no healthy size."""
        least, most = HEALTHY_BYTES
        small, large = [s for s in self.sizes if s < least], [s for s in self.sizes if s > most]
        found = [f"{self.table}: {len(large)} files above {most >> 20} MB"] if large else []
        if len(small) > POLICY.small_files or sum(small) > most:
            found.append(
                f"{self.table}: {len(small)} files below {least >> 20} MB, together {sum(small) / 1e6:,.0f} MB"
            )
        return found

    @property
    def ratio_problems(self) -> list[str]:
        """Whether queries read too much."""
        if len(self.sizes) < JUDGED_FROM_FILES or self.mean_ratio <= MOST_MEAN_RATIO:
            return []
        return [f"{self.table}: queries keep {self.mean_ratio:.0%} of {len(self.sizes)} files on average"]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "table": self.table, "files": len(self.sizes), "size_bytes": sum(self.sizes), "queries": len(self.scans),
            "recorded_queries": self.recorded, "mean_files_ratio": self.mean_ratio,
            "share_of_queries_below_a_tenth": self.selective_share, "mean_row_groups_ratio": self.row_group_ratio,
            "problems": self.problems,
        }  # fmt: skip


def judge_layouts(lake: Lake, tables: Iterable[Table], queries: int = ENOUGH_QUERIES) -> Iterator[LayoutJudgement]:
    """Plan the recorded queries of each table that has files, and generated ones up to ``queries``."""
    recorded = QueryLog(lake.uri).read()
    for table in tables:
        log = lake.log(table)
        bounds = log.file_bounds()
        if not bounds.num_rows:
            continue
        own = [query for query in recorded if query.table == table.name]
        own += generated(table, bounds, max(queries - len(own), 0))
        yield LayoutJudgement(table.name, bounds.column("size_bytes").to_pylist(), list(plan(log, bounds, own)))


def plan(log: TableLog, bounds: Bounds, queries: Iterable[LoggedQuery]) -> Iterator[Scan]:
    """What each query keeps of the files with these ``bounds``, and of their row groups."""
    groups = row_group_bounds(log, bounds) if bounds.num_rows <= _MOST_FOOTERS else None
    for query in queries:
        files = may_match(bounds, query.predicate)
        kept = _kept_groups(groups, files, query) if groups is not None else None
        yield Scan(query, len(files), int(files.sum()), groups.num_rows if groups is not None else None, kept)


def row_group_bounds(log: TableLog, files: Bounds) -> Bounds:
    """The bounds of every row group in ``files``, by their footers; column ``file`` is the number of its file."""
    directory = delta_log.table_directory(log.uri)
    rows: list[dict[str, Any]] = []
    for number, path in enumerate(files.column("path").to_pylist()):
        with (directory / path).open("rb") as stream:
            footer = pq.ParquetFile(stream).metadata
        rows += [{"file": number, **_group(footer.row_group(n))} for n in range(footer.num_row_groups)]
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def _group(group: pq.RowGroupMetaData) -> dict[str, Any]:
    found: dict[str, Any] = {ROWS: group.num_rows}
    for number in range(group.num_columns):
        chunk = group.column(number)
        bounds = chunk.statistics
        if bounds is None or "." in chunk.path_in_schema or chunk.physical_type not in ("INT32", "INT64"):
            continue
        if bounds.has_null_count:
            found[f"null_count.{chunk.path_in_schema}"] = bounds.null_count
        if bounds.has_min_max:
            found |= {f"min.{chunk.path_in_schema}": bounds.min, f"max.{chunk.path_in_schema}": bounds.max}
    return found


def _kept_groups(groups: Bounds, files: Kept, query: LoggedQuery) -> int:
    return int((may_match(groups, query.predicate) & files[np.asarray(groups.column("file"))]).sum())
