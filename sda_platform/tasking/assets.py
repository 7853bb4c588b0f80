"""Assets of tasking: observation_requests → pass_windows → pass_schedule → task_outcomes."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame

from sda_platform.catalog.orbits import Catalogue, catalogue_at
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import iso
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.fusion.tables import TRACKS
from sda_platform.ground.tables import FLEET_MEMBERSHIP
from sda_platform.lake.correction_log import corrected, fact_schema
from sda_platform.lake.executors import Given, Stored, apply
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.selections import Above
from sda_platform.lake.table import Table
from sda_platform.orbit_determination.tables import PROVISIONAL_ELEMENTS
from sda_platform.orchestration.declarations import table_asset
from sda_platform.orchestration.jobs import SENSOR_TASKING
from sda_platform.orchestration.leases import LeaseResource, without_leases
from sda_platform.orchestration.materialization import materialized, nothing_new, shown_table, with_console
from sda_platform.orchestration.resources import LakeResource
from sda_platform.recovery.verification import broken_correction_logs
from sda_platform.tasking import demand, planning, windows
from sda_platform.tasking.absent_windows import with_causes
from sda_platform.tasking.checks import (
    MAX_WAIT_S,
    double_bookings,
    every_request_is_answered,
    every_task_has_an_outcome,
    inverted_windows,
)
from sda_platform.tasking.outages import FLEET_COLUMNS, is_affected, is_closed, outages, shown_outages
from sda_platform.tasking.reports import shown_closures, shown_outcomes, shown_schedule
from sda_platform.tasking.resource import TaskingResource
from sda_platform.tasking.stored_outcomes import REVIEWED_NS, booked_still, failed_tasks, outcomes
from sda_platform.tasking.stored_rows import StoredRows
from sda_platform.tasking.tables import OBSERVATION_REQUESTS, PASS_SCHEDULE, PASS_WINDOWS, TASK_OUTCOMES
from sda_platform.tasking.task_outcomes import SHARE_COLUMNS, SHARE_MEMORY_NS, used_ns
from sda_platform.units import DAY_NS, HOUR_NS, SECOND_NS

REFRESH_NS = 600 * SECOND_NS
"""Without new input, requests and schedule are computed again after so long: deadlines come nearer."""
# Its passes over the horizon, in raw records (`executors.apply`).
_WORK_OF_AN_OBJECT = 100


@table_asset(OBSERVATION_REQUESTS, jobs=[SENSOR_TASKING], balance=[broken_correction_logs], max_wait_s=MAX_WAIT_S)
def observation_requests(lake: LakeResource, tasking: TaskingResource) -> dg.MaterializeResult[Any]:
    """What should be observed, why, and by when: conjunctions that an observation would decide, new and lost objects.

    The expected gain is that of one radar pass: how much the covariance of the object would shrink, in a conjunction's
    encounter plane at TCA. A request whose reason is gone is retracted.
    """
    store = lake.open()
    plan = store.plan(OBSERVATION_REQUESTS, settings={"tasking": tasking.recorded()})
    if not _is_due(plan):
        return nothing_new(store, plan)
    stored = StoredRows.of(store, plan)
    known = stored.current(OBSERVATION_REQUESTS, ["requested_time_ns"]).to_pylist()
    rows = demand.requests(
        stored.current(
            CONJUNCTION_ASSESSMENTS,
            demand.ASSESSMENT_COLUMNS,
            # The TCA of one event moves by minutes: of those ahead, every entry is read.
            ds.field("tca_time_ns") > plan.as_of_ns - DAY_NS,
        ),
        store.log(TRACKS).rows(demand.TRACK_COLUMNS, version=plan.window(TRACKS).upto_version),
        stored.rows(PROVISIONAL_ELEMENTS, ["norad_id"]),
        tasking.owners(),
        {row["request_id"]: row["requested_time_ns"] for row in known},
        plan.as_of_ns,
        demand.DemandRules(wanted_sigma_km=tasking.wanted_sigma_m / 1e3),
    )
    entries = _corrections(store, plan, rows)
    receipt = store.append(plan, entries, counts={"requests": len(rows)})
    by_class = Counter(f"class_{row['priority_class']}" for row in rows)
    return materialized(
        store, receipt, requests=len(rows), **by_class, reasons=dict(Counter(r["reason"] for r in rows))
    )


@table_asset(
    PASS_WINDOWS,
    jobs=[SENSOR_TASKING],
    balance=[broken_correction_logs, inverted_windows],
    max_wait_s=MAX_WAIT_S,
)
def pass_windows(lake: LakeResource, tasking: TaskingResource) -> dg.MaterializeResult[Any]:
    """When each ground sensor can observe each requested object over the horizon: rise, culmination, set, directions.

    A telescope needs a dark site, a lit object, and the Moon far from it. A new element set moves the windows: the old
    ones are retracted.
    """
    store = lake.open()
    plan = store.plan(PASS_WINDOWS, settings={"tasking": tasking.recorded()})
    start_ns, end_ns = windows.span(plan.as_of_ns, tasking.horizon_h)
    if plan.is_empty and plan.previous and plan.previous.watermarks.get("searched_from_ns") == start_ns:
        return nothing_new(store, plan)
    catalogue = catalogue_at(store, plan.window(ORBITAL_CATALOG).upto_version)
    wanted = StoredRows.of(store, plan).current(OBSERVATION_REQUESTS, ["norad_id"])["norad_id"].to_numpy()
    chosen = np.arange(len(catalogue)) if tasking.scope == "all" else catalogue.positions(wanted)
    found = windows.found_windows(
        store.session,
        catalogue.propagator.take(chosen),
        list(tasking.network().values()),
        start_ns,
        end_ns,
        least_s=tasking.least_window_s,
        at_once=tasking.at_once,
    )
    entries = apply(
        store,
        plan,
        partial(_corrected, PASS_WINDOWS, as_of_ns=plan.as_of_ns),
        Stored(PASS_WINDOWS, "pass_id", where=Above("los_time_ns", start_ns)),
        Given(found, "pass_id"),
        work=_WORK_OF_AN_OBJECT * len(chosen),
    )
    counts = {"objects": len(chosen)}
    receipt = store.append(plan, entries, counts=counts, watermarks={"searched_from_ns": start_ns})
    return materialized(store, receipt, span=f"{iso(start_ns)} to {iso(end_ns)}", **counts)


@table_asset(
    PASS_SCHEDULE,
    jobs=[SENSOR_TASKING],
    balance=[broken_correction_logs, double_bookings, every_request_is_answered],
    max_wait_s=MAX_WAIT_S,
    stand_ins=without_leases,
)
def pass_schedule(lake: LakeResource, tasking: TaskingResource, leases: LeaseResource) -> dg.MaterializeResult[Any]:
    """Which sensor observes which object when; and each request that no sensor can serve in time, with the reason.

    By priority class, then fair share of the owners, then deadline. What begins within minutes is not moved. Nothing is
    planned for a sensor whose agent has failed or left, or while it is closed (`closures.csv`). Of several platforms
    the one that holds the lease schedules.
    """
    with leases.guarded(lake.open(), PASS_SCHEDULE.name) as store:
        return with_console(_scheduled(store, tasking), lake.home, "schedule")


def _scheduled(store: Lake, tasking: TaskingResource) -> dg.MaterializeResult[Any]:
    plan = store.plan(PASS_SCHEDULE, settings={"tasking": tasking.recorded()})
    stored = StoredRows.of(store, plan)
    existing = stored.current(PASS_SCHEDULE, planning.BOOKING_COLUMNS).to_pylist()
    antennas = tasking.antennas()
    out = outages(stored.rows(FLEET_MEMBERSHIP, FLEET_COLUMNS).to_pylist(), antennas, plan.as_of_ns)
    failed = failed_tasks(stored, plan.as_of_ns)
    is_changed = is_affected(existing, out, plan.as_of_ns) or is_closed(existing, antennas, plan.as_of_ns)
    if not _is_due(plan) and not is_changed and not booked_still(failed, existing):
        return nothing_new(store, plan)
    requests = stored.current(OBSERVATION_REQUESTS, planning.REQUEST_COLUMNS).to_pylist()
    ahead = ds.field("los_time_ns") > plan.as_of_ns
    offered = stored.current(PASS_WINDOWS, planning.WINDOW_COLUMNS, ahead).to_pylist()
    # Of earlier ones the owners' shares are made.
    recent = ds.field("deadline_time_ns") > plan.as_of_ns - SHARE_MEMORY_NS
    outcome, rows = planning.planned(
        requests,
        offered,
        existing,
        {name: antenna for name, antenna in antennas.items() if name not in out},
        {sensor.source_id: sensor.min_elevation_deg for sensor in tasking.network().values()},
        as_of_ns=plan.as_of_ns,
        observation_ns=round(tasking.observation_s * SECOND_NS),
        rules=tasking.rules(),
        used_ns=used_ns(stored.rows(PASS_SCHEDULE, SHARE_COLUMNS, recent).to_pylist(), plan.as_of_ns),
        failed=failed,
    )
    rows = with_causes(rows, _catalogue(store, plan), *windows.span(plan.as_of_ns, tasking.horizon_h))
    # What was observed stays on record, when its request is gone; all else follows the new plan.
    done = [row["request_id"] for row in existing if (row["end_time_ns"] or plan.as_of_ns + 1) <= plan.as_of_ns]
    kept = sorted(set(done) - {row["request_id"] for row in rows})
    entries = _corrections(store, plan, rows, kept)
    receipt = store.append(plan, entries, counts={"requests": len(rows), "scheduled": len(outcome.booked)})
    shown = shown_schedule(rows, offered, plan.as_of_ns)
    ahead_ns = plan.as_of_ns, plan.as_of_ns + round(tasking.horizon_h * HOUR_NS)
    if closures := shown_closures(tasking.closures_listed(), *ahead_ns):
        shown["closures"] = shown_table(closures)
    if out:
        shown["sensors_out_of_service"] = shown_table(shown_outages(out, existing, rows, plan.as_of_ns))
    return materialized(store, receipt, **shown)


@table_asset(
    TASK_OUTCOMES,
    jobs=[SENSOR_TASKING],
    balance=[broken_correction_logs, every_task_has_an_outcome],
    max_wait_s=MAX_WAIT_S,
)
def task_outcomes(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """What became of each scheduled observation: its command, its observations, its request, and what it changed.

    The realised gain has the measure of the expected one. Observations are attributed to the task of their sensor,
    object and time; of a window fit they have their share. A task is concluded for a day after its beginning.
    """
    store = lake.open()
    plan = store.plan(TASK_OUTCOMES)
    if not _is_due(plan):
        return nothing_new(store, plan)
    since_ns = plan.as_of_ns - REVIEWED_NS
    rows = [each.row() for each in outcomes(StoredRows.of(store, plan), since_ns, plan.as_of_ns)]
    entries = apply(
        store,
        plan,
        partial(_corrected, TASK_OUTCOMES, as_of_ns=plan.as_of_ns),
        Stored(TASK_OUTCOMES, "task_id", where=Above("start_time_ns", since_ns)),
        Given(pa.Table.from_pylist(rows, schema=fact_schema(TASK_OUTCOMES)), "task_id"),
        work=len(rows),
    )
    receipt = store.append(plan, entries, counts={"tasks": len(rows)})
    return with_console(materialized(store, receipt, **shown_outcomes(rows)), lake.home, "sensors")


def _catalogue(store: Lake, plan: Plan) -> Catalogue | None:
    """Return the catalogue as the plan pins it; a commit from before it was read has none."""
    version = next((each.version for each in plan.snapshots if each.table == ORBITAL_CATALOG.name), -1)
    return catalogue_at(store, version) if version >= 0 else None


def _is_due(plan: Plan) -> bool:
    """Return whether there is new input, or the last commit is old."""
    return not plan.is_empty or (plan.previous is not None and plan.as_of_ns - plan.previous.as_of_ns >= REFRESH_NS)


def _corrections(store: Lake, plan: Plan, rows: list[dict[str, Any]], kept: Sequence[str] = ()) -> pa.Table | DataFrame:
    """Return the entries that change the plan's table, one of requests, to ``rows``; requests ``kept`` stay as they
    are.
    """
    key = "request_id"
    fresh = pa.Table.from_pylist(rows, schema=fact_schema(plan.table))
    transform = partial(_corrected, plan.table, kept=kept, as_of_ns=plan.as_of_ns)
    work = store.log(plan.table).row_count()
    return apply(store, plan, transform, Stored(plan.table, key), Given(fresh, key), work=work)


def _corrected(
    table: Table, entries: pa.Table, fresh: pa.Table, *, kept: Sequence[str] = (), as_of_ns: int
) -> pa.Table:
    reviewed = pc.invert(pc.is_in(entries[table.key[0]], value_set=pa.array(kept, pa.string())))
    return corrected(table, entries.filter(reviewed), fresh, as_of_ns=as_of_ns)
