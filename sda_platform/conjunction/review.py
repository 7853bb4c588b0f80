"""Which events are assessed, and which the alerts table must judge again: changed ones, and those that time changed."""

from collections.abc import Sequence

import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.planning import settings_changed
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS, CONJUNCTION_CANDIDATES
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import CommitManifest
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.recovery.verification import current_keys


def due_events(store: Lake, plan: Plan, policy: AlertPolicy) -> list[str]:
    """Return ids of events to judge again although nothing was assessed anew, in order.

    They are: open alerts whose TCA has passed; events to which the rule of dilution applies now, and did not at the
    last commit; and all events ahead, where the policy differs from that of the last commit. Read from the stored
    tables, without the engine.
    """
    if plan.previous is None:
        return []
    return sorted({*_passed(store, plan), *_changed_by_time_or_policy(store, plan, plan.previous, policy)})


def events_to_assess(store: Lake, plan: Plan, objects: Sequence[int]) -> list[str]:
    """Select, in order, ids of changed candidates and of upcoming events of ``objects`` with new states.

    Under other settings, such as sizes of objects, these are all that are ahead.
    """
    found = store.new_rows(plan, CONJUNCTION_CANDIDATES, ["event_id"]).column("event_id").to_pylist()
    concerned = ds.field("norad_id_1").isin(list(objects)) | ds.field("norad_id_2").isin(list(objects))
    is_ahead = ds.field("tca_time_ns") > plan.as_of_ns
    if settings_changed(plan.previous, plan.settings):
        ahead = store.snapshot_rows(plan, CONJUNCTION_CANDIDATES, ["event_id"], is_ahead)
        found += ahead.column("event_id").to_pylist()
    elif objects:
        ahead = store.snapshot_rows(plan, CONJUNCTION_CANDIDATES, ["event_id"], concerned & is_ahead)
        found += ahead.column("event_id").to_pylist()
    return sorted(set(found))


def events_to_judge(store: Lake, plan: Plan, due: Sequence[str]) -> list[str]:
    """Return ids of the events that were assessed anew, and ``due`` ones; in order."""
    fresh = store.new_rows(plan, CONJUNCTION_ASSESSMENTS, ["event_id"])
    return sorted({*fresh.column("event_id").to_pylist(), *due})


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
