"""Checks of package orbit_determination: refined sets are better, and analyst satellites share no observation."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.fusion.watermarks import PIPELINE
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbit_determination.tables import (
    ELEMENT_PUBLICATIONS,
)
from sda_platform.orbit_determination.uncorrelated_tracks import ANALYST_SATELLITE_IDS
from sda_platform.orchestration.freshness import newest, watermark
from sda_platform.orchestration.table_checks import DataFreshness
from sda_platform.recovery.verification import consumed_rows, joined_keys, missing_or_surplus, reviewed_span

MAX_REFINEMENT_AGE_S = 6 * 3600.0
TRACKS_ARE_REFINED = DataFreshness("tracks are refined", MAX_REFINEMENT_AGE_S, newest("epoch_time_ns"))


def unsound_refinements(_store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Texts of refined products that are no better than the published sets.

    They are compared by their covariances, and by what they predicted of held-back windows.
    """
    sigmas, errors = ("position_sigma_m", "published_sigma_m"), ("held_back_rms", "published_held_back_rms")
    rows = log.rows_of(reviewed_span(commits), [*sigmas, *errors])
    found = [pc.greater_equal(rows[ours], rows[theirs]).fill_null(False) for ours, theirs in (sigmas, errors)]
    worse = pc.sum(pc.or_(*found)).as_py() or 0
    return [f"{worse} are no better than the published sets"] if worse else []


def shared_observations(_store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Texts of observations used by two unknown objects, and of numbers outside the analyst satellites' range."""
    rows = log.rows_of(reviewed_span(commits), ["norad_id", "observation_ids"]).sort_by("norad_id").to_pylist()
    owners = [(observation_id, row["norad_id"]) for row in rows for observation_id in row["observation_ids"]]
    owner = dict(reversed(owners))
    twice = sorted({number for observation_id, number in owners if owner[observation_id] != number})
    foreign = sorted({row["norad_id"] for row in rows} - set(ANALYST_SATELLITE_IDS))
    problems = (
        (twice, "objects share observations with another"),
        (foreign, "numbers are not those of analyst satellites"),
    )
    return [f"{len(numbers)} {what}, such as {numbers[0]}" for numbers, what in problems if numbers]


def last_discovery_time(store: Lake, _log: TableLog) -> int | None:
    """Find when uncorrelated tracks were last processed: without any, the table does not change."""
    return watermark(PIPELINE)(store, store.log(FUSED_TRACKS))


def unpublished_commits(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Texts of consumed commits with element sets that have no row in the ledger."""
    written = log.rows_of(reviewed_span(commits), ["source_table", "source_commit_sequence"])
    found = joined_keys(written, ["source_table", "source_commit_sequence"])
    expected = []
    for source in ELEMENT_PUBLICATIONS.consumes:
        rows = consumed_rows(store, commits, source, [COMMIT_SEQUENCE])
        named = rows.append_column("source_table", pa.array([source.name] * rows.num_rows, pa.string()))
        expected += pc.unique(joined_keys(named, ["source_table", COMMIT_SEQUENCE])).to_pylist()
    return missing_or_surplus(pa.chunked_array([expected], pa.string()), found, "publications")
