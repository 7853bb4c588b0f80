"""What must hold for deliveries: every alert entry reached the subscriber, once, and the subscriber holds the same."""

from collections.abc import Iterator, Sequence

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.epochs import inherited_open
from sda_platform.delivery.ledger import last_delivered, stamps
from sda_platform.delivery.reconciliation import compare, delivered_mark
from sda_platform.delivery.subscriber import Subscriber, SubscriberUnavailable
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.orchestration.materialization import outcome_text
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.step_order import AFTER_ALERTS
from sda_platform.recovery.verification import consumed_rows, joined_keys, missing_or_surplus, reviewed_span


def deliveries_balance(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every entry of the consumed window of alerts has one row, nothing else has one, and none was stale."""
    alerts = consumed_rows(store, commits, CONJUNCTION_ALERTS, ["event_id", "sequence", "op"])
    rows = log.rows_of(reviewed_span(commits), ["alert_id", "sequence", "op", "outcome", "cause"])
    inherited = pc.equal(rows.column("outcome"), "inherited")
    ours = pc.and_(pc.equal(pc.fill_null(rows.column("cause"), "alert"), "alert"), pc.invert(inherited))
    expected = joined_keys(alerts, ["event_id", "sequence", "op"])
    found = joined_keys(rows.filter(ours), ["alert_id", "sequence", "op"])
    return [*missing_or_surplus(expected, found, "deliveries"), *stale_deliveries(rows)]


def stale_deliveries(rows: pa.Table) -> list[str]:
    """Entries that changed nothing at their first delivery: the subscriber had an equal or later key already."""
    stale = rows.filter(pc.equal(rows.column("outcome"), "stale"))
    if not stale.num_rows:
        return []
    what = f"{stale.num_rows} entries, such as {stale.column('alert_id')[0]}, were stale at their first delivery"
    return [f"{what}: the subscriber held an equal or later entry; the next run compares all and corrects what differs"]


@dg.asset_check(
    asset=ALERT_DELIVERIES.name,
    description="The subscriber has exactly the alerts that were delivered: none missing, none more, none different.",
    op_tags=AFTER_ALERTS,
)
def subscriber_agrees(lake: LakeResource, subscriber: dg.ResourceParam[Subscriber]) -> dg.AssetCheckResult:
    """Compare the subscriber's alerts with the delivered entries of the correction log, both ways."""
    try:
        problems = list(disagreements(lake.open(), subscriber))
    except SubscriberUnavailable as error:
        problems = [f"the subscriber did not answer: {error}"]
    return dg.AssetCheckResult(
        passed=not problems,
        severity=dg.AssetCheckSeverity.ERROR,
        description=outcome_text("; ".join(problems)),
        metadata={"subscriber": subscriber.name},
    )


def disagreements(store: Lake, subscriber: Subscriber) -> Iterator[str]:
    """Describe how subscriber and ledger disagree; empty: they agree.

    Marks cover the key and the content of every alert. Alerts are read only where the marks differ.
    """
    commit = store.head(ALERT_DELIVERIES).commit
    manifest = commit.manifest if commit else None
    if subscriber.mark() != delivered_mark(manifest):
        delivered = last_delivered(store)
        difference = compare(subscriber, stamps(delivered))
        ours = [stamp.key for stamp in difference.missing if delivered[stamp.alert_id].is_ours]
        foreign = [entry.key for entry in difference.foreign]
        for problem, keys in (("missing or behind", ours), ("ahead, unknown or different", foreign)):
            if keys:
                yield f"{len(keys)} alerts {problem} at the subscriber, such as {keys[0]}"
    if count := inherited_open(manifest):
        yield (
            f"{count} open alerts of an earlier history are not known to this lake; they are withdrawn after the next "
            "full screening unless it finds them"
        )
