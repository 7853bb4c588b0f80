"""Table of package delivery: the ledger of the outbox, one row per entry that a subscriber confirmed."""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.lake.quantities import quantity
from sda_platform.lake.table import Table, TableModel


class AlertDelivery(TableModel):
    """One alert entry, delivered: the subscriber confirmed it in the transaction of its batch."""

    subscriber: T.StringType = pa.Field(description="Receiver of the entry.")
    alert_id: T.StringType = pa.Field(description="The alert: its event_id.")
    epoch: T.LongType = pa.Field(
        nullable=True,
        ge=0,
        description="History of the lake: a restored or rebuilt lake begins the next; null: 0.",
    )
    sequence: T.LongType = pa.Field(ge=0, description="Revision of the alert in its epoch.")
    op: T.StringType = pa.Field(
        isin=["insert", "retract"], description="insert: the alert is active; retract: it is withdrawn or replaced."
    )
    outcome: T.StringType = pa.Field(
        isin=["applied", "stale", "refused", "inherited"],
        description="applied; stale: the subscriber already had a later entry; refused by the subscriber, "
        "offered again with each batch; inherited: the subscriber had it from an earlier lake.",
    )
    cause: T.StringType = pa.Field(
        nullable=True,
        isin=["alert", "inherited", "correction", "withdrawal"],
        description="Why the ledger has it: alert (or null); inherited; correction: in place of an inherited "
        "entry; withdrawal: retract of an inherited alert.",
    )
    content: T.StringType = pa.Field(nullable=True, description="SHA-256 of the alert's text; null: not recorded.")
    batch_id: T.StringType = pa.Field(description="The batch that the subscriber recorded with it.")
    tca_time_ns: T.LongType = quantity("ns", "TCA of the alert.")
    as_of_ns: T.LongType = quantity("ns", "Mission time of the delivery.")


ALERT_DELIVERIES = Table(
    "alert_deliveries",
    "delivery",
    AlertDelivery,
    ("subscriber", "alert_id", "epoch", "sequence", "op", "content"),
    "tca_time_ns",
    lineage={
        "alert_id": [("conjunction_alerts", "event_id")],
        "sequence": [("conjunction_alerts", "sequence")],
        "op": [("conjunction_alerts", "op")],
        "tca_time_ns": [("conjunction_alerts", "tca_time_ns")],
    },
    consumes=(CONJUNCTION_ALERTS,),
)

TABLES = (ALERT_DELIVERIES,)
