"""A process with an engine of its own that commits one batch after another to a table, racing others of its kind.

    python -m sda_platform_tests.support.racing_writer <lake> <name> <commits> [<engine>]

The engine is ``spark`` (default), ``spark-files`` (Spark adds files that Arrow wrote, as it does with many rows), the
address of a Spark Connect server, ``delta-rs``, ``conditional-put`` (delta-rs in an object store), or the control
``unchecked`` or ``unchecked-files``: delta-rs that ignores conflicts. ``lake`` is a path or an address.

What a batch holds follows from its sequence, as it does in the platform: a batch that landed twice shows as rows twice.
Prints ``ready``, waits for a line, and prints the numbers of commits won and lost as JSON.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake import data_files
from sda_platform.lake.commit import CommitEngine, WrittenRows, append, new_nonce, stamped, with_spark
from sda_platform.lake.errors import CommitConflict
from sda_platform.lake.planning import plan_windows
from sda_platform_tests.support.delta_tables import by_conditional_put, lake_at, rows_of, unchecked, with_delta_rs

ROWS_PER_BATCH = 3
_DELTA_RS: dict[str, CommitEngine] = {
    "delta-rs": with_delta_rs,
    "conditional-put": by_conditional_put,
    "unchecked": unchecked,
}


def ids_of(sequence: int) -> list[str]:
    """The rows of a batch."""
    return [f"{sequence:04d}-{number}" for number in range(ROWS_PER_BATCH)]


def main() -> None:
    """Commit until the table has ``commits`` of them."""
    root, name, commits, *chosen = sys.argv[1:]
    engine, frame = opened((chosen or ["spark"])[0], root, name)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    lake, told = lake_at(root), {"won": 0, "lost": 0}
    log = lake.log(OBSERVATIONS)
    while (head := lake.head(OBSERVATIONS)).sequence < int(commits):
        plan = plan_windows(OBSERVATIONS, head, (), now_ns=0, run_id=name)
        rows = rows_of(OBSERVATIONS, ({"observation_id": i} for i in ids_of(plan.sequence)))
        try:
            append(log, plan, frame(stamped(plan, rows)), is_stamped=True, engine=engine)
            told["won"] += 1
        except CommitConflict:
            told["lost"] += 1
    sys.stdout.write(json.dumps(told) + "\n")


def opened(engine: str, root: str, name: str) -> tuple[CommitEngine, Callable[[pa.Table], Any]]:
    """The engine of this name, ready to write, and how it takes rows."""
    if engine in _DELTA_RS:
        return _DELTA_RS[engine], lambda rows: rows
    table = f"{root}/{OBSERVATIONS.name}"
    if engine == "unchecked-files":
        return unchecked, lambda rows: WrittenRows(None, data_files.write(OBSERVATIONS, table, rows, new_nonce()))  # type: ignore[arg-type]
    from sda_platform.spark.session import attach

    if engine.startswith("spark"):
        session = attach("local", name, {"spark.sql.warehouse.dir": f"{root}/{name}-warehouse"})
    else:
        session = attach(engine, name, lake_uri=root)
    session.range(1).count()
    if engine == "spark-files":
        return with_spark, lambda rows: WrittenRows(
            session.createDataFrame([], OBSERVATIONS.schema),
            data_files.write(OBSERVATIONS, table, rows, new_nonce()),
        )
    names = OBSERVATIONS.arrow_schema.names
    return with_spark, lambda rows: session.createDataFrame(rows.select(names), OBSERVATIONS.schema)


if __name__ == "__main__":
    main()
