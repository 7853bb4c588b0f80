"""Assets of the fusion room: observations → fused_tracks → tracks."""

from collections import Counter
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.orbits import catalogue_at
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import NANOSECONDS_PER_SECOND, iso
from sda_platform.fusion.clock_assets import closed_before, known_corrections
from sda_platform.fusion.clock_tables import CLOCK_OFFSETS
from sda_platform.fusion.clocks import corrected_windows
from sda_platform.fusion.discovery import (
    MEMORY_NS,
    PROVISIONAL_SCHEMA,
    READING_COLUMNS,
    discovered,
    tracklets,
    uncorrelated,
)
from sda_platform.fusion.live_tracks import TRACK_SCHEMA, WINDOW_COLUMNS, live_tracks
from sda_platform.fusion.refinement import ARC_NS, due, refined
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.sources import ARRIVAL_COLUMNS, arrivals, lags_ms, remembered
from sda_platform.fusion.tables import (
    FIRST_OPEN_WINDOW,
    FUSED_TRACKS,
    PROVISIONAL_ELEMENTS,
    REFINED_ELEMENTS,
    TRACK_MEMORY_NS,
    TRACKS,
)
from sda_platform.fusion.track_states import STATES
from sda_platform.fusion.transforms import track_corrections
from sda_platform.fusion.watermarks import PIPELINE, advance, first_open_window, window_start
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.assets import markdown_table, materialized, nothing_new, table_asset
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.resource import LakeResource
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.lake.verification import standing_keys
from sda_platform.orbits.elements import ElementSets


@table_asset(FUSED_TRACKS, deps=[OBSERVATIONS.name, RAW_RECORDS.name, ORBITAL_CATALOG.name], pool="hot")
def fused_tracks(lake: LakeResource, fusion: FusionResource) -> dg.MaterializeResult[Any]:
    """State and covariance of every observed object, one fit per 30 s window, from all sensors that saw it.

    A first fit is inserted as soon as there is evidence; every later observation of the window corrects it by a
    retract and an insert, until the watermark closes the window. What comes back from dead letters has its window
    fitted again even then, and so have windows that `clock_offsets` tells a correction of.
    """
    store = lake.open()
    plan = store.plan(FUSED_TRACKS, consume=[OBSERVATIONS, RAW_RECORDS, CLOCK_OFFSETS], observe=[ORBITAL_CATALOG])
    if plan.is_empty or plan.snapshot(ORBITAL_CATALOG).sequence == 0:
        return nothing_new(
            store, plan, "nothing new upstream" if plan.is_empty else "no catalogue to associate with yet"
        )
    before = dict(plan.previous.watermarks) if plan.previous else {}
    first_open_ns = first_open_window(before.get(PIPELINE, 0), fusion.window_ns, fusion.lateness)
    arrived = store.new_rows(plan, OBSERVATIONS, [*ARRIVAL_COLUMNS, "reprocess_count"])
    landed = store.new_rows(plan, RAW_RECORDS, ["sensor_time_ns", "reprocess_count"])
    starts_ns, late = windows_to_fit(arrived, landed, first_open_ns, fusion.window_ns)
    told = store.new_rows(plan, CLOCK_OFFSETS, ["is_applied", "holds_from_ns"])
    starts_ns = sorted({*starts_ns, *corrected_windows(told, fusion.window_ns)})
    propagator = catalogue_at(store, plan.snapshot(ORBITAL_CATALOG).version).propagator
    entries = track_corrections(
        store.snapshot(plan, OBSERVATIONS),
        store.snapshot(plan, FUSED_TRACKS),
        propagator,
        starts_ns=starts_ns or [0],
        window_ns=fusion.window_ns,
        as_of_ns=plan.as_of_ns,
        clocks=known_corrections(store, plan.window(CLOCK_OFFSETS).upto_sequence, starts_ns, fusion.window_ns),
    )
    marks = advance(before, arrivals(arrived), fusion.lateness, plan.as_of_ns)
    sources = remembered(before, arrived, marks, fusion.lateness.bound_ns, plan.as_of_ns)
    counts = {"late": late, "windows": len(starts_ns), **lags_ms(arrived, plan.as_of_ns)}
    watermarks = {**marks, **sources, FIRST_OPEN_WINDOW: first_open_ns}
    receipt = store.append(plan, entries, counts=counts, watermarks=watermarks)
    return materialized(store, receipt, **_facts(store, plan, marks, counts))


@table_asset(TRACKS, deps=[fused_tracks, ORBITAL_CATALOG.name], pool="hot")
def tracks(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """Where each object is by all its windows together: one state carried through them, and whether the track lives.

    new → confirmed → coasting → lost, with hysteresis. An object whose windows break the carried covariance twice in a
    row is suspected of a manoeuvre, with time and size.
    """
    store = lake.open()
    plan = store.plan(TRACKS, consume=[FUSED_TRACKS], observe=[ORBITAL_CATALOG])
    if plan.is_empty:
        return nothing_new(store, plan)
    touched = pc.unique(store.new_rows(plan, FUSED_TRACKS, ["norad_id"]).column("norad_id"))
    held = plan.window(FUSED_TRACKS).upto_sequence
    windows = standing_windows(store, held, touched, plan.as_of_ns - TRACK_MEMORY_NS)
    previous = store.log(TRACKS).rows(TRACK_SCHEMA.names, version=plan.base_version)
    propagator = catalogue_at(store, plan.snapshot(ORBITAL_CATALOG).version).propagator
    rows = live_tracks(windows, touched, previous, propagator, plan.as_of_ns)
    counts = {"touched": len(touched), "windows": windows.num_rows}
    receipt = store.merge(plan, store.frame(TRACKS, rows), update_when="new.as_of_ns >= old.as_of_ns")
    return materialized(store, receipt, **counts, **_lives(store))


@table_asset(REFINED_ELEMENTS, deps=[tracks, FUSED_TRACKS.name, ORBITAL_CATALOG.name], pool="catalog")
def refined_elements(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """Mean elements of tracked objects, corrected by their own windows of the last day, where that tells clearly more.

    The sensor `own_elements` offers them to the catalogue as one more source, below the surveillance network's priority
    and above republished sets.
    """
    store = lake.open()
    plan = store.plan(REFINED_ELEMENTS, consume=[TRACKS], observe=[FUSED_TRACKS, ORBITAL_CATALOG])
    columns = ["norad_id", "state", "epoch_time_ns", "windows", "manoeuvre_time_ns"]
    chosen = due(store.new_rows(plan, TRACKS, columns), store.log(REFINED_ELEMENTS).rows(["norad_id", "epoch_time_ns"]))
    if not chosen.num_rows:
        return nothing_new(store, plan, "no track is due: too few windows, or refined within half an hour")
    numbers = chosen["norad_id"].combine_chunks()
    held = plan.snapshot(FUSED_TRACKS).sequence
    windows = standing_windows(store, held, numbers, pc.min(chosen["epoch_time_ns"]).as_py() - ARC_NS)
    entries = store.log(ORBITAL_CATALOG).rows(
        [*ElementSets.__dataclass_fields__, "object_name", "international_designator"],
        ds.field("norad_id").isin(numbers),
        version=plan.snapshot(ORBITAL_CATALOG).version,
    )
    published = {row["norad_id"]: row for row in entries.to_pylist()}
    rows = refined(windows, chosen, published, plan.as_of_ns)
    receipt = store.append(plan, store.frame(REFINED_ELEMENTS, rows), counts={"due": len(numbers)})
    better = pc.divide(rows["published_sigma_m"], rows["position_sigma_m"])
    facts = {"median_gain": pc.quantile(better, 0.5)[0].as_py()} if rows.num_rows else {}
    return materialized(store, receipt, due=len(numbers), **facts)


@table_asset(PROVISIONAL_ELEMENTS, deps=[OBSERVATIONS.name, FUSED_TRACKS.name, ORBITAL_CATALOG.name], pool="catalog")
def provisional_elements(lake: LakeResource, fusion: FusionResource) -> dg.MaterializeResult[Any]:
    """Objects that no catalogue knows: orbits of the readings that match nothing, once they are confirmed.

    They get an analyst's number from 80000 on, and the sensor `own_elements` offers them to the catalogue: from then on
    they are tracked and screened like any other.
    """
    store = lake.open()
    plan = store.plan(PROVISIONAL_ELEMENTS, consume=[FUSED_TRACKS], observe=[ORBITAL_CATALOG])
    readings = closed_readings(store, plan)
    if not readings.num_rows:
        return nothing_new(store, plan, "no reading of the last closed windows is without an object")
    found = list(tracklets(readings))
    entries = store.log(ORBITAL_CATALOG).rows(["norad_id"], version=plan.snapshot(ORBITAL_CATALOG).version)
    known = store.log(PROVISIONAL_ELEMENTS).rows(PROVISIONAL_SCHEMA.names)
    rows = discovered(found, known, entries["norad_id"].to_pylist(), fusion.window_ns, plan.as_of_ns)
    facts = {"uncorrelated_readings": readings.num_rows, "tracklets": len(found)}
    if not rows.num_rows:
        return nothing_new(store, plan, "no unknown object is confirmed that was not before", **facts)
    receipt = store.append(plan, store.frame(PROVISIONAL_ELEMENTS, rows), counts=facts)
    new = pc.sum(pc.invert(pc.is_in(rows["norad_id"], known["norad_id"].combine_chunks()))).as_py()
    return materialized(store, receipt, new_objects=new, **facts)


def closed_readings(store: Lake, plan: Plan) -> pa.Table:
    """The readings of the last closed windows that no standing fit uses, as the newest commit of fused_tracks saw."""
    upto = plan.window(FUSED_TRACKS).upto_sequence
    open_from_ns, observed = closed_before(store, plan)
    if open_from_ns <= 0:
        return OBSERVATIONS.arrow_schema.empty_table().select(READING_COLUMNS)
    since_ns, time_ns = open_from_ns - MEMORY_NS, ds.field("sensor_time_ns")
    known = ds.field(COMMIT_SEQUENCE) <= observed
    readings = store.log(OBSERVATIONS).rows(READING_COLUMNS, known & (time_ns >= since_ns) & (time_ns < open_from_ns))
    fitted = (ds.field("window_start_ns") >= since_ns) & (ds.field(COMMIT_SEQUENCE) <= upto)
    used = standing_keys(store.log(FUSED_TRACKS), ["observation_ids"], where=fitted)["observation_ids"]
    return uncorrelated(readings, pc.list_flatten(used))


def standing_windows(store: Lake, upto_sequence: int, numbers: pa.Array, since_ns: int) -> pa.Table:
    """The window fits of these objects since then that hold, by the commits up to ``upto_sequence``."""
    known = (ds.field("window_start_ns") >= since_ns) & (ds.field(COMMIT_SEQUENCE) <= upto_sequence)
    return standing_keys(store.log(FUSED_TRACKS), WINDOW_COLUMNS, where=known & ds.field("norad_id").isin(numbers))


def _lives(store: Lake) -> dict[str, Any]:
    """How many tracks are in each state, and which objects are suspected of a manoeuvre."""
    rows = store.log(TRACKS).rows(["norad_id", "state", "manoeuvre_time_ns", "manoeuvre_speed_m_s", "position_sigma_m"])
    states = Counter(rows["state"].to_pylist())
    suspected = rows.filter(rows["manoeuvre_time_ns"].is_valid()).sort_by([("manoeuvre_time_ns", "descending")])
    return {
        **{state: states[state] for state in STATES},
        "median_position_sigma_m": pc.quantile(rows["position_sigma_m"], 0.5)[0].as_py() if rows.num_rows else None,
        "suspected_manoeuvres": suspected.num_rows,
        **({"manoeuvres": dg.MetadataValue.md(markdown_table(suspected.slice(0, 5)))} if suspected.num_rows else {}),
    }


def windows_to_fit(arrived: pa.Table, landed: pa.Table, first_open_ns: int, window_ns: int) -> tuple[list[int], int]:
    """Starts of the windows to fit again, and how many new observations came too late for theirs (DP3-Q4).

    ``arrived`` are the new observations, ``landed`` the new raw records. A closed window is fitted again for what was
    reprocessed (E26), be it new as an observation or known as a late one.
    """
    returned = pa.concat_tables(rows.select(["sensor_time_ns", "reprocess_count"]) for rows in (arrived, landed))
    returned = returned.filter(pc.is_valid(returned["reprocess_count"])).column("sensor_time_ns").drop_null()
    live = arrived.filter(pc.is_null(arrived["reprocess_count"])).column("sensor_time_ns")
    is_late = pc.less(live, first_open_ns)
    times = [*live.filter(pc.invert(is_late)).to_pylist(), *returned.to_pylist()]
    return sorted({window_start(time_ns, window_ns) for time_ns in times}), pc.sum(is_late).as_py() or 0


def _facts(store: Lake, plan: Plan, marks: dict[str, int], counts: dict[str, int]) -> dict[str, Any]:
    written = store.log(FUSED_TRACKS).rows_of((plan.sequence - 1, plan.sequence), ["op", "norad_id"])
    inserts = pc.sum(pc.equal(written.column("op"), "insert")).as_py() or 0
    lag = (
        {} if PIPELINE not in marks else {"watermark_lag_s": (plan.as_of_ns - marks[PIPELINE]) / NANOSECONDS_PER_SECOND}
    )
    return {
        "windows_fitted": counts["windows"],
        "inserts": inserts,
        "retracts": written.num_rows - inserts,
        "objects": len(pc.unique(written.column("norad_id"))),
        "late_observations": counts["late"],
        "skewed_observations": counts["skewed"],
        "watermarks": dg.MetadataValue.md(_trail(marks, counts)),
        **lag,
    }


def _trail(marks: dict[str, int], counts: dict[str, int]) -> str:
    """How complete each kind is, and whose lag it is: the source's until reception, ours since then (DP3-O2)."""
    lines = ["| kind | complete up to | source lag | pipeline lag |", "|---|---|---|---|"]
    for kind, mark in marks.items():
        lags = [counts.get(f"{kind}_{whose}_lag_ms") for whose in ("source", "pipeline")]
        told = ["–" if lag is None else f"{lag / 1000:.1f} s" for lag in lags]
        lines.append(f"| {kind} | {iso(mark)} | {told[0]} | {told[1]} |")
    return "\n".join(lines)
