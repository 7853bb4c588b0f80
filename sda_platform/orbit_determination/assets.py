"""Assets of package orbit_determination.

tracks → refined_elements, refined_ephemerides; uncorrelated observations → provisional_elements;
element sets → element_publications → landing zone.
"""

from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.orbits import ORBIT_COLUMNS
from sda_platform.catalog.space_weather import SpaceWeatherResource
from sda_platform.catalog.tables import ELEMENTS_FEED, ORBITAL_CATALOG
from sda_platform.fusion.assets import current_windows
from sda_platform.fusion.fuse import MARKED_OBSERVATION_COLUMNS
from sda_platform.fusion.lateness import late_observations
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.tables import FUSED_TRACKS, TIME_TAG_BIASES, TRACKS
from sda_platform.fusion.time_bias import corrected_rows
from sda_platform.fusion.time_bias_assets import closed_before, known_corrections
from sda_platform.fusion.watermarks import window_start
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbit_determination.checks import (
    MAX_REFINEMENT_AGE_S,
    TRACKS_ARE_REFINED,
    last_discovery_time,
    shared_observations,
    unpublished_commits,
    unsound_refinements,
)
from sda_platform.orbit_determination.ephemeris_refinement import EPHEMERIS_SCHEMA, withdrawn, without_room
from sda_platform.orbit_determination.ephemeris_refinement import refined_ephemerides as predicted
from sda_platform.orbit_determination.publication import publish
from sda_platform.orbit_determination.recognition import REACH_NS
from sda_platform.orbit_determination.refinement import ARC_NS, MIN_INTERVAL_NS, due, refined
from sda_platform.orbit_determination.resource import RefinementResource
from sda_platform.orbit_determination.tables import (
    ELEMENT_PUBLICATIONS,
    PROVISIONAL_ELEMENTS,
    REFINED_ELEMENTS,
    REFINED_EPHEMERIDES,
)
from sda_platform.orbit_determination.tracklets import tracklets, uncorrelated
from sda_platform.orbit_determination.turns import Turn
from sda_platform.orbit_determination.uncorrelated_tracks import (
    ANGLES_ONLY_MEMORY_NS,
    MEMORY_NS,
    PROVISIONAL_SCHEMA,
    discovered,
)
from sda_platform.orchestration.declarations import table_asset
from sda_platform.orchestration.jobs import ORBIT_DETERMINATION
from sda_platform.orchestration.materialization import materialized, nothing_new
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.orchestration.table_checks import DataFreshness
from sda_platform.recovery.verification import current_keys
from sda_platform.replay.history import History


@table_asset(
    REFINED_ELEMENTS,
    jobs=[ORBIT_DETERMINATION],
    balance=[unsound_refinements],
    freshness=TRACKS_ARE_REFINED,
)
def refined_elements(
    lake: LakeResource, refinement: RefinementResource, weather: SpaceWeatherResource
) -> dg.MaterializeResult[Any]:
    """Mean elements of tracked objects that follow the numerical prediction of their windows, where clearly better.

    `element_publications` publishes them to the catalogue as one more source, below the surveillance network's
    priority and above republished sets. A run refines a limited number of tracks, those of the fleet and of objects in
    open events first.
    """
    store = lake.open()
    refinement, here = refinement.at_present(store), weather.near(store.clock.now_ns())
    settings = {"refinement": refinement.recorded(), "weather": here.recorded()}
    plan = store.plan(REFINED_ELEMENTS, settings=settings)
    if plan.is_empty:
        return nothing_new(store, plan)
    tracks = tracks_read(store, plan)
    chosen, turn = whose_turn(plan, tracks, earlier_sets(store, plan, tracks), refinement)
    if not chosen.num_rows:
        return nothing_new(store, plan, "no track is due: too few windows, or refined lately")
    windows, published = evidence_of(store, plan, chosen)
    rows = refined(windows, chosen, published, plan.as_of_ns, here.dynamics())
    counts = {"due": chosen.num_rows, **turn.counts()}
    receipt = store.append(plan, rows, counts=counts)
    return materialized(store, receipt, due=chosen.num_rows, space_weather=here.stated(), **median_gain(rows))


@table_asset(
    REFINED_EPHEMERIDES,
    jobs=[ORBIT_DETERMINATION],
    balance=[unsound_refinements],
    freshness=TRACKS_ARE_REFINED,
)
def refined_ephemerides(
    lake: LakeResource, refinement: RefinementResource, weather: SpaceWeatherResource
) -> dg.MaterializeResult[Any]:
    """Numerical predictions of tracked objects for a day, with covariances, where clearly better than the set in force.

    Screening and assessments use them above element sets, and below the ephemerides of operators. One ends after a day,
    or with a suspected manoeuvre. A run refines a limited number of tracks, those of the fleet and of objects in open
    events first. At most 200 ephemerides are held; the oldest of other objects make room.
    """
    store = lake.open()
    refinement, here = refinement.at_present(store), weather.near(store.clock.now_ns())
    settings = {"refinement": refinement.recorded(), "weather": here.recorded()}
    plan = store.plan(REFINED_EPHEMERIDES, settings=settings)
    if plan.is_empty:
        return nothing_new(store, plan)
    tracks = tracks_read(store, plan)
    held = store.current_rows(plan).select(["norad_id", "epoch_time_ns", "usable_until_ns"])
    ended = withdrawn(held, tracks, plan.as_of_ns)
    current = held.filter(pc.invert(pc.is_in(held["norad_id"], ended["norad_id"].combine_chunks())))
    chosen, turn = whose_turn(plan, tracks, current, refinement)
    if not chosen.num_rows and not ended.num_rows:
        return nothing_new(store, plan, "no track is due: too few windows, or refined lately")
    rows = EPHEMERIS_SCHEMA.empty_table()
    if chosen.num_rows:
        windows, published = evidence_of(store, plan, chosen)
        rows = predicted(windows, chosen, published, plan.as_of_ns, here.dynamics())
    removed = pa.concat_tables([ended, without_room(current, rows, refinement.first or ())])
    counts = {"due": chosen.num_rows, "ended": ended.num_rows}
    receipt = store.replace(plan, rows, removed=removed, counts={**counts, **turn.counts()})
    return materialized(
        store, receipt, **counts, accepted=rows.num_rows, space_weather=here.stated(), **median_gain(rows)
    )


def tracks_read(store: Lake, plan: Plan) -> pa.Table:
    """Return the tracks that the plan has consumed, with the columns that refinements need."""
    columns = ["norad_id", "state", "epoch_time_ns", "windows", "manoeuvre_time_ns"]
    return store.log(TRACKS).rows(columns, version=plan.window(TRACKS).upto_version)


def earlier_sets(store: Lake, plan: Plan, tracks: pa.Table) -> pa.Table:
    """Number and epoch of the refined element sets that are so new that one of the tracks may not be due."""
    oldest_ns = (pc.min(tracks["epoch_time_ns"]).as_py() or 0) - MIN_INTERVAL_NS
    return store.earlier_rows(plan, ["norad_id", "epoch_time_ns"], ds.field("epoch_time_ns") > oldest_ns)


def whose_turn(
    plan: Plan, tracks: pa.Table, products: pa.Table, refinement: RefinementResource
) -> tuple[pa.Table, Turn]:
    """Return the tracks to refine into one kind of product now, after earlier ``products``, and the turn after it."""
    waiting = due(tracks, products)
    return Turn.of(plan.previous).next(waiting, refinement.first or (), refinement.at_once, plan.as_of_ns)


def evidence_of(store: Lake, plan: Plan, tracks: pa.Table) -> tuple[pa.Table, dict[int, dict[str, Any]]]:
    """Return the windows of these tracks in their last day, and the sets in force of their objects by catalogue
    number.
    """
    numbers = tracks["norad_id"].combine_chunks()
    held = plan.snapshot(FUSED_TRACKS).sequence
    windows = current_windows(store, held, numbers, pc.min(tracks["epoch_time_ns"]).as_py() - ARC_NS)
    entries = store.log(ORBITAL_CATALOG).rows(
        [*ORBIT_COLUMNS, "object_name", "international_designator"],
        ds.field("norad_id").isin(numbers),
        version=plan.snapshot(ORBITAL_CATALOG).version,
    )
    return windows, {row["norad_id"]: row for row in entries.to_pylist()}


def median_gain(rows: pa.Table) -> dict[str, float]:
    """Compute how much better products are than the sets in force, by their sigmas; nothing without products."""
    better = pc.divide(rows["published_sigma_m"], rows["position_sigma_m"])
    return {"median_gain": pc.quantile(better, 0.5)[0].as_py()} if rows.num_rows else {}


@table_asset(
    PROVISIONAL_ELEMENTS,
    jobs=[ORBIT_DETERMINATION],
    balance=[shared_observations],
    freshness=DataFreshness("uncorrelated tracks are processed", MAX_REFINEMENT_AGE_S, last_discovery_time),
)
def provisional_elements(
    lake: LakeResource, fusion: FusionResource, weather: SpaceWeatherResource
) -> dg.MaterializeResult[Any]:
    """Uncatalogued objects: confirmed orbits of uncorrelated tracks.

    They get an analyst satellite number from 80000 on. `element_publications` publishes them to the catalogue; from
    then on they are tracked and screened like any other object.
    """
    store = lake.open()
    here = weather.near(store.clock.now_ns())
    plan = store.plan(PROVISIONAL_ELEMENTS, settings={"fusion": fusion.recorded(), "weather": here.recorded()})
    observations, followed = closed_observations(store, plan, fusion.window_ns)
    if not observations.num_rows:
        return nothing_new(store, plan, "no uncorrelated observation in the last closed windows")
    found = list(tracklets(observations, fusion.network()))
    entries = store.log(ORBITAL_CATALOG).rows(["norad_id"], version=plan.snapshot(ORBITAL_CATALOG).version)
    numbers = store.earlier_rows(plan, ["norad_id"])["norad_id"].combine_chunks()
    since_ns = pc.min(observations["sensor_time_ns"]).as_py() - REACH_NS
    known = store.earlier_rows(plan, PROVISIONAL_SCHEMA.names, ds.field("epoch_time_ns") >= since_ns)
    taken = [*entries["norad_id"].to_pylist(), *numbers.to_pylist()]
    rows = discovered(found, known, taken, followed, fusion.window_ns, plan.as_of_ns, here.dynamics())
    facts = {"uncorrelated_observations": observations.num_rows, "tracklets": len(found)}
    if not rows.num_rows:
        return nothing_new(store, plan, "no newly confirmed unknown object", **facts)
    receipt = store.append(plan, rows, counts=facts)
    new = pc.sum(pc.invert(pc.is_in(rows["norad_id"], numbers))).as_py()
    met_again = rows.num_rows - rows["earlier_epoch_ns"].null_count
    return materialized(store, receipt, new_objects=new, met_again=met_again, space_weather=here.stated(), **facts)


def closed_observations(store: Lake, plan: Plan, window_ns: int) -> tuple[pa.Table, set[int]]:
    """Observations of the last closed windows that no current fit uses, as of the newest commit of fused_tracks.

    Those that came late were never correlated. They may be of any object, and would make a second one of it.
    Times are corrected like those of the fits. Also returns the numbers of the objects with fits there.
    """
    upto = plan.window(FUSED_TRACKS).upto_sequence
    open_from_ns, observed = closed_before(store, plan)
    if open_from_ns <= 0:
        return OBSERVATIONS.arrow_schema.empty_table().select(MARKED_OBSERVATION_COLUMNS), set()
    since_ns, angles_only_since_ns = open_from_ns - MEMORY_NS, open_from_ns - ANGLES_ONLY_MEMORY_NS
    time_ns, start_ns = ds.field("sensor_time_ns"), ds.field("window_start_ns")
    is_angles_only = (ds.field("source_kind") == "optical") & (time_ns >= angles_only_since_ns)
    known = (ds.field(COMMIT_SEQUENCE) <= observed) & (time_ns < open_from_ns)
    observations = store.log(OBSERVATIONS).rows(
        MARKED_OBSERVATION_COLUMNS, known & (is_angles_only | (time_ns >= since_ns))
    )
    # A fit that lost its last angles-only observation was retracted by an entry that has one, so it is not current
    # here.
    has_angles_only = (ds.field("optical_count") > 0) & (start_ns >= angles_only_since_ns)
    fitted = (ds.field(COMMIT_SEQUENCE) <= upto) & (has_angles_only | (start_ns >= since_ns))
    fits = current_keys(store.log(FUSED_TRACKS), ["norad_id", "window_start_ns", "observation_ids"], where=fitted)
    commits = store.log(FUSED_TRACKS).commits_from(plan.window(FUSED_TRACKS).upto_version)
    late = late_observations(store, takewhile(lambda commit: commit.manifest.as_of_ns >= angles_only_since_ns, commits))
    ids = [*pc.list_flatten(fits["observation_ids"]).chunks, *late["observation_id"].chunks]
    left = uncorrelated(observations, pa.chunked_array(ids, pa.string()))
    followed = fits.filter(pc.greater_equal(fits["window_start_ns"], since_ns))["norad_id"]
    starts_ns = range(window_start(angles_only_since_ns, window_ns), open_from_ns, window_ns)
    corrections = known_corrections(store, plan.snapshot(TIME_TAG_BIASES).sequence, starts_ns, window_ns)
    return corrected_rows(left, corrections, window_ns), set(followed.to_pylist())


def _scratch_zone(resources: Mapping[str, Any], _live: Lake, _replayed: History, scratch: Path) -> Mapping[str, Any]:
    """A landing zone below ``scratch``: a replay publishes nothing."""
    return {"landing": resources["landing"].model_copy(update={"root": str(scratch)})}


@table_asset(
    ELEMENT_PUBLICATIONS,
    jobs=[ORBIT_DETERMINATION],
    balance=[unpublished_commits],
    max_wait_s=300.0,
    priority=-5,
    stand_ins=_scratch_zone,
)
def element_publications(lake: LakeResource, landing: LandingResource) -> dg.MaterializeResult[Any]:
    """Ledger of published element sets: the landing segment of each commit.

    The segment is sealed before the ledger's commit. A repeated run seals the same bytes under the same name, which
    changes nothing. The zone feeds `element_sets`; that feedback is not an edge of the graph, which is acyclic.
    """
    store = lake.open()
    plan = store.plan(ELEMENT_PUBLICATIONS)
    if plan.is_empty:
        return nothing_new(store, plan)
    rows = publish(store, plan, landing.zone(ELEMENTS_FEED))
    receipt = store.append(plan, rows)
    return materialized(store, receipt, segments=rows.num_rows, element_sets=pc.sum(rows["element_sets"]).as_py() or 0)
