"""What must hold for the tables of the ground segment."""

from collections.abc import Sequence

import dagster as dg

from sda_platform.ground_segment.command_states import EVENT_COLUMNS
from sda_platform.ground_segment.links import link_events, stale_executions, terms
from sda_platform.ground_segment.tables import GROUND_COMMANDS, GROUND_EVENTS
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.orchestration.freshness import never_stale, nothing_waits
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.table_checks import DataFreshness, table_checks
from sda_platform.recovery.verification import consumed_rows

MAX_WAIT_S = 1800.0
MAX_STOP_TO_PROMOTION_S = 30.0


def commands_are_executed_once(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """No command has two answers that it was executed, none was executed for a former uplink, and none is missing."""
    rows = log.rows(["command_id", "executions"]).to_pylist()
    twice = [row["command_id"] for row in rows if row["executions"] > 1]
    events = consumed_rows(store, commits, GROUND_EVENTS, [*EVENT_COLUMNS, "error_kind"]).to_pylist()
    usable = [event for event in events if event["error_kind"] is None]
    missing = {event["command_id"] for event in usable if event["command_id"]} - {row["command_id"] for row in rows}
    # The promotion that makes an execution stale may stand in an earlier commit than those under review.
    stale = stale_executions(usable, terms(link_events(store)))
    problems = (
        (twice, "executed twice"),
        (stale, "executed for a former uplink"),
        (sorted(missing), "without a state"),
    )
    return [f"{len(found)} commands {what}, such as {found[0]}" for found, what in problems if found]


@dg.asset_check(
    asset=GROUND_COMMANDS.name,
    description=f"Each backup uplink took over within {MAX_STOP_TO_PROMOTION_S:.0f} s of the former one's last "
    "heartbeat (GF-20).",
)
def promotions_are_fast(lake: LakeResource) -> dg.AssetCheckResult:
    """The promotions, and the slowest."""
    silences = [term.silence_s for term in terms(link_events(lake.open())) if term.silence_s is not None]
    slowest_s = max(silences, default=0.0)
    return dg.AssetCheckResult(
        passed=slowest_s <= MAX_STOP_TO_PROMOTION_S,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"promotions_after_a_failure": len(silences), "slowest_s": slowest_s},
    )


checks = [
    *table_checks(
        GROUND_EVENTS,
        freshness=DataFreshness("a platform need not command stations", MAX_WAIT_S, never_stale),
    ),
    *table_checks(
        GROUND_COMMANDS,
        balance=[commands_are_executed_once],
        freshness=DataFreshness("no event waits", MAX_WAIT_S, nothing_waits),
    ),
    promotions_are_fast,
]
