"""What must hold for deliveries: every alert entry reached the subscriber, once, and the subscriber holds the same."""

from collections.abc import Iterator, Sequence

import dagster as dg
import pyarrow.compute as pc

from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.inheritance import first_sequence, unconfirmed
from sda_platform.delivery.outbox import entries
from sda_platform.delivery.reconciliation import compare, last_entries
from sda_platform.delivery.subscriber import Subscriber, SubscriberUnavailable
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.orchestration.freshness import nothing_waits
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.step_order import AFTER_ALERTS
from sda_platform.orchestration.table_checks import DataFreshness, table_checks
from sda_platform.recovery.verification import consumed_rows, joined_keys, missing_or_surplus, reviewed_span

MAX_WAIT_S = 120.0
# Alerts whose text is compared, the newest: keys are compared for all.
_BODIES_COMPARED = 20


def deliveries_balance(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Every entry of the consumed window of alerts has one row, and nothing else has one."""
    first = first_sequence(commits[0].manifest) if commits else 0
    alerts = consumed_rows(store, commits, CONJUNCTION_ALERTS, ["event_id", "sequence", "op"])
    place = alerts.schema.get_field_index("sequence")
    alerts = alerts.set_column(place, "sequence", pc.add(alerts.column("sequence"), first))
    delivered = log.rows_of(reviewed_span(commits), ["alert_id", "sequence", "op"])
    delivered = delivered.filter(pc.field("sequence") >= first)
    expected = joined_keys(alerts, ["event_id", "sequence", "op"])
    return missing_or_surplus(expected, joined_keys(delivered, ["alert_id", "sequence", "op"]), "deliveries")


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
        description="; ".join(problems) or None,
        metadata={"subscriber": subscriber.name},
    )


def disagreements(store: Lake, subscriber: Subscriber) -> Iterator[str]:
    """What is wrong at the subscriber, in words; nothing: all is well."""
    commit = store.head(ALERT_DELIVERIES).commit
    window = commit.manifest.window(CONJUNCTION_ALERTS.name) if commit else None
    upto = window.upto_sequence if window else 0
    first = first_sequence(commit.manifest) if commit else 0
    difference = compare(subscriber, last_entries(store, upto, first))
    ours = [key for key in difference.missing if key[1] >= first]
    for problem, keys in (("missing or behind", ours), ("ahead or unknown", difference.ahead)):
        if keys:
            yield f"{len(keys)} alerts {problem} at the subscriber, such as {keys[0]}"
    alone = unconfirmed(store, first)
    if alone:
        yield f"{len(alone)} open alerts of an earlier lake are not known to this one, such as {alone[0]}"
    newest = store.log(CONJUNCTION_ALERTS).rows_of((upto - 1, upto))
    last = {entry.alert_id: entry for entry in entries(newest, first)}
    altered = [
        alert_id
        for alert_id, entry in list(last.items())[:_BODIES_COMPARED]
        for held in subscriber.held(alert_id)
        if held.key == entry.key and held.body != entry.body
    ]
    if altered:
        yield f"{len(altered)} alerts differ between the subscriber and the correction log, such as {altered[0]}"


checks = [
    *table_checks(
        ALERT_DELIVERIES,
        balance=[deliveries_balance],
        freshness=DataFreshness("every alert is delivered", MAX_WAIT_S, nothing_waits([CONJUNCTION_ALERTS])),
    ),
    subscriber_agrees,
]
