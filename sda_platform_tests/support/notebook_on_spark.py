"""What a notebook does through Spark Connect, in a process of its own; the report is one line of JSON.

    python -m sda_platform_tests.support.notebook_on_spark REMOTE LAKE HOME MOMENT

A process has either sessions of Spark Connect or one of its own, and the tests have one of their own.
"""

import json
import sys
from pathlib import Path
from typing import Any

from sda_platform.history.errors import QueryRefused
from sda_platform.history.pinned_session import PinnedSession, SqlLimits
from sda_platform.notebooks import open_on_spark
from sda_platform.settings import Settings

_COUNT = "SELECT count(*) AS n FROM element_sets"
_ENDLESS = "SELECT sum(hash(id)) AS n FROM range(1000000000000)"
_WINDOWS = "SELECT source_id, count(*) OVER (PARTITION BY source_id) AS n FROM observations"
_BUFFER = "spark.sql.windowExec.buffer"


def report(remote: str, lake: str, home: str, moment: str) -> dict[str, Any]:
    """Two moments side by side, a query that spills, one that reaches its limit of time, and one after it."""
    settings = Settings(lake=lake, home=Path(home))
    with open_on_spark(remote, settings=settings) as now, open_on_spark(remote, moment, settings=settings) as then:
        counts = [rows_of(view, _COUNT)[0]["n"] for view in (now, then, now)]
        for name in ("in.memory.threshold", "spill.threshold"):
            now.session.conf.set(f"{_BUFFER}.{name}", "16")
        rows = len(rows_of(now, _WINDOWS))
        spilled = now.plan.spill_bytes if now.plan else None
    refused = ""
    with open_on_spark(remote, settings=settings, limits=SqlLimits(timeout_s=2.0)) as limited:
        try:
            rows_of(limited, _ENDLESS)
        except QueryRefused as error:
            refused = str(error)
    with open_on_spark(remote, settings=settings) as after:
        return {"counts": counts, "rows": rows, "spilled": spilled, "refused": refused, "after": rows_of(after, _COUNT)}


def rows_of(view: PinnedSession, sql: str) -> list[dict[str, Any]]:
    """The result of a query."""
    return [row for batch in view.batches(sql) for row in batch.to_pylist()]


if __name__ == "__main__":
    print(json.dumps(report(*sys.argv[1:])))  # noqa: T201
