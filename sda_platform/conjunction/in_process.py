"""Assessments and alerts of small windows, made in this process: the engine only commits them.

The rules are those of `transforms`, on the same kernels, and the rows are equal. So a run that concerns a few events
does not wait for the engine to plan joins.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.conjunction.alert_policy import AlertPolicy
from sda_platform.conjunction.alerting import ASSESSED_COLUMNS, alerts_of, events_table
from sda_platform.conjunction.assess import ASSESSED_SCHEMA, Kernel
from sda_platform.conjunction.stated_encounters import Statements
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS, CONJUNCTION_CANDIDATES
from sda_platform.lake.correction_log import content
from sda_platform.lake.correction_rows import corrected, current_rows
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan

MOST_EVENTS = 5_000
"""From more events under review on, the engine makes the entries."""
_KEY = "event_id"
_SENT_COLUMNS = content(CONJUNCTION_ALERTS)


def assessment_entries(store: Lake, plan: Plan, events: Sequence[str], assess: Kernel) -> pa.Table:
    """Compute the corrections of assessments of ``events`` (ids) in this process, as on Spark."""
    chosen = _of(events)
    candidates = current_rows(store.snapshot_rows(plan, CONJUNCTION_CANDIDATES, where=chosen), _KEY)
    fresh = pa.Table.from_batches(assess(candidates.combine_chunks().to_batches()), ASSESSED_SCHEMA)
    known = store.snapshot_rows(plan, CONJUNCTION_ASSESSMENTS, where=chosen)
    return corrected(CONJUNCTION_ASSESSMENTS, known, fresh, as_of_ns=plan.as_of_ns)


def alert_entries(store: Lake, plan: Plan, events: Sequence[str], stated: Statements, policy: AlertPolicy) -> pa.Table:
    """Compute the corrections of alerts of ``events`` (ids) in this process; ``stated`` has results of received
    CDMs.
    """
    chosen = _of(events)
    known = store.snapshot_rows(plan, CONJUNCTION_ALERTS, where=chosen)
    columns = [*ASSESSED_COLUMNS, "sequence", "op"]
    assessed = _by_event(current_rows(store.snapshot_rows(plan, CONJUNCTION_ASSESSMENTS, columns, chosen), _KEY))
    active = _by_event(current_rows(known, _KEY))
    sent = {event: {name: row[name] for name in _SENT_COLUMNS} for event, row in active.items()}
    fresh = alerts_of(events_table(assessed, stated, sent), policy, plan.as_of_ns)
    return corrected(CONJUNCTION_ALERTS, known, fresh, as_of_ns=plan.as_of_ns)


def _of(events: Sequence[str]) -> ds.Expression:
    return ds.field(_KEY).isin(pa.array(events, pa.string()))


def _by_event(rows: pa.Table) -> dict[str, dict[str, Any]]:
    return {row[_KEY]: row for row in rows.to_pylist()}
