"""What a query on Spark reads: its plan as Spark prints it, the files that Delta's statistics keep, and spilled bytes.

Spilled bytes are known after the execution, and only from Spark Connect.
"""

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

_SPILLED = "spillSize"


@dataclass(frozen=True)
class QueryPlan:
    """``physical``: the plan that the engine executes, with the filters of each scan. ``files_total``: of all tables.

    ``spill_bytes``: what was written to disk for lack of memory; None before the execution, or where it is not known.
    """

    physical: str
    files_kept: int
    files_total: int
    bytes_kept: int
    spill_bytes: int | None = None

    def lines(self) -> Iterator[str]:
        """Describe the plan and what the query reads, for people."""
        yield from self.physical.strip().splitlines()
        spilled = "not known" if self.spill_bytes is None else f"{self.spill_bytes / 1e6:,.1f} MB"
        files = f"{self.files_kept:,} of {self.files_total:,} files kept ({self.bytes_kept / 1e6:,.1f} MB)"
        yield f"{files}; spilled: {spilled}"


def plan_text(rows: DataFrame) -> str:
    """Return the plans as `explain` prints them: parsed, analyzed, optimized and physical."""
    with redirect_stdout(io.StringIO()) as printed:
        rows.explain(extended=True)
    return printed.getvalue()


def spilled_bytes(rows: DataFrame) -> int | None:
    """Return the bytes that the execution of ``rows`` spilled; None where the session does not report it."""
    try:
        info = rows.executionInfo
    except PySparkException:
        return None
    if info is None or info.metrics is None:
        return None
    _, nodes = info.metrics.extract_graph()
    return sum(int(m.value) for node in nodes.values() for m in node.metrics if m.name == _SPILLED)
