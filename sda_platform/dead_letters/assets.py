"""Asset of package dead_letters: rejected records and late observations → dead_letters."""

from functools import reduce
from typing import Any

import dagster as dg
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from sda_platform.dead_letters import rejected
from sda_platform.dead_letters.lateness import late_observations, raw_records_of
from sda_platform.dead_letters.tables import BRONZE, DEAD_LETTERS
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS, OBSERVATIONS_TO_ALERTS
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.table_asset import materialized, nothing_new, table_asset


@table_asset(DEAD_LETTERS, jobs=[OBSERVATIONS_TO_ALERTS, CATALOG_TO_ALERTS], priority=-10)
def dead_letters(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """Records that could not be used, with file, position, reason and original bytes.

    These are records and messages that cannot be decoded, element sets that SGP4 refuses, and observations that arrived
    after their window had closed. `docs/how-to/dead-letters.md` describes each kind; `sda reprocess` returns them.
    """
    store = lake.open()
    plan = store.plan(DEAD_LETTERS)
    if plan.is_empty:
        return nothing_new(store, plan)
    landed = ((store.window(plan, table), table.name) for table in BRONZE)
    rows = reduce(DataFrame.unionByName, (rejected.rejected_records(*each, plan.as_of_ns) for each in landed))
    late = late_observations(store, plan.window(FUSED_TRACKS))
    if late.num_rows:
        late_rows = rejected.late_letters(late, raw_records_of(store, late), FUSED_TRACKS.name, plan.as_of_ns)
        rows = rows.unionByName(store.frame(DEAD_LETTERS, late_rows))
    receipt = store.append(plan, rows)
    kinds = pc.value_counts(store.written_rows(receipt, ["error_kind"]).column("error_kind")).to_pylist()
    return materialized(store, receipt, by_kind={str(k["values"]): k["counts"] for k in kinds})
