"""The asset of sensor clocks, between two commits of fused_tracks: told by closed windows, used by those to come."""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.catalog.orbits import catalogue_at
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import iso
from sda_platform.fusion.fuse import OBSERVATION_COLUMNS
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.tables import FIRST_OPEN_WINDOW, FUSED_TRACKS, TIME_TAG_BIASES
from sda_platform.fusion.time_bias import CLOCK_SCHEMA, corrections, estimated
from sda_platform.fusion.watermarks import WINDOWS_IN_TERM, term_of, window_start
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.tracking.time_tag_bias import TimeTagBiases
from sda_platform.orchestration.jobs import ORBIT_DETERMINATION
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.table_asset import materialized, nothing_new, table_asset

TERMS_UNTIL = "terms_until"
"""Among the watermarks of each commit: clocks are estimated up to here."""
_MOST_TERMS = 12
# So many readings tell a clock to a millisecond; the rest of a term would only cost time.
_ENOUGH_READINGS = 100_000


@table_asset(TIME_TAG_BIASES, jobs=[ORBIT_DETERMINATION])
def time_tag_biases(lake: LakeResource, fusion: FusionResource) -> dg.MaterializeResult[Any]:
    """How far each sensor's clock is off, by terms of ten closed windows, against satellites that tell their own state.

    fused_tracks takes the certain ones out of the times of the next term but one. It reads this table, which Dagster
    can't be told, as the two depend on each other in turns.
    """
    store = lake.open()
    plan = store.plan(TIME_TAG_BIASES, settings={"fusion": fusion.recorded()})
    open_from_ns, known = closed_before(store, plan)
    term_length_ns = WINDOWS_IN_TERM * fusion.window_ns
    until_ns = term_of(open_from_ns, fusion.window_ns)
    since_ns = dict(plan.previous.watermarks).get(TERMS_UNTIL, 0) if plan.previous else 0
    since_ns = since_ns or max(until_ns - _MOST_TERMS * term_length_ns, 0)
    terms = range(since_ns, until_ns, term_length_ns)[:_MOST_TERMS]
    if not terms or plan.snapshot(ORBITAL_CATALOG).sequence == 0:
        return nothing_new(store, plan, "no term of windows has closed since")
    propagator = catalogue_at(store, plan.snapshot(ORBITAL_CATALOG).version).propagator
    last_told = ds.field("term_start_ns") == terms[0] - term_length_ns
    before = store.earlier_rows(plan, CLOCK_SCHEMA.names, last_told)
    told = []
    for term_ns, readings in zip(terms, _readings(store, known, terms, fusion.window_ns), strict=True):
        before = estimated(readings, before, propagator, term_ns, fusion.window_ns, plan.as_of_ns, fusion.network())
        told.append(before)
    rows = pa.concat_tables(told)
    marks = {TERMS_UNTIL: terms[-1] + term_length_ns}
    receipt = store.append(plan, store.frame(TIME_TAG_BIASES, rows), counts={"terms": len(terms)}, watermarks=marks)
    applied = sorted(rows.filter(rows["is_applied"])["source_id"].to_pylist())
    return materialized(store, receipt, sensors=rows.num_rows, applied=applied, told_until=iso(marks[TERMS_UNTIL]))


def closed_before(store: Lake, plan: Plan) -> tuple[int, int]:
    """When the first open window starts by the newest commit of fused_tracks in the plan, ns; and what that one knew.

    That is the sequence of `observations`; both are zero while nothing is closed.
    """
    commit = store.log(FUSED_TRACKS).end_of(plan.window(FUSED_TRACKS))
    observed = commit.manifest.window(OBSERVATIONS.name) if commit else None
    if plan.is_empty or commit is None or observed is None:
        return 0, 0
    return commit.manifest.watermarks.get(FIRST_OPEN_WINDOW, 0), observed.upto_sequence


def known_corrections(
    store: Lake, upto_sequence: int, starts_ns: Sequence[int], window_ns: int
) -> dict[int, TimeTagBiases]:
    """What is taken out of the times of these windows, by term, as the commits up to ``upto_sequence`` tell."""
    terms = sorted({term_of(start_ns, window_ns) for start_ns in starts_ns})
    told = (ds.field(COMMIT_SEQUENCE) <= upto_sequence) & ds.field("holds_from_ns").isin(terms)
    return corrections(store.log(TIME_TAG_BIASES).rows(CLOCK_SCHEMA.names, told))


def _readings(store: Lake, upto_sequence: int, terms: range, window_ns: int) -> Iterator[pa.Table]:
    """Whole windows of each term, enough of them."""
    log, time_ns = store.log(OBSERVATIONS), ds.field("sensor_time_ns")
    known = ds.field(COMMIT_SEQUENCE) <= upto_sequence
    within = (time_ns >= terms[0]) & (time_ns < terms[-1] + terms.step)
    times = np.sort(log.rows(["sensor_time_ns"], known & within)["sensor_time_ns"].to_numpy())
    for term_ns in terms:
        first, end = np.searchsorted(times, [term_ns, term_ns + terms.step])
        if first == end:
            yield OBSERVATIONS.arrow_schema.empty_table().select(OBSERVATION_COLUMNS)
            continue
        last_ns = int(times[min(first + _ENOUGH_READINGS, end) - 1])
        until_ns = window_start(last_ns, window_ns) + window_ns
        yield log.rows(OBSERVATION_COLUMNS, known & (time_ns >= term_ns) & (time_ns < until_ns))
