"""A small lake with decisions in it: catalogue, candidates, assessments and alerts, each made from the others."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sda_platform.catalog.tables import ELEMENT_SETS, EPHEMERIDES, ORBITAL_CATALOG
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
)
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.tables import FUSED_TRACKS, TRACKS
from sda_platform.ingest.tables import OBSERVATIONS, RAW_RECORDS
from sda_platform.lake import commit as door
from sda_platform.lake.commit import CommitReceipt
from sda_platform.lake.lake import Lake
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import SegmentRef
from sda_platform.lake.replacement import with_changes
from sda_platform.lake.table import Table
from sda_platform_tests.support.delta_tables import rows_of, with_delta_rs

EVENT = "0934bc66-614c-5d5a-83bf-42e80668b610"
OTHER_EVENT = "5a0e31d2-0000-5000-8000-000000000000"
TABLES = {
    table.name: table
    for table in (
        ELEMENT_SETS, ORBITAL_CATALOG, RAW_RECORDS, OBSERVATIONS, FUSED_TRACKS, TRACKS, CONJUNCTION_CANDIDATES,
        CONJUNCTION_ASSESSMENTS, CONJUNCTION_ALERTS, ALERT_DELIVERIES, RECEIVED_CDMS, EPHEMERIDES,
    )
}  # fmt: skip


def add(lake: Lake, table: Table, *rows: dict[str, Any], segments: Sequence[SegmentRef] = ()) -> Commit:
    """Commit rows to a table as a run of the platform does: with its windows on what it consumes."""
    origin = {"trigger": "a test", "operator": "test"}
    plan = replace(lake.plan(table), run_id="test", origin=origin, segments=tuple(segments))
    content = rows_of(table, rows)
    if not table.replaces_rows:
        receipt: CommitReceipt = door.append(
            lake.log(table), plan, content.drop_columns("commit_sequence"), engine=with_delta_rs
        )
        return receipt.commit
    kept = with_changes(table, lake.current_rows(plan), content.drop_columns("commit_sequence"), plan.sequence)
    return door.overwrite(lake.log(table), plan, kept, changed=len(rows), engine=with_delta_rs).commit


def approach(event_id: str = EVENT, sequence: int = 0, op: str = "insert", **values: Any) -> dict[str, Any]:
    return {"event_id": event_id, "sequence": sequence, "op": op, "norad_id_1": 7, "norad_id_2": 8, **values}


def decide(lake: Lake, event_id: str = EVENT, sequence: int = 0, **values: Any) -> Commit:
    """Candidate, assessment and alert of one event, one commit each; returns the alert's."""
    for table in (CONJUNCTION_CANDIDATES, CONJUNCTION_ASSESSMENTS):
        add(
            lake,
            table,
            approach(event_id, sequence, **{k: v for k, v in values.items() if k in table.arrow_schema.names}),
        )
    named = {k: v for k, v in values.items() if k in CONJUNCTION_ALERTS.arrow_schema.names}
    return add(lake, CONJUNCTION_ALERTS, approach(event_id, sequence, **{"risk": "red", **named}))


def elements(norad_id: int, epoch_ns: int, segment: str = "s", record: int = 0) -> dict[str, Any]:
    return {
        "norad_id": norad_id, "epoch_time_ns": epoch_ns, "segment_sha256": segment, "segment_name": segment,
        "record_number": record,
    }  # fmt: skip
