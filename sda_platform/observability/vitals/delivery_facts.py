"""The facts of deliveries: alerts that wait for the subscriber, and those that it refused for their content."""

from collections.abc import Callable

import dagster as dg
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.clock import iso
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.delivery.subscriber import EntryKey, Subscriber
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.lake.errors import LakeError
from sda_platform.lake.lake import Lake
from sda_platform.observability.vitals.facts import DeliveryFacts, Finding
from sda_platform.observability.vitals.lake_facts import unconsumed_s
from sda_platform.orchestration.attempts import FailureStreak
from sda_platform.orchestration.jobs import ALERTS_TO_SUBSCRIBER, CATALOG_TO_ALERTS, OBSERVATIONS_TO_ALERTS

_DELIVERING = (OBSERVATIONS_TO_ALERTS, CATALOG_TO_ALERTS, ALERTS_TO_SUBSCRIBER)
_KEY = ["alert_id", "sequence", "op"]
# The subscriber is asked about so many alerts, the nearest in time, and no more.
_MOST_ASKED = 50


def delivery_facts(
    lake: Lake, instance: dg.DagsterInstance | None, now_ns: int, subscriber: Callable[[], Subscriber]
) -> DeliveryFacts:
    """The alerts that wait at ``now_ns``, how the last run failed at its subscriber, if so, and what was refused."""
    waiting_s = unconsumed_s(lake, CONJUNCTION_ALERTS, ALERT_DELIVERIES, now_ns)
    refusal = last_refusal(instance) if instance and waiting_s else ""
    return DeliveryFacts(waiting_s, refusal, refused_alerts(lake, now_ns, subscriber))


def last_refusal(instance: dg.DagsterInstance) -> str:
    """How a run that should have delivered failed at the subscriber; empty where none of the newest did."""
    streaks = (FailureStreak.of(instance, job.name) for job in _DELIVERING)
    return next((streak.reason for streak in streaks if streak.is_at_subscriber), "")


def refused_alerts(lake: Lake, now_ns: int, subscriber: Callable[[], Subscriber]) -> list[Finding]:
    """Alerts whose TCA is ahead and whose last entry the subscriber refused and still lacks.

    It is offered them again with every delivery, which the ledger does not record: so the subscriber itself is asked.
    """
    ahead = ds.field("tca_time_ns") > now_ns
    log = lake.log(ALERT_DELIVERIES)
    refused = log.rows([*_KEY, "tca_time_ns"], ahead & (ds.field("outcome") == "refused"))
    if not refused.num_rows:
        return []
    ids = pc.unique(refused["alert_id"])
    known = log.rows([*_KEY, "outcome"], ds.field("alert_id").isin(ids)).to_pylist()
    last = {row["alert_id"]: row for row in sorted(known, key=lambda row: (row["sequence"], row["op"]))}
    open_ones = [row for row in refused.to_pylist() if all(row[name] == last[row["alert_id"]][name] for name in _KEY)]
    nearest = sorted(open_ones, key=lambda row: row["tca_time_ns"])[:_MOST_ASKED]
    keys: list[EntryKey] = [(row["alert_id"], row["sequence"], row["op"]) for row in nearest]
    lacking = _lacking(keys, subscriber)
    described = _described(lake, [alert_id for alert_id, _, _ in lacking])
    tca = {row["alert_id"]: iso(row["tca_time_ns"]) for row in nearest}
    return [
        Finding(
            alert_id,
            f"the subscriber refuses {'the withdrawal of ' if op == 'retract' else ''}"
            f"{described.get(alert_id, 'an alert')}, TCA {tca[alert_id]}, alert {alert_id}",
        )
        for alert_id, _, op in lacking
    ]


def _lacking(keys: list[EntryKey], subscriber: Callable[[], Subscriber]) -> list[EntryKey]:
    """The entries that the subscriber does not hold; all of them where it cannot be asked."""
    try:
        asked = subscriber()
        return [
            key
            for key in keys
            if not any(held.alert_id == key[0] and held.order >= key[1:] for held in asked.held(key[0]))
        ]
    except (LakeError, OSError):
        return keys


def _described(lake: Lake, ids: list[str]) -> dict[str, str]:
    """By alert: its level and its objects."""
    columns = ["event_id", "sequence", "risk", "norad_id_1", "norad_id_2"]
    rows = lake.log(CONJUNCTION_ALERTS).rows(columns, ds.field("event_id").isin(ids)).to_pylist() if ids else []
    newest = sorted(rows, key=lambda row: row["sequence"])
    return {r["event_id"]: f"a {r['risk']} alert of {r['norad_id_1']} and {r['norad_id_2']}" for r in newest}
