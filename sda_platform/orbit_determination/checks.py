"""Checks of package orbit_determination: refined sets are better, and analyst satellites share no observation."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.fusion.watermarks import PIPELINE
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import Commit, TableLog
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbit_determination.tables import ELEMENT_PUBLICATIONS, PROVISIONAL_ELEMENTS, REFINED_ELEMENTS
from sda_platform.orbit_determination.uncorrelated_tracks import ANALYST_IDS
from sda_platform.orchestration.freshness import newest, nothing_waits, watermark
from sda_platform.orchestration.table_checks import DataFreshness, table_checks
from sda_platform.recovery.verification import consumed_rows, joined_keys, missing_or_surplus, reviewed_span

MAX_REFINEMENT_AGE_S = 6 * 3600.0
MAX_PUBLICATION_LAG_S = 300.0


def unsound_refinements(_store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every refined set is clearly better than what it refined, by their covariances."""
    rows = log.rows_of(reviewed_span(commits), ["norad_id", "position_sigma_m", "published_sigma_m"])
    worse = pc.sum(pc.greater_equal(rows["position_sigma_m"], rows["published_sigma_m"])).as_py() or 0
    return [f"{worse} sets are no better than what they refine"] if worse else []


def shared_readings(_store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """No reading stands behind two unknown objects, and their numbers are analysts' numbers."""
    rows = log.rows_of(reviewed_span(commits), ["norad_id", "observation_ids"]).sort_by("norad_id").to_pylist()
    owners = [(reading, row["norad_id"]) for row in rows for reading in row["observation_ids"]]
    owner = dict(reversed(owners))
    twice = sorted({number for reading, number in owners if owner[reading] != number})
    foreign = sorted({row["norad_id"] for row in rows} - set(ANALYST_IDS))
    told = ((twice, "objects share readings with another"), (foreign, "numbers are not an analyst's"))
    return [f"{len(numbers)} {what}, such as {numbers[0]}" for numbers, what in told if numbers]


def discovery_looked(store: Lake, _log: TableLog) -> int | None:
    """When unknown objects could last have been found: a quiet sky leaves the table as it is."""
    return watermark(PIPELINE)(store, store.log(FUSED_TRACKS))


def unpublished_commits(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every consumed commit with element sets has one row in the ledger."""
    written = log.rows_of(reviewed_span(commits), ["source_table", "source_commit_sequence"])
    found = joined_keys(written, ["source_table", "source_commit_sequence"])
    expected = []
    for source in ELEMENT_PUBLICATIONS.consumes:
        rows = consumed_rows(store, commits, source, [COMMIT_SEQUENCE])
        named = rows.append_column("source_table", pa.array([source.name] * rows.num_rows, pa.string()))
        expected += pc.unique(joined_keys(named, ["source_table", COMMIT_SEQUENCE])).to_pylist()
    return missing_or_surplus(pa.chunked_array([expected], pa.string()), found, "publications")


checks = [
    table_checks(
        REFINED_ELEMENTS,
        balance=[unsound_refinements],
        freshness=DataFreshness("tracks are still refined", MAX_REFINEMENT_AGE_S, newest("epoch_time_ns")),
    ),
    table_checks(
        PROVISIONAL_ELEMENTS,
        balance=[shared_readings],
        freshness=DataFreshness("no unknown object waits for its number", MAX_REFINEMENT_AGE_S, discovery_looked),
    ),
    table_checks(
        ELEMENT_PUBLICATIONS,
        balance=[unpublished_commits],
        freshness=DataFreshness(
            "no element set waits", MAX_PUBLICATION_LAG_S, nothing_waits(ELEMENT_PUBLICATIONS.consumes)
        ),
    ),
]
