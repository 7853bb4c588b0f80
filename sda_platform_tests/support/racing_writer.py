"""A process with an engine of its own that commits one batch after another to a table, racing others of its kind.

    python -m sda_platform_tests.support.racing_writer <lake> <name> <commits>

What a batch holds follows from its sequence, as it does in the platform: a batch that landed twice shows as rows twice.
Prints ``ready``, waits for a line, and prints the numbers of commits won and lost as JSON.
"""

import json
import sys
from pathlib import Path

from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.commit import append
from sda_platform.lake.errors import CommitConflict
from sda_platform.lake.planning import plan_windows
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.spark.session import attach
from sda_platform_tests.support.delta_tables import lake_at, rows_of

ROWS_PER_BATCH = 3


def ids_of(sequence: int) -> list[str]:
    """The rows of a batch."""
    return [f"{sequence:04d}-{number}" for number in range(ROWS_PER_BATCH)]


def main() -> None:
    """Commit until the table has ``commits`` of them."""
    root, name, commits = sys.argv[1], sys.argv[2], int(sys.argv[3])
    session = attach("local", name, {"spark.sql.warehouse.dir": f"{root}/{name}-warehouse"})
    session.range(1).count()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    lake, told = lake_at(Path(root)), {"won": 0, "lost": 0}
    log = lake.log(OBSERVATIONS)
    while (head := lake.head(OBSERVATIONS)).sequence < commits:
        plan = plan_windows(OBSERVATIONS, head, (), now_ns=0, run_id=name)
        rows = rows_of(OBSERVATIONS, ({"observation_id": i} for i in ids_of(plan.sequence)))
        try:
            append(log, plan, session.createDataFrame(rows).drop(COMMIT_SEQUENCE))
            told["won"] += 1
        except CommitConflict:
            told["lost"] += 1
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
