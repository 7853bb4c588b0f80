"""Assets of package fusion: observations → fused_tracks → tracks."""

from collections import Counter
from functools import partial
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform import markdown_elements
from sda_platform.catalog.orbits import catalogue_at
from sda_platform.catalog.space_weather import SpaceWeatherResource
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import iso
from sda_platform.foreign_text import Markdown
from sda_platform.fusion.checks import MAX_WATERMARK_LAG_S, stale_tracks
from sda_platform.fusion.fuse import MARKED_OBSERVATION_COLUMNS, window_fuser
from sda_platform.fusion.live_tracks import CHANGE_COLUMNS, TRACK_SCHEMA, WINDOW_COLUMNS
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.sources import ARRIVAL_COLUMNS, arrivals, lags_ms, source_watermarks
from sda_platform.fusion.tables import (
    FIRST_OPEN_WINDOW,
    FUSED_TRACKS,
    TIME_TAG_BIASES,
    TRACK_MEMORY_NS,
    TRACKS,
)
from sda_platform.fusion.time_bias import corrected_windows
from sda_platform.fusion.time_bias_assets import known_corrections
from sda_platform.fusion.track_states import STATES
from sda_platform.fusion.transforms import FIT_COLUMNS, WINDOW, changed_tracks, track_corrections, with_window
from sda_platform.fusion.watermarks import PIPELINE, advance, first_open_window, window_start
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.executors import Given, Stored, apply, fetched
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.selections import Above, Near, OneOf
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orchestration.declarations import table_asset
from sda_platform.orchestration.freshness import watermark
from sda_platform.orchestration.jobs import OBSERVATIONS_TO_ALERTS
from sda_platform.orchestration.materialization import in_ui, markdown_table, materialized, nothing_new
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.table_checks import DataFreshness
from sda_platform.recovery.verification import broken_correction_logs, current_keys
from sda_platform.units import SECOND_NS

# Of each observation and of each object, in raw records (`executors.apply`).
_WORK_OF_A_FIT, _WORK_OF_A_TRACK = 10, 40


@table_asset(
    FUSED_TRACKS,
    jobs=[OBSERVATIONS_TO_ALERTS],
    balance=[broken_correction_logs],
    freshness=DataFreshness("the watermark keeps up", MAX_WATERMARK_LAG_S, watermark(PIPELINE)),
)
def fused_tracks(lake: LakeResource, fusion: FusionResource) -> dg.MaterializeResult[Any]:
    """State and covariance of every observed object: one least-squares fit per 30 s window, from all sensors.

    A first fit is inserted with the first observations. Every later observation of the window replaces it by a
    retract and an insert, until the watermark closes the window. Closed windows are fitted again for reprocessed dead
    letters and for new corrections in `time_tag_biases`.
    """
    store = lake.open()
    plan = store.plan(FUSED_TRACKS, settings={"fusion": fusion.recorded()})
    if plan.is_empty or plan.snapshot(ORBITAL_CATALOG).sequence == 0:
        return nothing_new(
            store, plan, "nothing new upstream" if plan.is_empty else "no catalogue to associate with yet"
        )
    before = dict(plan.previous.watermarks) if plan.previous else {}
    first_open_ns = first_open_window(before.get(PIPELINE, 0), fusion.window_ns, fusion.lateness)
    arrived = store.new_rows(plan, OBSERVATIONS, [*ARRIVAL_COLUMNS, "reprocess_count"])
    landed = store.new_rows(plan, RAW_RECORDS, ["sensor_time_ns", "reprocess_count"])
    starts_ns, late = windows_to_fit(arrived, landed, first_open_ns, fusion.window_ns)
    estimated = store.new_rows(plan, TIME_TAG_BIASES, ["is_applied", "holds_from_ns"])
    starts_ns = sorted({*starts_ns, *corrected_windows(estimated, fusion.window_ns)})
    propagator = catalogue_at(store, plan.snapshot(ORBITAL_CATALOG).version).propagator
    fuse = window_fuser(
        propagator,
        fusion.window_ns,
        known_corrections(store, plan.window(TIME_TAG_BIASES).upto_sequence, starts_ns, fusion.window_ns),
        fusion.network(),
    )
    starts = pa.array(starts_ns, pa.int64())
    near = Near("sensor_time_ns", pa.chunked_array([starts, pc.add(starts, fusion.window_ns - 1)]))
    in_windows = partial(with_window, window_ns=fusion.window_ns)
    observed = store.snapshot_rows(plan, OBSERVATIONS, ["sensor_time_ns"], near.expression()).num_rows
    entries = apply(
        store,
        plan,
        partial(track_corrections, fuse=fuse, starts_ns=starts_ns, as_of_ns=plan.as_of_ns),
        Stored(OBSERVATIONS, WINDOW, MARKED_OBSERVATION_COLUMNS, near, prepare=in_windows),
        Stored(FUSED_TRACKS, WINDOW, where=OneOf(WINDOW, starts)),
        work=_WORK_OF_A_FIT * observed,
    )
    marks = advance(before, arrivals(arrived), fusion.lateness, plan.as_of_ns)
    sources = source_watermarks(before, arrived, marks, fusion.lateness.bound_ns, plan.as_of_ns)
    counts = {"late": late, "windows": len(starts_ns), **lags_ms(arrived, plan.as_of_ns)}
    watermarks = {**marks, **sources, FIRST_OPEN_WINDOW: first_open_ns}
    receipt = store.append(plan, entries, counts=counts, watermarks=watermarks)
    return materialized(store, receipt, **_metadata(store, plan, marks, counts))


@table_asset(TRACKS, jobs=[OBSERVATIONS_TO_ALERTS], balance=[stale_tracks])
def tracks(lake: LakeResource, weather: SpaceWeatherResource) -> dg.MaterializeResult[Any]:
    """Filtered state of each object over all its windows, and the state of its track: new, confirmed, coasting or
    lost.

    State changes have hysteresis. An object whose windows contradict the filtered covariance twice in a row has a
    suspected manoeuvre, with time and size. One window is enough if directions of several observers contradict it.
    """
    store = lake.open()
    here = weather.near(store.clock.now_ns())
    plan = store.plan(TRACKS, settings={"weather": here.recorded()})
    if plan.is_empty:
        return nothing_new(store, plan)
    number = "norad_id"
    touched = pc.unique(store.new_rows(plan, FUSED_TRACKS, [number])[number])
    remembered = OneOf(number, touched) & Above(WINDOW, plan.as_of_ns - TRACK_MEMORY_NS - 1)
    transform = partial(
        changed_tracks,
        propagator=catalogue_at(store, plan.snapshot(ORBITAL_CATALOG).version).propagator,
        as_of_ns=plan.as_of_ns,
        dynamics=here.dynamics(),
    )
    rows = apply(
        store,
        plan,
        transform,
        Stored(FUSED_TRACKS, number, FIT_COLUMNS, remembered),
        Stored(FUSED_TRACKS, number, CHANGE_COLUMNS, is_new=True),
        Given(store.current_rows(plan).select(TRACK_SCHEMA.names), number),
        work=_WORK_OF_A_TRACK * len(touched),
    )
    counts = {"touched": len(touched)}
    receipt = store.replace(plan, fetched(rows))
    return materialized(store, receipt, space_weather=here.stated(), **counts, **_track_counts(store))


def current_windows(store: Lake, upto_sequence: int, numbers: pa.Array, since_ns: int) -> pa.Table:
    """Return the current window fits of these objects since ``since_ns``, by the commits up to ``upto_sequence``."""
    known = (ds.field("window_start_ns") >= since_ns) & (ds.field(COMMIT_SEQUENCE) <= upto_sequence)
    return current_keys(store.log(FUSED_TRACKS), WINDOW_COLUMNS, where=known & ds.field("norad_id").isin(numbers))


def _track_counts(store: Lake) -> dict[str, Any]:
    """Number of tracks in each state, and the objects with a suspected manoeuvre."""
    rows = store.log(TRACKS).rows(["norad_id", "state", "manoeuvre_time_ns", "manoeuvre_speed_m_s", "position_sigma_m"])
    states = Counter(rows["state"].to_pylist())
    suspected = rows.filter(rows["manoeuvre_time_ns"].is_valid()).sort_by([("manoeuvre_time_ns", "descending")])
    return {
        **{state: states[state] for state in STATES},
        "median_position_sigma_m": pc.quantile(rows["position_sigma_m"], 0.5)[0].as_py() if rows.num_rows else None,
        "suspected_manoeuvres": suspected.num_rows,
        **({"manoeuvres": in_ui(markdown_table(suspected.slice(0, 5)))} if suspected.num_rows else {}),
    }


def windows_to_fit(arrived: pa.Table, landed: pa.Table, first_open_ns: int, window_ns: int) -> tuple[list[int], int]:
    """Starts of the windows to fit again, and the number of new observations that are too late.

    ``arrived`` are the new observations, ``landed`` the new raw records. A closed window is fitted again for
    reprocessed records, whether they are new observations or known late ones.
    """
    returned = pa.concat_tables(rows.select(["sensor_time_ns", "reprocess_count"]) for rows in (arrived, landed))
    returned = returned.filter(pc.is_valid(returned["reprocess_count"])).column("sensor_time_ns").drop_null()
    live = arrived.filter(pc.is_null(arrived["reprocess_count"])).column("sensor_time_ns")
    is_late = pc.less(live, first_open_ns)
    times = [*live.filter(pc.invert(is_late)).to_pylist(), *returned.to_pylist()]
    return sorted({window_start(time_ns, window_ns) for time_ns in times}), pc.sum(is_late).as_py() or 0


def _metadata(store: Lake, plan: Plan, marks: dict[str, int], counts: dict[str, int]) -> dict[str, Any]:
    written = store.log(FUSED_TRACKS).rows_of((plan.sequence - 1, plan.sequence), ["op", "norad_id"])
    inserts = pc.sum(pc.equal(written.column("op"), "insert")).as_py() or 0
    lag = {} if PIPELINE not in marks else {"watermark_lag_s": (plan.as_of_ns - marks[PIPELINE]) / SECOND_NS}
    return {
        "windows_fitted": counts["windows"],
        "inserts": inserts,
        "retracts": written.num_rows - inserts,
        "objects": len(pc.unique(written.column("norad_id"))),
        "late_observations": counts["late"],
        "skewed_observations": counts["skewed"],
        "watermarks": in_ui(_trail(marks, counts)),
        **lag,
    }


def _trail(marks: dict[str, int], counts: dict[str, int]) -> Markdown:
    """Tabulate each kind's watermark, its source lag until reception, and the pipeline lag since then."""
    rows = []
    for kind, mark in marks.items():
        lags = [counts.get(f"{kind}_{whose}_lag_ms") for whose in ("source", "pipeline")]
        rows.append((kind, iso(mark), *("–" if lag is None else f"{lag / 1000:.1f} s" for lag in lags)))
    return markdown_elements.table(("kind", "complete up to", "source lag", "pipeline lag"), rows)
