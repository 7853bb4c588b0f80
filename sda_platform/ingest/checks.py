"""Checks of the tables of package ingest."""

import time
from collections.abc import Sequence

import dagster as dg
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.formats.registry import ZONES
from sda_platform.ingest.tables import RAW_RECORDS
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.refused_rows import excused
from sda_platform.lake.selections import Near
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.landing.orphans import Orphan, find_orphans, unknown_zones
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.resources import LandingResource
from sda_platform.orchestration.step_order import AFTER_ALERTS
from sda_platform.orchestration.warning import warning
from sda_platform.recovery.verification import (
    consumed_rows,
    missing_or_surplus,
    reviewed_span,
)

MAX_OBSERVATION_LAG_S = 300.0


def observations_balance(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Valid records = observations + duplicates, id by id: each valid id of the consumed window is stored once."""
    after, _ = reviewed_span(commits)
    valid = consumed_rows(store, commits, RAW_RECORDS, ["observation_id", "error_kind", "sensor_time_ns"])
    valid = valid.filter(pc.is_null(valid.column("error_kind")))
    if not valid.num_rows:
        return []
    near = Near("sensor_time_ns", valid.column("sensor_time_ns")).expression()
    earlier = log.rows(["observation_id"], near & (ds.field(COMMIT_SEQUENCE) <= after)).column("observation_id")
    expected = valid.column("observation_id")
    expected = expected.filter(pc.invert(pc.is_in(expected, earlier.combine_chunks())))
    found = log.rows_of(reviewed_span(commits), ["observation_id"]).column("observation_id")
    return missing_or_surplus(excused(log, commits, "observation_id", expected), found, "observations")


@dg.asset_check(
    asset=RAW_RECORDS.name,
    description="Every landed file belongs to a segment that a table reads.",
    op_tags=AFTER_ALERTS,
)
def no_orphans(landing: LandingResource) -> dg.AssetCheckResult:
    """Data without metadata or the reverse, and unknown directories: path, reason and age."""
    orphans = landing_orphans(landing.root, landing.orphaned_before_s())
    wall_s = time.time()  # deterministic: the check of files makes no row
    lines = [orphan.description(wall_s) for orphan in orphans]
    return warning(lines, {"orphans": len(orphans), **({"files": lines[:50]} if lines else {})})


def landing_orphans(root: str, before_s: float) -> list[Orphan]:
    """Everything below ``root`` that no segment accounts for and that has not changed since ``before_s`` (wall)."""
    found = unknown_zones(root, ZONES)
    for feed in ZONES:
        found += find_orphans(LandingZone(root, feed), before_s)
    return found
