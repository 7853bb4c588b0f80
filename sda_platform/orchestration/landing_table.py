"""From landing zones to a bronze table: take the next segments, commit their records, clear the zones.

A landing table is declared with its zones and the decoder of their segments; the rest follows.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg

from sda_platform import failpoints
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Head
from sda_platform.lake.manifest import SegmentRef, Settings
from sda_platform.lake.table import Table
from sda_platform.landing.decode_attempts import DecodeAttempts
from sda_platform.landing.decoding import DecodedBatch, Decoder, decode_batch, segment_counts
from sda_platform.landing.segments import LoadedSegment
from sda_platform.landing.table_zones import TableZones
from sda_platform.landing.zone import LandingZone
from sda_platform.orchestration.backlog import backlog_of
from sda_platform.orchestration.declarations import table_asset
from sda_platform.orchestration.freshness import newest_if_any
from sda_platform.orchestration.jobs import Job
from sda_platform.orchestration.materialization import materialized, nothing_new
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.orchestration.table_checks import DataFreshness
from sda_platform.orchestration.zone_asset import ZoneContents, zone_asset, zone_key
from sda_platform.units import DAY_S

ARRIVES_IF_EVER = DataFreshness("files still arrive, once any came", 3 * DAY_S, newest_if_any("received_time_ns"))


@dataclass(frozen=True)
class Decoding:
    """The decoder of a landing table, and the tables that it reads, at the heads where it does."""

    decoder: Decoder
    observed: tuple[tuple[Table, Head], ...] = ()


def landing_asset(
    table: Table,
    *,
    jobs: Sequence[Job],
    zones: Mapping[str, ZoneContents],
    freshness: DataFreshness = ARRIVES_IF_EVER,
    priority: int = 0,
) -> Callable[[Callable[[Lake], Decoding]], dg.AssetsDefinition]:
    """Declare the asset of a landing table; the docstring of the function is its description in the UI.

    The function gives the decoder. The first of ``jobs`` empties the zones; ``zones`` says by feed
    what is in them. The other arguments are those of `table_asset`.
    """

    def declare(decoding: Callable[[Lake], Decoding]) -> dg.AssetsDefinition:
        def body(
            context: dg.AssetExecutionContext, lake: LakeResource, landing: LandingResource
        ) -> dg.MaterializeResult[Any]:
            found = decoding(lake.open())
            return land(lake, landing, table, found.decoder, report=context.log_event, observed=found.observed)

        # The description and the module are those of the function, the parameters those of the body.
        for name in ("__doc__", "__name__", "__qualname__", "__module__"):
            setattr(body, name, getattr(decoding, name))
        specs = [zone_asset(feed, zones[feed], table, jobs[0]) for feed in table.zones]
        declared = table_asset(table, jobs=jobs, freshness=freshness, zones=specs, priority=priority, written=decoding)
        return declared(body)

    return declare


def land(
    lake: LakeResource,
    landing: LandingResource,
    table: Table,
    decoder: Decoder,
    *,
    report: Callable[[dg.AssetObservation], None],
    observed: Sequence[tuple[Table, Head]] = (),
    settings: Settings | None = None,
) -> dg.MaterializeResult[Any]:
    """Take the next segments of the zones of ``table``, commit their records, clear the zones and report it.

    ``observed``: the tables that the decoder reads, at the heads where it does; the manifest names them, and the
    ``settings`` on which rows depend.
    """
    store, inputs = lake.open(), landing.zones_of(table)
    # One head for both: a commit that comes between taking and planning must make this plan lose, not follow it.
    head = store.head(table)
    note = inputs.attempts_file
    trials = DecodeAttempts.load(note, inputs.owners) if note else DecodeAttempts()
    most = trials.bounded(inputs.max_segments)
    taken = inputs.take(store.log(table), head, max_segments=most, sound_sources=trials.sound_sources)
    failpoints.hit("bronze.taken", table.name)
    batch = _decoded(inputs, table, trials.judged(taken), decoder, trials)
    plan = store.plan_landing(table, head, batch.segments, observed)
    plan = replace(plan, settings=settings) if settings else plan
    if plan.is_empty:
        return nothing_new(store, plan)
    receipt = store.append(plan, batch.rows, counts=batch.counts)
    inputs.clear(store.head(table))
    failpoints.hit("bronze.acknowledged", table.name)
    for zone in inputs.zones:
        consumed = [s for s in batch.segments if s.zone == zone.feed]
        if consumed:
            report(_emptied(zone, consumed))
    return materialized(store, receipt, **batch.counts)


def _decoded(
    inputs: TableZones, table: Table, segments: Sequence[LoadedSegment], decoder: Decoder, trials: DecodeAttempts
) -> DecodedBatch:
    """Return the rows of ``segments``; while they are decoded, the file of attempts names them."""
    note = inputs.attempts_file
    if note is None or not segments:
        return decode_batch(table, segments, decoder)
    begun = trials.begin(note, segments, inputs.owners.own())
    batch = decode_batch(table, segments, decoder)
    failpoints.hit("bronze.decoded", table.name)
    begun.end(note, batch.sound_sources)
    return batch


def _emptied(zone: LandingZone, segments: Sequence[SegmentRef]) -> dg.AssetObservation:
    """Metadata for a zone: the segments consumed from it by this run of any sensor, and its remaining backlog."""
    records = sum(s.records for s in segments)
    facts: dict[str, Any] = {"segments": len(segments), "records": records, "newest": segments[-1].name}
    facts |= segment_counts(segments)
    left = backlog_of(zone, time.time()).metadata
    return dg.AssetObservation(asset_key=zone_key(zone.feed), metadata={**facts, **left})
