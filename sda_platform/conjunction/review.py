"""Which events the alerts table must judge again: those assessed anew, and those that time alone has changed."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame

from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.recovery.verification import current_keys


def due_events(store: Lake, plan: Plan, policy: AlertPolicy) -> list[str]:
    """Ids of events to judge again although nothing was assessed anew, in order.

    They are: open alerts whose TCA has passed; events to which the rule of dilution applies now, and did not at the
    last commit; and all events ahead, where the policy differs from that of the last commit. Read from the stored
    tables, without the engine.
    """
    if plan.previous is None:
        return []
    return sorted({*_passed(store, plan), *_changed_by_time_or_policy(store, plan, plan.previous, policy)})


def under_review(store: Lake, plan: Plan, due: list[str]) -> DataFrame:
    """The ids (column event_id) of the events to judge: those of the plan's window, and ``due`` ones."""
    ids = pa.table({"event_id": pa.array(due, pa.string())})
    known = store.session.createDataFrame(ids) if due else None
    fresh = store.window(plan, CONJUNCTION_ASSESSMENTS).select("event_id")
    return (fresh.union(known) if known is not None else fresh).distinct()


def _passed(store: Lake, plan: Plan) -> list[str]:
    before = ds.field(COMMIT_SEQUENCE) < plan.sequence
    sent = current_keys(store.log(CONJUNCTION_ALERTS), ["tca_time_ns", "status"], where=before)
    is_open = pc.fill_null(pc.not_equal(sent.column("status"), "closed"), True)
    passed = sent.filter(pc.and_(is_open, pc.less_equal(sent.column("tca_time_ns"), plan.as_of_ns)))
    return list(passed.column("event_id").to_pylist())


def _changed_by_time_or_policy(store: Lake, plan: Plan, previous: CommitManifest, policy: AlertPolicy) -> list[str]:
    tca = ds.field("tca_time_ns")
    is_consumed = ds.field(COMMIT_SEQUENCE) <= plan.window(CONJUNCTION_ASSESSMENTS).after_sequence
    if previous.settings != plan.settings:
        is_due = tca > plan.as_of_ns
    else:
        is_due = (tca > previous.as_of_ns + policy.gate_ns) & (tca <= plan.as_of_ns + policy.gate_ns)
        is_due &= ds.field("maximum_probability") >= policy.settings.dilution_yellow_pc
        is_due &= ds.field("mahalanobis_distance") <= policy.settings.dilution_yellow_sigmas
    rows = store.log(CONJUNCTION_ASSESSMENTS).rows(["event_id"], is_due & is_consumed)
    return list(rows.column("event_id").to_pylist())
