"""What must hold for the tables of tasking."""

from collections.abc import Sequence

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.lake.manifest import TableSnapshot
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.warning import warning
from sda_platform.recovery.verification import current_keys, missing_or_surplus, reviewed_span
from sda_platform.tasking.stored_outcomes import REVIEWED_NS, tasks_with_outcomes
from sda_platform.tasking.stored_rows import StoredRows
from sda_platform.tasking.tables import (
    FAILED,
    MISSED,
    OBSERVATION_REQUESTS,
    OPEN,
    PASS_SCHEDULE,
    SCHEDULED,
    TASK_OUTCOMES,
)

MAX_WAIT_S = 1800.0


def double_bookings(_store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Find overlapping observations of one beam of a sensor that are current as of the newest of the commits."""
    known = ds.field(COMMIT_SEQUENCE) <= reviewed_span(commits)[1]
    columns = ["source_id", "beam", "start_time_ns", "end_time_ns", "status"]
    rows = current_keys(log, columns, where=known)
    rows = rows.filter(pc.equal(rows.column("status"), SCHEDULED))
    beam = pc.fill_null(rows.column("beam"), 0)
    rows = rows.set_column(rows.column_names.index("beam"), "beam", beam)
    rows = rows.sort_by([(name, "ascending") for name in ("source_id", "beam", "start_time_ns")])
    beams = zip(rows.column("source_id").to_pylist(), rows.column("beam").to_pylist(), strict=True)
    source = np.asarray([f"{name} {beam}" for name, beam in beams], dtype=np.str_)
    start, end = (rows.column(name).to_numpy() for name in ("start_time_ns", "end_time_ns"))
    overlaps = np.flatnonzero((source[1:] == source[:-1]) & (start[1:] < end[:-1]))
    ids = rows.column("request_id").to_pylist()
    sensors = rows.column("source_id").to_pylist()
    shown = [f"{ids[row]} and {ids[row + 1]} share {sensors[row]}" for row in overlaps[:3]]
    return [f"{len(overlaps)} double bookings, such as {'; '.join(shown)}"] if len(overlaps) else []


def inverted_windows(_store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Windows of the reviewed commits whose culmination is not between rise and set."""
    rows = log.rows_of(reviewed_span(commits), ["aos_time_ns", "tca_time_ns", "los_time_ns"])
    aos, tca, los = (rows.column(name).to_numpy() for name in ("aos_time_ns", "tca_time_ns", "los_time_ns"))
    wrong = int(((aos > tca) | (tca > los) | (aos == los)).sum())
    return [f"{wrong} windows do not culminate between rise and set"] if wrong else []


def every_request_is_answered(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Each request that the newest commit consumed is in the schedule once, served or with the reason why not."""
    window = commits[0].manifest.window(OBSERVATION_REQUESTS.name) if commits else None
    if window is None:
        return []
    within_window = ds.field(COMMIT_SEQUENCE) <= window.upto_sequence
    expected = current_keys(store.log(OBSERVATION_REQUESTS), where=within_window).column("request_id")
    known = ds.field(COMMIT_SEQUENCE) <= reviewed_span(commits)[1]
    found = current_keys(log, where=known).column("request_id")
    return missing_or_surplus(expected, found.filter(pc.is_in(found, expected)), "requests in the schedule")


def every_task_has_an_outcome(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Each task of the schedule that the newest commit consumed has one outcome, of those it concludes."""
    if not commits:
        return []
    newest = commits[0].manifest
    since_ns = newest.as_of_ns - REVIEWED_NS
    upto = {each.table: TableSnapshot(each.table, each.upto_version, each.upto_sequence) for each in newest.windows}
    expected = [task.task_id for task in tasks_with_outcomes(StoredRows(store, upto), since_ns)]
    where = (ds.field(COMMIT_SEQUENCE) <= reviewed_span(commits)[1]) & (ds.field("start_time_ns") > since_ns)
    found = current_keys(log, where=where).column("task_id")
    return missing_or_surplus(pa.chunked_array([expected], pa.string()), found, "tasks with an outcome")


@dg.asset_check(
    asset=TASK_OUTCOMES.name,
    description="No task of class 0 failed or was missed whose request waits for another time.",
)
def class_0_is_observed(lake: LakeResource) -> dg.AssetCheckResult:
    """The red conjunctions whose observation failed and is not scheduled again, by object."""
    store = lake.open()
    columns = ["norad_id", "source_id", "priority_class", "state", "request", "detail"]
    recent = ds.field("start_time_ns") > store.clock.now_ns() - REVIEWED_NS
    rows = current_keys(store.log(TASK_OUTCOMES), columns, where=recent).to_pylist()
    urgent = [row for row in rows if row["priority_class"] == 0]
    lost = [row for row in urgent if row["request"] == OPEN and row["state"] in (FAILED, MISSED)]
    reasons = [f"{row['norad_id']} by {row['source_id']}: {row['detail'] or row['state']}" for row in lost]
    return warning(reasons, {"tasks": len(urgent), "lost": len(lost)})


@dg.asset_check(
    asset=PASS_SCHEDULE.name,
    description="Every request of class 0 (a conjunction at risk red) has a sensor before its deadline.",
)
def class_0_is_served(lake: LakeResource) -> dg.AssetCheckResult:
    """The red conjunctions whose objects no sensor will observe in time, by name."""
    store = lake.open()
    columns = ["priority_class", "status", "unserved_reason", "norad_id", "deadline_time_ns", "unserved_detail"]
    rows = current_keys(store.log(PASS_SCHEDULE), columns).to_pylist()
    now_ns = store.clock.now_ns()
    urgent = [row for row in rows if row["priority_class"] == 0 and row["deadline_time_ns"] > now_ns]
    unserved = [row for row in urgent if row["status"] != SCHEDULED]
    reasons = [f"{row['norad_id']}: {row['unserved_detail'] or row['unserved_reason']}" for row in unserved]
    return warning(reasons, {"requests": len(urgent), "unserved": len(unserved)})
