"""Checks of package dead_letters: every rejected record is a dead letter, and no kind grows unusually."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.dead_letters.rejected import refused_letters
from sda_platform.dead_letters.tables import BRONZE, DEAD_LETTERS, REFUSING
from sda_platform.fusion.lateness import late_observations
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.unconsumed import commits_of
from sda_platform.recovery.verification import consumed_rows, joined_keys, missing_or_surplus, reviewed_span


def dead_letters_balance(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every record with an error, observation that came late, and row that was refused is a dead letter, once."""
    key, expected = DEAD_LETTERS.key, []
    for table in BRONZE:
        rows = consumed_rows(store, commits, table, ["segment_sha256", "record_number", "error_kind"])
        dead = rows.filter(pc.is_valid(rows.column("error_kind")))
        expected.append(
            joined_keys(dead.append_column("stage", pa.array([table.name] * dead.num_rows, pa.string())), key)
        )
    fused, windows = store.log(FUSED_TRACKS), [c.manifest.window(FUSED_TRACKS.name) for c in commits]
    for late in (late_observations(store, commits_of(fused, window)) for window in windows if window):
        stage = pa.array([FUSED_TRACKS.name] * late.num_rows, pa.string())
        expected.append(joined_keys(late.append_column("stage", stage), key))
    found = joined_keys(log.rows_of(reviewed_span(commits), key), key)
    consumed = [(table, window) for table in REFUSING for c in commits if (window := c.manifest.window(table.name))]
    expected.append(joined_keys(refused_letters(store, consumed, 0), key))
    return missing_or_surplus(pa.chunked_array([c for e in expected for c in e.chunks], pa.string()), found, "letters")
