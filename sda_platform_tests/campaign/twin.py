"""The fault-free twin: the same input, landed at once and run through both pools without a fault; and what of the two
must be equal.

A platform that was hit takes its input in other batches than its twin, so commit sequences, correction numbers and
the instants of processing differ by right. What is current in the end may not: journals are folded, and every column is
compared that states something about the world.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.clock import MissionClock
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.ingest.tables import OBSERVATIONS
from sda_platform.lake.correction_log import INSERT, CorrectionLogModel
from sda_platform.lake.lake import Lake, without_session
from sda_platform.lake.log import TableLog
from sda_platform.lake.table import COMMIT_SEQUENCE, Provenance, Table
from sda_platform.landing.consumed import is_kept
from sda_platform.registry import TABLES
from sda_platform_tests.campaign.job_process import run_job
from sda_platform_tests.campaign.platform import SETTINGS, standing_clock
from sda_platform_tests.campaign.world import Delivery

# The ledger of deliveries shows which batches there were; rule O6 holds it against the subscriber.
COMPARED = tuple(table for table in TABLES if table is not ALERT_DELIVERIES)
LAST_JOB = "catalog_to_alerts"
"""Screens what tracks show to manoeuvre. Before a comparison both platforms run it after the last observation."""


def run_twin(home: Path, deliveries: Sequence[Delivery], engine_address: str) -> Lake:
    """Land all of ``deliveries`` in a fresh ``home`` and run both pools on the engine; gives the twin's lake.

    Raises RunFailed.
    """
    for delivery in deliveries:
        delivery.land(str(home / "landing"))
    standing_clock(home)
    for job in ("catalog_to_alerts", "observations_to_alerts", LAST_JOB):
        run_job(job, home, engine_address, {**SETTINGS, "SDA_BATCH_MAX_SEGMENTS": "1000000"})
    return lake_of(home)


def lake_of(home: Path) -> Lake:
    """The tables below ``home``, where mission time is stopped as it does for the victim."""
    standing_clock(home)
    return Lake(str(home / "lake"), MissionClock.load(home), without_session)


def comparable(log: TableLog) -> pa.Table:
    """What the table states in the end, without what depends on how its input was batched."""
    table = log.table
    if issubclass(table.model, CorrectionLogModel):
        key, entries = table.key[0], log.rows()
        ordered = entries.sort_by([(name, "ascending") for name in (key, "sequence", "op")])
        last = list({row[key]: number for number, row in enumerate(ordered.select([key]).to_pylist())}.values())
        standing = ordered.take(pa.array(last, pa.int64())).filter(pc.field("op") == INSERT)
        history = _HISTORY | (_KEPT_AS_SENT if table is CONJUNCTION_ALERTS else set())
        return standing.drop_columns([name for name in standing.column_names if name in history])
    rows = log.rows([c.name for c in table.columns if c.name not in _dropped(table)])
    return _named_alike(rows) if {"segment_name", "segment_sha256"} <= set(rows.column_names) else rows


def _named_alike(rows: pa.Table) -> pa.Table:
    """The rows, with the hash for a name that is too long for the archive: recovery puts the segment back under it.

    Errors have the name in their text.
    """
    columns = [name for name in ("segment_name", "error") if name in rows.column_names]
    table = rows.select(["segment_sha256", *columns]).to_pylist()
    for row, name in zip(table, rows["segment_name"].to_pylist(), strict=True):
        if not is_kept(name):
            row |= {each: row[each] and row[each].replace(name, row["segment_sha256"]) for each in columns}
    for column in columns:
        place, field = rows.column_names.index(column), rows.schema.field(column)
        rows = rows.set_column(place, field, pa.array([row[column] for row in table], field.type))
    return rows


# Also which revision of an alert came last, and its highest level so far.
_HISTORY = {*CorrectionLogModel.to_schema().columns, "change", "highest_risk"}
# No cause of a revision. An alert whose other figures are rounded alike keeps those of the assessment that it was sent
# for, and how many assessments there were depends on the batches. They are compared in `conjunction_assessments`.
_KEPT_AS_SENT = {"track_id_1", "track_id_2", "maximum_probability", "mahalanobis_distance", "relative_speed_km_s"}


def _dropped(table: Table) -> set[str]:
    """Columns of a table that is no journal which show how its input was batched."""
    # Of two deliveries of one observation in two batches the first is kept, whichever that was.
    return {COMMIT_SEQUENCE, *(Provenance.to_schema().columns if table is OBSERVATIONS else ())}
