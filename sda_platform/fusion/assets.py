"""Asset of the fusion room: observations → fused_tracks."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.catalog.orbits import catalogue_at
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import NANOSECONDS_PER_SECOND, iso
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.tables import FIRST_OPEN_WINDOW, FUSED_TRACKS
from sda_platform.fusion.transforms import track_corrections
from sda_platform.fusion.watermarks import PIPELINE, advance, first_open_window, window_start
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake.assets import materialized, nothing_new, table_asset
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.resource import LakeResource


@table_asset(FUSED_TRACKS, deps=[OBSERVATIONS.name, RAW_RECORDS.name, ORBITAL_CATALOG.name], pool="hot")
def fused_tracks(lake: LakeResource, fusion: FusionResource) -> dg.MaterializeResult[Any]:
    """State and covariance of every observed object, one fit per 30 s window, from all sensors that saw it.

    A first fit is inserted as soon as there is evidence; every later observation of the window corrects it by a
    retract and an insert, until the watermark closes the window. What comes back from dead letters has its window
    fitted again even then.
    """
    store = lake.open()
    plan = store.plan(FUSED_TRACKS, consume=[OBSERVATIONS, RAW_RECORDS], observe=[ORBITAL_CATALOG])
    if plan.is_empty or plan.snapshot(ORBITAL_CATALOG).sequence == 0:
        return nothing_new(
            store, plan, "nothing new upstream" if plan.is_empty else "no catalogue to associate with yet"
        )
    before = dict(plan.previous.watermarks) if plan.previous else {}
    first_open_ns = first_open_window(before.get(PIPELINE, 0), fusion.window_ns, fusion.lateness)
    arrived = store.new_rows(plan, OBSERVATIONS, ["source_kind", "sensor_time_ns", "reprocess_count"])
    landed = store.new_rows(plan, RAW_RECORDS, ["sensor_time_ns", "reprocess_count"])
    starts_ns, late = windows_to_fit(arrived, landed, first_open_ns, fusion.window_ns)
    propagator = catalogue_at(store, plan.snapshot(ORBITAL_CATALOG).version).propagator
    entries = track_corrections(
        store.snapshot(plan, OBSERVATIONS),
        store.snapshot(plan, FUSED_TRACKS),
        propagator,
        starts_ns=starts_ns or [0],
        window_ns=fusion.window_ns,
        as_of_ns=plan.as_of_ns,
    )
    marks = advance(before, _newest_by_kind(arrived), fusion.lateness, plan.as_of_ns)
    counts = {"late": late, "windows": len(starts_ns)}
    receipt = store.append(plan, entries, counts=counts, watermarks={**marks, FIRST_OPEN_WINDOW: first_open_ns})
    return materialized(store, receipt, **_facts(store, plan, marks, late, len(starts_ns)))


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


def _newest_by_kind(arrived: pa.Table) -> dict[str, int]:
    newest = arrived.group_by("source_kind").aggregate([("sensor_time_ns", "max")])
    pairs = zip(newest.column("source_kind").to_pylist(), newest.column("sensor_time_ns_max").to_pylist(), strict=True)
    return {str(kind): int(time_ns) for kind, time_ns in pairs}


def _facts(store: Lake, plan: Plan, marks: dict[str, int], late: int, windows: int) -> dict[str, Any]:
    written = store.log(FUSED_TRACKS).rows_of((plan.sequence - 1, plan.sequence), ["op", "norad_id"])
    inserts = pc.sum(pc.equal(written.column("op"), "insert")).as_py() or 0
    return {
        "windows_fitted": windows,
        "inserts": inserts,
        "retracts": written.num_rows - inserts,
        "objects": len(pc.unique(written.column("norad_id"))),
        "late_observations": late,
        "watermarks": {kind: iso(mark) for kind, mark in marks.items()},
        "watermark_lag_s": (plan.as_of_ns - marks[PIPELINE]) / NANOSECONDS_PER_SECOND,
    }
