"""From landing zones to a bronze table: take the next segments, commit their records, clear the zones."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dagster as dg

from sda_platform import faults
from sda_platform.lake import intake
from sda_platform.lake.assets import materialized, nothing_new
from sda_platform.lake.checkpoint import SegmentRef
from sda_platform.lake.decoding import Decoder, decode_batch
from sda_platform.lake.resource import LakeResource, LandingResource
from sda_platform.lake.table import Table


def land(
    lake: LakeResource,
    landing: LandingResource,
    table: Table,
    feeds: Sequence[str],
    decoder: Decoder,
    *,
    tell: Callable[[dg.AssetObservation], None],
) -> dg.MaterializeResult[Any]:
    """Take the next segments of ``feeds``, commit their records to ``table``, clear the zones and ``tell`` so."""
    store, zones = lake.open(), landing.zones(feeds)
    # One head for both: a commit that comes between taking and planning must make this plan lose, not follow it.
    head = store.head(table)
    taken = intake.take(zones, head, **landing.batch_bounds)
    faults.reach("bronze.taken", table.name)
    batch = decode_batch(table, taken, decoder)
    plan = store.plan_landing(table, head, batch.segments)
    if plan.is_empty:
        return nothing_new(store, plan)
    receipt = store.append(plan, store.frame(table, batch.rows), counts=batch.counts)
    intake.finish_last_commit(zones, store.head(table))
    faults.reach("bronze.acknowledged", table.name)
    for emptied in _emptied_zones(batch.segments):
        tell(emptied)
    return materialized(store, receipt, **batch.counts)


def _emptied_zones(segments: Sequence[SegmentRef]) -> Iterator[dg.AssetObservation]:
    """An observation of every landing zone that was emptied, whichever zone's sensor asked for the run."""
    for zone in sorted({s.zone for s in segments}):
        taken = [s for s in segments if s.zone == zone]
        records = sum(s.records for s in taken)
        facts: dict[str, Any] = {"segments": len(taken), "records": records, "newest": taken[-1].name}
        yield dg.AssetObservation(asset_key=["landing", zone], metadata=facts)
