"""Checks of the tables of package conjunction."""

from collections.abc import Sequence
from dataclasses import replace

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.conjunction.alerting import ASSESSED_COLUMNS, JUDGED_COLUMNS, events_table, with_statements
from sda_platform.conjunction.cdm_comparison import open_comparisons
from sda_platform.conjunction.resource import AlertingResource
from sda_platform.conjunction.stated_encounters import statements_read
from sda_platform.conjunction.tables import (
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
    SCREENED_FROM,
)
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.refused_rows import excused
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.orbits.risk.levels import RISK_LEVELS, risk_level
from sda_platform.orchestration.freshness import watermark
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.step_order import AFTER_ALERTS
from sda_platform.orchestration.table_checks import DataFreshness
from sda_platform.orchestration.warning import warning
from sda_platform.recovery.verification import (
    consumed_rows,
    current_keys,
    missing_or_surplus,
    reviewed_span,
)

MAX_SCREENING_AGE_S = 12 * 3600.0
SCREENING_IS_FRESH = DataFreshness("the last full screening is recent", MAX_SCREENING_AGE_S, watermark(SCREENED_FROM))


def assessments_follow_candidates(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every current candidate that was consumed has one current assessment, and no other event has one."""
    touched = _touched(store, log, commits, CONJUNCTION_CANDIDATES)
    expected, found = _followed(store, log, commits, CONJUNCTION_CANDIDATES, touched, ())
    due, ids = expected.column("event_id"), found.column("event_id")
    # Of a refused assessment, the one that it would have replaced is current still, if there was one.
    absent = due.filter(pc.invert(pc.is_in(due, ids.combine_chunks())))
    missing = excused(log, commits, "event_id", absent)
    due = due.filter(pc.or_(pc.is_in(due, ids.combine_chunks()), pc.is_in(due, missing.combine_chunks())))
    return missing_or_surplus(due, ids, "assessed events")


def risks_follow_probabilities(_store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every current assessment has the risk level of its Pc, or a higher one where the validity of 2D is unknown.
    Its Pc is the 2D one wherever that one is valid."""
    span = reviewed_span(commits)
    written = pc.unique(log.rows_of(span, ["event_id"]).column("event_id"))
    columns = ["collision_probability", "risk", "probability_2d", "is_2d_valid"]
    known = ds.field("event_id").isin(written) & (ds.field(COMMIT_SEQUENCE) <= span[1])
    rows = current_keys(log, columns, where=known)
    levels = pa.array(list(RISK_LEVELS))
    of_pc = pc.index_in(
        pa.array(risk_level(rows.column("collision_probability").to_numpy()).tolist(), pa.string()), levels
    )
    stored = pc.index_in(rows.column("risk"), levels)
    may_be_higher = pc.and_(pc.is_null(rows.column("is_2d_valid")), pc.greater(stored, of_pc))
    miscoloured = rows.filter(
        pc.and_not(pc.fill_null(pc.not_equal(stored, of_pc), True), pc.fill_null(may_be_higher, False))
    )
    differs = pc.not_equal(rows.column("collision_probability"), rows.column("probability_2d"))
    misjudged = rows.filter(pc.and_(pc.fill_null(rows.column("is_2d_valid"), False), pc.fill_null(differs, True)))
    found = [(miscoloured, "do not have the risk level of their Pc"), (misjudged, "have a valid 2D Pc and another one")]
    return [f"{len(bad)} assessments {what}, such as {bad.column(0)[0].as_py()}" for bad, what in found if len(bad)]


def alerts_follow_assessments(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every event ahead that the policy selects, assessed or stated, has an open alert. Every open alert is of an event
    that keeps its level. Policy and time are those of the newest commit that was consumed."""
    newest = commits[0].manifest if commits else None
    recorded = (newest.settings or {}).get("alerting") if newest else None
    if newest is None or recorded is None:  # written by a version without a policy
        return []
    policy = AlertingResource().as_recorded(recorded).policy()
    touched = _touched(store, log, commits, CONJUNCTION_ASSESSMENTS)
    windows = [window for commit in commits if (window := commit.manifest.window(RECEIVED_CDMS.name))]
    seen = [replace(each, upto_sequence=windows[0].upto_sequence) for each in windows[-1:]]
    stated = statements_read(store, seen, newest.snapshots, newest.as_of_ns, touched)
    assessed, alerts = _followed(
        store, log, commits, CONJUNCTION_ASSESSMENTS, [*touched, *stated], ASSESSED_COLUMNS[1:], ["risk", "status"]
    )
    rows = zip(*(alerts.column(name).to_pylist() for name in ("event_id", "risk", "status")), strict=True)
    active = {event_id: risk for event_id, risk, status in rows if status != "closed"}
    ours = {row["event_id"]: row for row in assessed.to_pylist()}
    known = with_statements(events_table(ours, {name: said for name, said in stated.items() if name in ours or said}))
    ids = known.column("event_id").to_pylist()
    columns = {name: known.column(name).to_numpy(zero_copy_only=False) for name in JUDGED_COLUMNS}
    before = [RISK_LEVELS.index(active.get(event_id, "green")) for event_id in ids]
    levels = policy.levels(columns, before, newest.as_of_ns)
    selected = {ids[row] for row in np.flatnonzero(levels)}
    due = {ids[row] for row in np.flatnonzero((levels > 0) & (columns["tca_time_ns"] > newest.as_of_ns))}
    told = ((due - set(active), "missing"), (set(active) - selected, "unexpected"))
    return [f"{len(found)} alerts {how}, such as {min(found)}" for found, how in told if found]


def _touched(store: Lake, log: TableLog, commits: Sequence[Commit], source: Table) -> list[str]:
    """Return ids of the events that ``commits`` consumed of ``source``, or wrote."""
    consumed = consumed_rows(store, commits, source, ["event_id"]).column("event_id")
    written = log.rows_of(reviewed_span(commits), ["event_id"]).column("event_id")
    ids: list[str] = pc.unique(pa.chunked_array([*consumed.chunks, *written.chunks], pa.string())).to_pylist()
    return ids


def _followed(
    store: Lake,
    log: TableLog,
    commits: Sequence[Commit],
    source: Table,
    touched: Sequence[str],
    columns: Sequence[str],
    own_columns: Sequence[str] = (),
) -> tuple[pa.Table, pa.Table]:
    """Of the events ``touched`` those that are current in ``source``, and in the table.

    Both as of the newest of the commits, (event_id, columns) and (event_id, own_columns).
    """
    window = next((w for w in (c.manifest.window(source.name) for c in commits) if w), None)
    is_touched, at = ds.field("event_id").isin(pa.array(touched, pa.string())), ds.field(COMMIT_SEQUENCE)
    upto = window.upto_sequence if window else 0
    return (
        current_keys(store.log(source), columns, where=is_touched & (at <= upto)),
        current_keys(log, own_columns, where=is_touched & (at <= reviewed_span(commits)[1])),
    )


@dg.asset_check(
    asset=CONJUNCTION_ASSESSMENTS.name,
    additional_deps=[RECEIVED_CDMS.name],
    description="No received message has a risk that our assessments lack, or a Pc that differs tenfold.",
    op_tags=AFTER_ALERTS,
)
def others_agree(lake: LakeResource) -> dg.AssetCheckResult:
    """List the encounters ahead on which our current assessments and the newest received messages differ."""
    store = lake.open()
    opinions = open_comparisons(store, store.clock.now_ns())
    lines = [line for line in (opinion.disagreement for opinion in opinions) if line]
    return warning(
        lines,
        {
            "external_reports": len(opinions),
            "external_only": sum(opinion.event is None for opinion in opinions),
            **({"disagreements": lines[:50]} if lines else {}),
        },
    )
