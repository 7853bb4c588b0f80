"""Asset of package dead_letters: rejected records, late observations and refused rows → dead_letters."""

from functools import reduce
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from sda_platform.dead_letters import rejected
from sda_platform.dead_letters.checks import dead_letters_balance
from sda_platform.dead_letters.in_process import few_rejected
from sda_platform.dead_letters.lateness import raw_records_of
from sda_platform.dead_letters.tables import BRONZE, DEAD_LETTERS, REFUSING
from sda_platform.fusion.lateness import late_observations
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.unconsumed import commits_of
from sda_platform.orchestration.declarations import table_asset
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS, OBSERVATIONS_TO_ALERTS
from sda_platform.orchestration.materialization import materialized, nothing_new
from sda_platform.orchestration.resources import LakeResource


@table_asset(
    DEAD_LETTERS,
    jobs=[OBSERVATIONS_TO_ALERTS, CATALOG_TO_ALERTS],
    balance=[dead_letters_balance],
    max_wait_s=300.0,
    priority=-10,
)
def dead_letters(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """Records that could not be used, with file, position, reason and original bytes.

    These are records and messages that cannot be decoded, element sets that SGP4 refuses, and observations that arrived
    after their window had closed. Others are computed rows that break their table's contract.
    `docs/how-to/dead-letters.md` describes each kind; `sda lake reprocess` returns the records.
    """
    store = lake.open()
    plan = store.plan(DEAD_LETTERS)
    if plan.is_empty:
        return nothing_new(store, plan)
    few = few_rejected(store, plan, BRONZE)
    refused = rejected.refused_letters(store, [(each, plan.window(each)) for each in REFUSING], plan.as_of_ns)
    others = pa.concat_tables([_late_letters(store, plan), refused])
    if few is not None:
        rows = pa.concat_tables([few, others])
    else:
        landed = ((store.window(plan, table), table.name) for table in BRONZE)
        records = (rejected.rejected_records(*each, plan.as_of_ns) for each in landed)
        rows = reduce(DataFrame.unionByName, records, store.frame(DEAD_LETTERS, others))
    receipt = store.append(plan, rows)
    kinds = pc.value_counts(store.written_rows(receipt, ["error_kind"]).column("error_kind")).to_pylist()
    return materialized(store, receipt, by_kind={str(k["values"]): k["counts"] for k in kinds})


def _late_letters(store: Lake, plan: Plan) -> pa.Table:
    late = late_observations(store, commits_of(store.log(FUSED_TRACKS), plan.window(FUSED_TRACKS)))
    if not late.num_rows:
        return DEAD_LETTERS.content_schema.empty_table()
    return rejected.late_letters(late, raw_records_of(store, late), FUSED_TRACKS.name, plan.as_of_ns)
