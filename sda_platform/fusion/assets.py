"""Asset of the fusion room: observations → fused_tracks."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.catalog.orbits import catalogue_at
from sda_platform.catalog.tables import ORBITAL_CATALOG
from sda_platform.clock import NANOSECONDS_PER_SECOND, iso
from sda_platform.fusion.resource import FusionResource
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.fusion.transforms import track_corrections
from sda_platform.fusion.watermarks import PIPELINE, advance, is_closed, window_start
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.assets import materialized, nothing_new, table_asset
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.resource import LakeResource


@table_asset(FUSED_TRACKS, deps=[OBSERVATIONS.name, ORBITAL_CATALOG.name], pool="hot")
def fused_tracks(lake: LakeResource, fusion: FusionResource) -> dg.MaterializeResult[Any]:
    """State and covariance of every observed object, one fit per 30 s window, from all sensors that saw it.

    A first fit is inserted as soon as there is evidence; every later observation of the window corrects it by a
    retract and an insert, until the watermark closes the window.
    """
    store = lake.open()
    plan = store.plan(FUSED_TRACKS, consume=[OBSERVATIONS], observe=[ORBITAL_CATALOG])
    if plan.is_empty or plan.snapshot(ORBITAL_CATALOG).sequence == 0:
        return nothing_new(
            store, plan, "nothing new upstream" if plan.is_empty else "no catalogue to associate with yet"
        )
    arrived = store.new_rows(plan, OBSERVATIONS, ["source_kind", "sensor_time_ns"])
    starts_ns, late = open_windows(arrived, plan, fusion)
    propagator = catalogue_at(store, plan.snapshot(ORBITAL_CATALOG).version).propagator
    entries = track_corrections(
        store.snapshot(plan, OBSERVATIONS),
        store.snapshot(plan, FUSED_TRACKS),
        propagator,
        starts_ns=starts_ns or [0],
        window_ns=fusion.window_ns,
        as_of_ns=plan.as_of_ns,
    )
    marks = advance(_marks(plan), _newest_by_kind(arrived), fusion.lateness, plan.as_of_ns)
    receipt = store.append(plan, entries, counts={"late": late, "windows": len(starts_ns)}, watermarks=marks)
    return materialized(store, receipt, **_facts(store, plan, marks, late, len(starts_ns)))


def open_windows(arrived: pa.Table, plan: Plan, fusion: FusionResource) -> tuple[list[int], int]:
    """Starts of the windows to fit again, and how many observations came too late for theirs (DP3-Q4)."""
    closed_at = _marks(plan).get(PIPELINE, 0)
    starts = [window_start(t, fusion.window_ns) for t in arrived.column("sensor_time_ns").to_pylist()]
    late = sum(is_closed(s, fusion.window_ns, closed_at, fusion.lateness) for s in starts)
    taken = {s for s in starts if not is_closed(s, fusion.window_ns, closed_at, fusion.lateness)}
    return sorted(taken), late


def _marks(plan: Plan) -> dict[str, int]:
    return dict(plan.previous.watermarks) if plan.previous else {}


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
