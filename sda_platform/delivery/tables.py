"""Table of the delivery room: the outbox's ledger, one row per journal entry handed to a subscriber."""

import pandera.pyspark as pa
from pyspark.sql import types as T

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.lake.table import Table, TableModel


class AlertDelivery(TableModel):
    """One alert entry, delivered: the subscriber confirmed it in the transaction of its batch."""

    subscriber: T.StringType = pa.Field(description="Who received it.")
    alert_id: T.StringType = pa.Field(description="The alert: its event_id.")
    sequence: T.LongType = pa.Field(ge=0, description="Number of the entry within the alert, as the subscriber has it.")
    op: T.StringType = pa.Field(isin=["insert", "retract"], description="What the entry says.")
    outcome: T.StringType = pa.Field(
        isin=["applied", "stale", "refused", "inherited"],
        description="applied: it changed the subscriber; stale: the subscriber already had a later entry; refused: it "
        "would not take the entry, which is offered again with each later batch; inherited: the subscriber held it "
        "when this lake, which was built anew, began to deliver.",
    )
    batch_id: T.StringType = pa.Field(description="The batch that the subscriber recorded with it.")
    tca_time_ns: T.LongType = pa.Field(description="TCA of the alert.", metadata={"unit": "ns"})
    as_of_ns: T.LongType = pa.Field(description="Mission time of the delivery.", metadata={"unit": "ns"})


ALERT_DELIVERIES = Table(
    "alert_deliveries",
    "delivery",
    AlertDelivery,
    ("subscriber", "alert_id", "sequence", "op"),
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
