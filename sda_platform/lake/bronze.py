"""From landing zones to a bronze table: every record of the next segments becomes one row, good or bad.

A segment that is not what its metadata promises becomes one row (record number -1) that tells its defect. What a
record means is the room's business: it brings the decoder.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform import faults
from sda_platform.formats.segments import SegmentMeta
from sda_platform.lake import intake
from sda_platform.lake.assets import materialized, nothing_new
from sda_platform.lake.checkpoint import SegmentRef
from sda_platform.lake.landing import LoadedSegment, segment_sha256
from sda_platform.lake.resource import LakeResource, LandingResource
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

# Decodes a segment into one row per record: record_number, payload, error_kind, error, and what it says.
Decoder = Callable[[bytes, SegmentMeta], pa.Table]

WHOLE_SEGMENT = -1


@dataclass(frozen=True)
class DecodedBatch:
    """Rows of one commit, and the segments they came from."""

    rows: pa.Table
    segments: tuple[SegmentRef, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Records landed, valid and dead; valid + dead = landed by conservation, which a check verifies."""
        dead = self.rows.num_rows - self.rows.column("error_kind").null_count
        return {"landed": sum(s.records for s in self.segments), "valid": self.rows.num_rows - dead, "dead": dead}


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


def decode_batch(table: Table, segments: Sequence[LoadedSegment], decoder: Decoder) -> DecodedBatch:
    """Decode ``segments`` into rows with the columns of ``table``."""
    schema = pa.schema([f for f in table.arrow_schema if f.name != COMMIT_SEQUENCE])
    tables, refs = [schema.empty_table()], []
    for segment in segments:
        rows, checked = _decode(segment, decoder)
        tables.append(_conform(_with_provenance(rows, checked), schema))
        refs.append(checked.ref(rows.num_rows))
    return DecodedBatch(pa.concat_tables(tables), tuple(refs))


def _decode(segment: LoadedSegment, decoder: Decoder) -> tuple[pa.Table, LoadedSegment]:
    if segment.defect is None and segment.meta is not None:
        rows = decoder(segment.data, segment.meta)
        if rows.num_rows == segment.meta.records:
            return rows, segment
        defect = f"{segment.name}: metadata says {segment.meta.records} records, found {rows.num_rows}"
        sha256 = segment_sha256(segment.zone, segment.name, segment.data, defect)
        segment = replace(segment, defect=defect, sha256=sha256)
    return _defect_row(segment), segment


def _defect_row(segment: LoadedSegment) -> pa.Table:
    row = {
        "record_number": WHOLE_SEGMENT,
        "error_kind": "bad_segment",
        "error": f"{segment.zone}/{segment.defect}",
        "received_time_ns": segment.meta.sealed_time_ns if segment.meta else 0,
    }
    return pa.Table.from_pylist([row])


def _with_provenance(rows: pa.Table, segment: LoadedSegment) -> pa.Table:
    facts: dict[str, Any] = {"segment_sha256": segment.sha256, "segment_name": segment.name, "feed": segment.zone}
    if "received_time_ns" not in rows.column_names:
        facts["received_time_ns"] = segment.meta.sealed_time_ns if segment.meta else 0
    for name, value in facts.items():
        rows = rows.append_column(name, pa.array([value] * rows.num_rows))
    if segment.defect is not None:
        return rows
    numbers = pc.cast(rows.column("record_number"), pa.string())
    prefix = pa.scalar(f"{segment.zone}/{segment.name} record ")
    told = pc.binary_join_element_wise(prefix, numbers, pa.scalar(": "), rows.column("error"), "")
    return rows.set_column(rows.column_names.index("error"), "error", told)


def _conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        pc.cast(rows.column(f.name), f.type) if f.name in rows.column_names else pa.nulls(rows.num_rows, f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
