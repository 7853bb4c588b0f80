"""Asset of package dead_letters: rejected records, late observations and refused rows → dead_letters."""

from functools import partial
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.dead_letters import rejected
from sda_platform.dead_letters.checks import dead_letters_balance
from sda_platform.dead_letters.lateness import raw_records_of
from sda_platform.dead_letters.tables import BRONZE, DEAD_LETTERS, REFUSING
from sda_platform.fusion.lateness import late_observations
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.lake.executors import Given, Stored, apply
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.selections import NotNull
from sda_platform.lake.table import Table
from sda_platform.lake.unconsumed import commits_of
from sda_platform.orchestration.declarations import table_asset
from sda_platform.orchestration.jobs import CATALOG_TO_ALERTS, OBSERVATIONS_TO_ALERTS
from sda_platform.orchestration.materialization import materialized, nothing_new
from sda_platform.orchestration.resources import LakeResource

_REJECTED = NotNull("error_kind")
_KEY = "segment_sha256"


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
    landed = [Stored(each, _KEY, _columns(each), _REJECTED, is_new=True) for each in BRONZE]
    counts = [store.new_rows(plan, each, ["error_kind"], _REJECTED.expression()).num_rows for each in BRONZE]
    refusing = [each for each, count in zip(landed, counts, strict=True) if count]
    stages = [each.table.name for each in refusing]
    transform = partial(rejected.all_letters, stages=stages, as_of_ns=plan.as_of_ns)
    refused = rejected.refused_letters(store, [(each, plan.window(each)) for each in REFUSING], plan.as_of_ns)
    others = Given(pa.concat_tables([_late_letters(store, plan), refused]), _KEY)
    rows = apply(store, plan, transform, others, *refusing, work=sum(counts))
    receipt = store.append(plan, rows)
    kinds = pc.value_counts(store.written_rows(receipt, ["error_kind"]).column("error_kind")).to_pylist()
    return materialized(store, receipt, by_kind={str(k["values"]): k["counts"] for k in kinds})


def _late_letters(store: Lake, plan: Plan) -> pa.Table:
    late = late_observations(store, commits_of(store.log(FUSED_TRACKS), plan.window(FUSED_TRACKS)))
    if not late.num_rows:
        return DEAD_LETTERS.content_schema.empty_table()
    return rejected.late_letters(late, raw_records_of(store, late), FUSED_TRACKS.name, plan.as_of_ns)


def _columns(landing: Table) -> list[str]:
    """Return the columns of a landing table that a dead letter has, too."""
    held = set(landing.arrow_schema.names)
    return [name for name in (*rejected.COLUMNS, "reprocess_count") if name in held]
