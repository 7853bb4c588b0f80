"""The facts of deliveries: alerts that wait for the subscriber, and those that it refused for their content."""

from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.clock import iso
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.ledger import last_delivered, stamps
from sda_platform.delivery.reconciliation import compare, delivered_mark
from sda_platform.delivery.subscriber import Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.correction_log import RETRACT
from sda_platform.lake.errors import LakeError
from sda_platform.lake.lake import Lake
from sda_platform.observability.vitals.facts import DeliveryFacts, Finding
from sda_platform.observability.vitals.lake_facts import unconsumed_s
from sda_platform.orchestration.attempts import FailureStreak
from sda_platform.orchestration.jobs import ALERTS_TO_SUBSCRIBER, CATALOG_TO_ALERTS, OBSERVATIONS_TO_ALERTS

_DELIVERING = (OBSERVATIONS_TO_ALERTS, CATALOG_TO_ALERTS, ALERTS_TO_SUBSCRIBER)
_REFUSED = "refused"
_COLUMNS = ["alert_id", "epoch", "sequence", "op", "outcome", "tca_time_ns"]
# The subscriber is asked about so many alerts, the nearest in time, and no more.
_MOST_ASKED = 50


def delivery_facts(
    lake: Lake, instance: dg.DagsterInstance | None, now_ns: int, subscriber: Callable[[], Subscriber]
) -> DeliveryFacts:
    """Return the alerts that wait at ``now_ns``, how the last run failed at its subscriber, if so, and what was
    refused.

    What the subscriber holds is compared only where nothing waits: a delivery under way differs by nature.
    """
    waiting_s = unconsumed_s(lake, CONJUNCTION_ALERTS, ALERT_DELIVERIES, now_ns)
    refusal = last_refusal(instance) if instance and waiting_s else ""
    refused = refused_alerts(lake, now_ns, subscriber)
    differs = "" if waiting_s else disagreement(lake, subscriber)
    return DeliveryFacts(waiting_s, refusal, refused, differs)


def disagreement(lake: Lake, subscriber: Callable[[], Subscriber]) -> str:
    """Describe how subscriber and ledger differ; empty where they agree, or the subscriber cannot be asked.

    Looked at twice, because a run may deliver between the looks at the ledger and at the subscriber. What it refused
    is another fault.
    """
    try:
        asked = subscriber()
        return _difference(lake, asked) and _difference(lake, asked)
    except (LakeError, OSError):
        return ""


def _difference(lake: Lake, subscriber: Subscriber) -> str:
    commit = lake.log(ALERT_DELIVERIES).head().commit
    if commit is None or subscriber.mark() == delivered_mark(commit.manifest):
        return ""
    delivered = last_delivered(lake)
    found = compare(subscriber, stamps(delivered))
    refused = set(
        lake.log(ALERT_DELIVERIES).rows(["alert_id"], ds.field("outcome") == _REFUSED)["alert_id"].to_pylist()
    )
    missing = [s.alert_id for s in found.missing if delivered[s.alert_id].is_ours and s.alert_id not in refused]
    foreign = [entry.alert_id for entry in found.foreign]
    return "; ".join(
        f"{len(ids)} alerts {what}, such as {ids[0]}"
        for ids, what in (
            (missing, "that were delivered are not at the subscriber"),
            (foreign, "there were not delivered"),
        )
        if ids
    )


def last_refusal(instance: dg.DagsterInstance) -> str:
    """Describe how the newest delivery run failed at the subscriber; empty where it did not."""
    streaks = (FailureStreak.of(instance, job.name) for job in _DELIVERING)
    return next((streak.reason for streak in streaks if streak.is_at_subscriber), "")


def refused_alerts(lake: Lake, now_ns: int, subscriber: Callable[[], Subscriber]) -> list[Finding]:
    """Alerts whose TCA is ahead and whose last entry the subscriber refused and still lacks.

    It is offered them again with every delivery, which the ledger does not record: so the subscriber itself is asked.
    """
    log = lake.log(ALERT_DELIVERIES)
    ahead = ds.field("tca_time_ns") > now_ns
    refused = log.rows(["alert_id"], ahead & (ds.field("outcome") == _REFUSED))["alert_id"]
    if not len(refused):
        return []
    known = log.rows(_COLUMNS, ds.field("alert_id").isin(pc.unique(refused))).to_pylist()
    last = {row["alert_id"]: row for row in sorted(known, key=_order)}
    nearest = sorted((r for r in last.values() if r["outcome"] == _REFUSED), key=lambda row: row["tca_time_ns"])
    lacking = _lacking(nearest[:_MOST_ASKED], subscriber)
    described = _described(lake, [row["alert_id"] for row in lacking])
    return [Finding(row["alert_id"], _text(row, described.get(row["alert_id"], "an alert"))) for row in lacking]


def _lacking(rows: list[dict[str, Any]], subscriber: Callable[[], Subscriber]) -> list[dict[str, Any]]:
    """Return the entries that the subscriber does not hold; all of them where it cannot be asked."""
    try:
        asked = subscriber()
        held = {row["alert_id"]: asked.held(row["alert_id"]) for row in rows}
    except (LakeError, OSError):
        return rows
    return [
        row
        for row in rows
        if not any(each.alert_id == row["alert_id"] and each.order >= _order(row) for each in held[row["alert_id"]])
    ]


def _order(row: Mapping[str, Any]) -> tuple[int, int, str]:
    return (row["epoch"] or 0, row["sequence"], row["op"])


def _text(row: Mapping[str, Any], alert: str) -> str:
    withdrawal = "the withdrawal of " if row["op"] == RETRACT else ""
    return f"the subscriber refuses {withdrawal}{alert}, TCA {iso(row['tca_time_ns'])}, alert {row['alert_id']}"


def _described(lake: Lake, ids: list[str]) -> dict[str, str]:
    """By alert: its level and its objects."""
    columns = ["event_id", "sequence", "risk", "norad_id_1", "norad_id_2"]
    rows = lake.log(CONJUNCTION_ALERTS).rows(columns, ds.field("event_id").isin(ids)).to_pylist() if ids else []
    newest = sorted(rows, key=lambda row: row["sequence"])
    return {r["event_id"]: f"a {r['risk']} alert of {r['norad_id_1']} and {r['norad_id_2']}" for r in newest}
