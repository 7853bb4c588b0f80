"""The asset `consensus_campaign`: thousands of seeded schedules of the protocol models every night, kept as rows.

A campaign carries out new seeds, and again every seed that ever failed. Controls with a planted bug must fail.
"""

from collections.abc import Iterable
from typing import Any, Final

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.ground_segment.checks import MAX_WAIT_S
from sda_platform.ground_segment.tables import CONSENSUS_CAMPAIGN
from sda_platform.lake.log import TableLog
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orchestration.attempts import unfinished_run_of
from sda_platform.orchestration.freshness import never_stale
from sda_platform.orchestration.jobs import PROTOCOL_CAMPAIGN
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.table_asset import markdown_table, materialized, table_asset
from sda_platform.orchestration.table_checks import DataFreshness, table_checks
from sda_platform.protocols.campaign import MODELS, ScheduleOutcome, controls, schedules
from sda_platform.spark.session import POOL_TAG

SCHEDULES: Final = 1_000
"""New seeds of each model in a campaign."""
_NEXT_SEED: Final = "next_seed"


@table_asset(CONSENSUS_CAMPAIGN, jobs=[PROTOCOL_CAMPAIGN])
def consensus_campaign(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """Seeded schedules of consensus (Raft), leases with fencing, uplinks with failover, and gossip.

    Each campaign has new seeds, every seed that failed before, and controls with one rule switched off. A row with a
    violation and no planted bug is a defect of a protocol that the platform rests on.
    """
    store = lake.open()
    plan = store.plan(CONSENSUS_CAMPAIGN)
    first = plan.previous.watermarks.get(_NEXT_SEED, 0) if plan.previous else 0
    seeds = {name: range(first, first + SCHEDULES) for name in MODELS}
    known = failed(store.log(CONSENSUS_CAMPAIGN), upto_sequence=plan.sequence - 1)
    again = {name: sorted({row["seed"] for row in known if row["model"] == name}) for name in MODELS}
    done = [*schedules(seeds), *schedules(again), *controls(first)]
    rows = pa.Table.from_pylist(campaign_rows(done, plan.sequence, plan.as_of_ns), CONSENSUS_CAMPAIGN.content_schema)
    counts = {"schedules": len(done), "failed": len(failures(done)), "controls_missed": len(missed(done))}
    receipt = store.append(plan, rows, counts=counts, watermarks={_NEXT_SEED: first + SCHEDULES})
    shown = rows.filter(pc.is_valid(rows.column("violations")))
    broken = {"violations": dg.MetadataValue.md(markdown_table(shown))} if shown.num_rows else {}
    return materialized(store, receipt, **counts, **broken)


def campaign_rows(done: Iterable[ScheduleOutcome], campaign: int, as_of_ns: int) -> list[dict[str, Any]]:
    """Rows of the table for these schedules of one campaign."""
    return [
        {
            "campaign": campaign,
            "as_of_ns": as_of_ns,
            "model": each.model,
            "planted_bug": each.bug,
            "seed": each.seed,
            "operations": each.operations,
            "faults": each.faults,
            "violations": "; ".join(each.violations) or None,
        }
        for each in done
    ]


def failures(done: Iterable[ScheduleOutcome]) -> list[ScheduleOutcome]:
    """Schedules of correct models in which something broke."""
    return [each for each in done if each.violations and not each.bug]


def missed(done: Iterable[ScheduleOutcome]) -> list[ScheduleOutcome]:
    """Controls whose planted bug was not found."""
    return [each for each in done if each.bug and not each.violations]


def failed(log: TableLog, *, upto_sequence: int = 2**62) -> list[dict[str, Any]]:
    """The rows of correct models in which something broke, up to a commit."""
    is_failure = (ds.field("planted_bug") == "") & ds.field("violations").is_valid()
    columns = ["model", "seed", "violations", COMMIT_SEQUENCE]
    return list(log.rows(columns, is_failure & (ds.field(COMMIT_SEQUENCE) <= upto_sequence)).to_pylist())


def broken_rules(log: TableLog) -> list[str]:
    """What the newest campaign found, in words: failing seeds of correct models, and planted bugs that it missed."""
    sequence = log.head().sequence
    broken = [row for row in failed(log) if row[COMMIT_SEQUENCE] == sequence]
    is_missed = (ds.field("planted_bug") != "") & ds.field("violations").is_null()
    lost = log.rows(["model", "planted_bug"], is_missed & (ds.field(COMMIT_SEQUENCE) == sequence)).to_pylist()
    found = [f"{row['model']} with seed {row['seed']}: {row['violations']}" for row in broken]
    return found + [f"{row['model']}: the planted bug {row['planted_bug']} was not found" for row in lost]


@dg.asset_check(
    asset=CONSENSUS_CAMPAIGN.name,
    description="In the newest campaign no schedule of a correct model broke a rule, and every planted bug was found.",
)
def models_hold(lake: LakeResource) -> dg.AssetCheckResult:
    """The failing seeds by model, and the planted bugs that were missed."""
    found = broken_rules(lake.open().log(CONSENSUS_CAMPAIGN))
    return dg.AssetCheckResult(
        passed=not found, description="; ".join(found[:5]) or None, metadata={"findings": len(found)}
    )


@dg.schedule(
    name="nightly_protocol_campaign",
    job_name=PROTOCOL_CAMPAIGN.name,
    cron_schedule="20 3 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Carries out new seeded schedules of the protocol models, and every one that failed before.",
)
def nightly_protocol_campaign(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """One run a night, unless a run of it has not ended."""
    active = unfinished_run_of(context.instance, PROTOCOL_CAMPAIGN)
    if active is not None:
        return dg.SkipReason(f"run {active[:8]} of the job has not ended")
    return dg.RunRequest(tags={POOL_TAG: PROTOCOL_CAMPAIGN.pool})


checks = [
    *table_checks(CONSENSUS_CAMPAIGN, freshness=DataFreshness("a campaign has no inputs", MAX_WAIT_S, never_stale)),
    models_hold,
]
