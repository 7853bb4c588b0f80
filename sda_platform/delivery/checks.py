"""What must hold for deliveries: every alert entry reached the subscriber, once, and the subscriber holds the same."""

from collections.abc import Sequence

import dagster as dg
import pyarrow as pa

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.resource import SubscriberResource
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.checks import DataFreshness, table_checks
from sda_platform.lake.freshness import nothing_waits
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import Commit, TableLog
from sda_platform.lake.resource import LakeResource
from sda_platform.lake.verification import (
    consumed_rows,
    joined_keys,
    missing_or_surplus,
    reviewed_span,
    standing_keys,
)

MAX_WAIT_S = 120.0


def deliveries_balance(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every entry of the consumed window of alerts has one row, and nothing else has one."""
    alerts = consumed_rows(store, commits, CONJUNCTION_ALERTS, ["event_id", "sequence", "op"])
    delivered = log.rows_of(reviewed_span(commits), ["alert_id", "sequence", "op"])
    expected = joined_keys(alerts, ["event_id", "sequence", "op"])
    return missing_or_surplus(expected, joined_keys(delivered, ["alert_id", "sequence", "op"]), "deliveries")


@dg.asset_check(
    asset=ALERT_DELIVERIES.name,
    description="The alerts that hold at the subscriber are those that hold in the journal.",
)
def subscriber_agrees(lake: LakeResource, subscriber: SubscriberResource) -> dg.AssetCheckResult:
    """Compare the subscriber's standing alerts with the delivered part of the journal, both ways."""
    store, receiver = lake.open(), subscriber.open()
    commit = store.head(ALERT_DELIVERIES).commit
    window = commit.checkpoint.window(CONJUNCTION_ALERTS.name) if commit else None
    version = window.upto_version if window else -1
    expected = standing_keys(store.log(CONJUNCTION_ALERTS), version=version).column("event_id")
    held = pa.chunked_array([pa.array([alert_id for alert_id, _, _ in receiver.standing()], pa.string())])
    problems = missing_or_surplus(expected, held, "alerts")
    return dg.AssetCheckResult(
        passed=not problems,
        severity=dg.AssetCheckSeverity.ERROR,
        description="; ".join(problems) or None,
        metadata={"standing_alerts": len(held), "subscriber": receiver.name},
    )


checks = [
    table_checks(
        ALERT_DELIVERIES,
        balance=[deliveries_balance],
        freshness=DataFreshness("no alert waits to be delivered", MAX_WAIT_S, nothing_waits([CONJUNCTION_ALERTS])),
    ),
    subscriber_agrees,
]
