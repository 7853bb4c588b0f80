"""From landing zones to a bronze table: take the next segments, commit their records, clear the zones."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import dagster as dg
from upath import UPath

from sda_platform import faults
from sda_platform.lake.assets import materialized, nothing_new
from sda_platform.lake.checkpoint import SegmentRef
from sda_platform.lake.lake import Lake
from sda_platform.lake.landing.backlog import backlog_of
from sda_platform.lake.landing.decoding import DecodedBatch, Decoder, decode_batch, segment_counts
from sda_platform.lake.landing.segments import LoadedSegment
from sda_platform.lake.landing.trials import Trials
from sda_platform.lake.landing.zone import LandingZone
from sda_platform.lake.landing.zone_asset import zone_key
from sda_platform.lake.resource import LakeResource, LandingResource
from sda_platform.lake.table import Table


def land(
    lake: LakeResource,
    landing: LandingResource,
    table: Table,
    decoder: Decoder,
    *,
    tell: Callable[[dg.AssetObservation], None],
) -> dg.MaterializeResult[Any]:
    """Take the next segments of the zones of ``table``, commit their records, clear the zones and report it."""
    store, zones = lake.open(), landing.zones(table.zones)
    # One head for both: a commit that comes between taking and planning must make this plan lose, not follow it.
    head = store.head(table)
    note = zones[0].root.parent / ".decoding" / f"{table.name}.json" if store.notes_trials else None
    trials = Trials.load(note, store.owners) if note else Trials()
    bounds = {**landing.batch_bounds, "max_segments": trials.bounded(landing.batch_bounds["max_segments"])}
    taken = store.take(zones, table, head, **bounds, orphaned_before_s=landing.orphaned_before_s())
    faults.reach("bronze.taken", table.name)
    batch = _decoded(store, table, trials.judged(taken), decoder, trials, note)
    plan = store.plan_landing(table, head, batch.segments)
    if plan.is_empty:
        return nothing_new(store, plan)
    receipt = store.append(plan, store.frame(table, batch.rows), counts=batch.counts)
    store.acknowledge(zones, table)
    faults.reach("bronze.acknowledged", table.name)
    for zone in zones:
        consumed = [s for s in batch.segments if s.zone == zone.feed]
        if consumed:
            tell(_emptied(zone, consumed))
    return materialized(store, receipt, **batch.counts)


def _decoded(
    store: Lake, table: Table, segments: Sequence[LoadedSegment], decoder: Decoder, trials: Trials, note: UPath | None
) -> DecodedBatch:
    """The rows of ``segments``; while they are decoded, ``note`` says so."""
    if note is None or not segments:
        return decode_batch(table, segments, decoder)
    begun = trials.begin(note, segments, store.owners.own())
    batch = decode_batch(table, segments, decoder)
    faults.reach("bronze.decoded", table.name)
    begun.end(note)
    return batch


def _emptied(zone: LandingZone, segments: Sequence[SegmentRef]) -> dg.AssetObservation:
    """What was taken from a zone, whichever zone's sensor asked for the run, and what still waits there."""
    records = sum(s.records for s in segments)
    facts: dict[str, Any] = {"segments": len(segments), "records": records, "newest": segments[-1].name}
    facts |= segment_counts(segments)
    left = backlog_of(zone, time.time()).metadata
    return dg.AssetObservation(asset_key=zone_key(zone.feed), metadata={**facts, **left})
