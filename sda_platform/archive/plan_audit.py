"""What a Spark plan reads: filters of partitions and of data, what is left to the rows, files kept, and spilled bytes.

The plan is read as `explain` prints it, so it is the one that the engine executes. Files are those that Delta's
statistics keep. Spilled bytes are known after the execution, and only from Spark Connect.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

_SCAN = re.compile(r"FileScan parquet .*")
_FILTER = re.compile(r"Filter (\(.*)")
_SPILLED = "spillSize"
_COLUMN_ID = re.compile(r"#\d+L?")


@dataclass(frozen=True)
class ScanAudit:
    """One scan: the table's name in its location, and its filters as the plan prints them.

    ``data_filters`` pass over files and row groups by their bounds, ``pushed_filters`` are evaluated by the Parquet
    reader, ``partition_filters`` select directories.
    """

    table: str
    partition_filters: Sequence[str]
    data_filters: Sequence[str]
    pushed_filters: Sequence[str]


@dataclass(frozen=True)
class PlanAudit:
    """A plan. ``residual``: conditions that no scan has, so rows are read before they are evaluated.

    ``spill_bytes``: what was written to disk for lack of memory; None before the execution, or where it is not known.
    """

    scans: Sequence[ScanAudit]
    residual: Sequence[str]
    files_kept: int
    files_total: int
    bytes_kept: int
    spill_bytes: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """In words."""
        for scan in self.scans:
            filters = (scan.partition_filters, scan.data_filters, scan.pushed_filters)
            partition, data, pushed = map(_words, filters)
            yield f"{scan.table}: partition filters {partition}; data filters {data}; in the Parquet reader {pushed}"
        yield f"evaluated on rows: {_words(self.residual)}"
        spilled = "not known" if self.spill_bytes is None else f"{self.spill_bytes / 1e6:,.1f} MB"
        files = f"{self.files_kept:,} of {self.files_total:,} files kept ({self.bytes_kept / 1e6:,.1f} MB)"
        yield f"{files}; spilled: {spilled}"


def plan_text(rows: DataFrame) -> str:
    """The plans as `explain` prints them: parsed, analyzed, optimized and physical."""
    with redirect_stdout(io.StringIO()) as printed:
        rows.explain(extended=True)
    return printed.getvalue()


def audit_plan(text: str, kept: Mapping[str, int], files_total: int) -> PlanAudit:
    """The audit of a plan ``text``. ``kept``: bytes of each file that is read; ``files_total``: files of all tables."""
    scans = tuple(_scan(found[0]) for found in _SCAN.finditer(text))
    pruned = {condition for scan in scans for condition in (*scan.data_filters, *scan.partition_filters)}
    conditions = dict.fromkeys(c for found in _FILTER.finditer(text) for c in _conjuncts(found[1]))
    residual = tuple(condition for condition in conditions if condition not in pruned)
    return PlanAudit(scans, residual, len(kept), files_total, sum(kept.values()))


def spilled_bytes(rows: DataFrame) -> int | None:
    """The bytes that the execution of ``rows`` spilled; None where the session does not report it."""
    try:
        info = rows.executionInfo
    except PySparkException:
        return None
    if info is None or info.metrics is None:
        return None
    _, nodes = info.metrics.extract_graph()
    return sum(int(m.value) for node in nodes.values() for m in node.metrics if m.name == _SPILLED)


def _scan(line: str) -> ScanAudit:
    location = _bracketed(line, "Location: ")
    name = location[0].rstrip("/").rpartition("/")[2] if location else "?"
    filters = (_bracketed(line, f"{kind}: ") for kind in ("PartitionFilters", "DataFilters", "PushedFilters"))
    return ScanAudit(name, *filters)


def _bracketed(line: str, label: str) -> tuple[str, ...]:
    """The parts of the list in square brackets that follows ``label``."""
    _, found, rest = line.partition(label)
    if not found or "[" not in rest:
        return ()
    return tuple(_COLUMN_ID.sub("", part) for part in _split(rest[rest.index("[") + 1 :], ", ", end="]"))


def _conjuncts(condition: str) -> tuple[str, ...]:
    """The conditions that a filter joins by AND; the plan nests them to the left."""
    condition = _COLUMN_ID.sub("", condition.strip())
    if not condition.startswith("("):
        return (condition,)
    inner = "".join(_split(condition[1:], "\0", end=")"))
    parts = _split(inner, " AND ")
    if len(inner) + 2 < len(condition) or len(parts) == 1:
        return (condition,)
    return tuple(each for part in parts for each in _conjuncts(part))


def _split(text: str, separator: str, end: str = "") -> list[str]:
    """The parts of ``text`` at a ``separator`` outside brackets, up to the bracket ``end`` that closes it."""
    parts, depth, begin, at = list[str](), 0, 0, 0
    while at < len(text):
        if depth == 0 and end and text[at] == end:
            break
        depth += (text[at] in "([") - (text[at] in ")]")
        if depth == 0 and text.startswith(separator, at):
            parts.append(text[begin:at])
            at += len(separator)
            begin = at
            continue
        at += 1
    return [part for part in (*parts, text[begin:at]) if part]


def _words(conditions: Sequence[str]) -> str:
    return ", ".join(conditions) or "none"
