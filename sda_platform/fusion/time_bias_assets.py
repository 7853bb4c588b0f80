"""Asset of time-tag biases: estimated from closed windows, applied to later ones."""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.catalog.orbits import catalogue_at
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import iso
from sda_platform.fusion.checks import insignificant_corrections
from sda_platform.fusion.fuse import OBSERVATION_COLUMNS
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.tables import FIRST_OPEN_WINDOW, FUSED_TRACKS, TIME_TAG_BIASES
from sda_platform.fusion.time_bias import BIAS_SCHEMA, corrections, estimated
from sda_platform.fusion.watermarks import WINDOWS_IN_TERM, term_of, window_start
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.tracking.time_tag_bias import TimeTagBiases
from sda_platform.orchestration.declarations import table_asset
from sda_platform.orchestration.freshness import watermark
from sda_platform.orchestration.jobs import ORBIT_DETERMINATION
from sda_platform.orchestration.materialization import materialized, nothing_new
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.table_checks import DataFreshness

TERMS_UNTIL = "terms_until"
"""Watermark of each commit: biases are estimated up to here."""
_MOST_TERMS = 12
# This many observations determine a bias to a millisecond; more would only cost time.
_ENOUGH_OBSERVATIONS = 100_000


@table_asset(
    TIME_TAG_BIASES,
    jobs=[ORBIT_DETERMINATION],
    balance=[insignificant_corrections],
    freshness=DataFreshness("no closed term waits", 3600.0, watermark(TERMS_UNTIL)),
)
def time_tag_biases(lake: LakeResource, fusion: FusionResource) -> dg.MaterializeResult[Any]:
    """Time-tag bias of each sensor, per term of ten closed windows, from satellites that report their own state.

    fused_tracks corrects significant biases two terms later. That feedback is not an edge of the asset graph, which
    is acyclic.
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
    is_last_term = ds.field("term_start_ns") == terms[0] - term_length_ns
    before = store.earlier_rows(plan, BIAS_SCHEMA.names, is_last_term)
    estimates = []
    for term_ns, observations in zip(terms, _observations(store, known, terms, fusion.window_ns), strict=True):
        before = estimated(observations, before, propagator, term_ns, fusion.window_ns, plan.as_of_ns, fusion.network())
        estimates.append(before)
    rows = pa.concat_tables(estimates)
    marks = {TERMS_UNTIL: terms[-1] + term_length_ns}
    receipt = store.append(plan, rows, counts={"terms": len(terms)}, watermarks=marks)
    applied = sorted(rows.filter(rows["is_applied"])["source_id"].to_pylist())
    return materialized(store, receipt, sensors=rows.num_rows, applied=applied, estimated_until=iso(marks[TERMS_UNTIL]))


def closed_before(store: Lake, plan: Plan) -> tuple[int, int]:
    """Start (ns) of the first open window by the plan's newest commit of fused_tracks, and its sequence of
    `observations`.

    Both are zero while no window is closed.
    """
    commit = store.log(FUSED_TRACKS).end_of(plan.window(FUSED_TRACKS))
    observed = commit.manifest.window(OBSERVATIONS.name) if commit else None
    if plan.is_empty or commit is None or observed is None:
        return 0, 0
    return commit.manifest.watermarks.get(FIRST_OPEN_WINDOW, 0), observed.upto_sequence


def known_corrections(
    store: Lake, upto_sequence: int, starts_ns: Sequence[int], window_ns: int
) -> dict[int, TimeTagBiases]:
    """Return the applied biases of these windows' terms, by the commits up to ``upto_sequence``."""
    terms = sorted({term_of(start_ns, window_ns) for start_ns in starts_ns})
    estimates = (ds.field(COMMIT_SEQUENCE) <= upto_sequence) & ds.field("holds_from_ns").isin(terms)
    return corrections(store.log(TIME_TAG_BIASES).rows(BIAS_SCHEMA.names, estimates))


def _observations(store: Lake, upto_sequence: int, terms: range, window_ns: int) -> Iterator[pa.Table]:
    """Observations of whole windows of each term, up to a sufficient number."""
    log, time_ns = store.log(OBSERVATIONS), ds.field("sensor_time_ns")
    known = ds.field(COMMIT_SEQUENCE) <= upto_sequence
    within = (time_ns >= terms[0]) & (time_ns < terms[-1] + terms.step)
    times = np.sort(log.rows(["sensor_time_ns"], known & within)["sensor_time_ns"].to_numpy())
    for term_ns in terms:
        first, end = np.searchsorted(times, [term_ns, term_ns + terms.step])
        if first == end:
            yield OBSERVATIONS.arrow_schema.empty_table().select(OBSERVATION_COLUMNS)
            continue
        last_ns = int(times[min(first + _ENOUGH_OBSERVATIONS, end) - 1])
        until_ns = window_start(last_ns, window_ns) + window_ns
        yield log.rows(OBSERVATION_COLUMNS, known & (time_ns >= term_ns) & (time_ns < until_ns))
