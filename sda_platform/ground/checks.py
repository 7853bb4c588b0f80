"""What must hold for the tables of the ground segment and of membership."""

from collections.abc import Sequence

import dagster as dg

from sda_platform.ground.command_states import DIRECTION, EVENT_COLUMNS, unrepeated_losses
from sda_platform.ground.links import link_events, stale_executions, terms
from sda_platform.ground.membership_states import disputed
from sda_platform.ground.tables import FLEET_MEMBERSHIP, GROUND_COMMANDS, GROUND_EVENTS, MEMBERSHIP_OBSERVATIONS
from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.warning import warning
from sda_platform.recovery.verification import consumed_rows

MAX_WAIT_S = 1800.0
MAX_STOP_TO_PROMOTION_S = 30.0


def commands_are_executed_once(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Check that no command was executed twice, none for a former uplink, and that none is missing."""
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
    "heartbeat.",
)
def promotions_are_fast(lake: LakeResource) -> dg.AssetCheckResult:
    """Check the duration of promotions, and report the slowest."""
    silences = [term.silence_s for term in terms(link_events(lake.open())) if term.silence_s is not None]
    slowest_s = max(silences, default=0.0)
    return dg.AssetCheckResult(
        passed=slowest_s <= MAX_STOP_TO_PROMOTION_S,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"promotions_after_a_failure": len(silences), "slowest_s": slowest_s},
    )


@dg.asset_check(
    asset=GROUND_COMMANDS.name,
    description="No command that a station lost in a crash waits to be issued again, up to a day after it expired.",
)
def lost_commands_are_issued_again(lake: LakeResource) -> dg.AssetCheckResult:
    """Check that each lost command was issued again."""
    store = lake.open()
    names = ["command_id", "station", "kind", "state", "issued_time_ns", "expires_time_ns", *DIRECTION]
    wrong = unrepeated_losses(store.log(GROUND_COMMANDS).rows(names).to_pylist(), store.clock.now_ns())
    return warning(wrong[:10], {"lost": len(wrong)})


def every_claim_has_a_member(store: Lake, log: TableLog, commits: Sequence[Commit]) -> list[str]:
    """Members of usable events that have no row."""
    events = consumed_rows(store, commits, MEMBERSHIP_OBSERVATIONS, ["member", "error_kind"]).to_pylist()
    rows = set(log.rows(["member"]).column("member").to_pylist())
    missing = sorted({each["member"] for each in events if each["error_kind"] is None} - rows)
    return [f"{len(missing)} members without a row, such as {missing[0]}"] if missing else []


@dg.asset_check(asset=FLEET_MEMBERSHIP.name, description="No registered member has failed or has never been seen.")
def members_are_alive(lake: LakeResource) -> dg.AssetCheckResult:
    """The members that failed or were never seen."""
    rows = lake.open().log(FLEET_MEMBERSHIP).rows(["member", "status", "is_registered"]).to_pylist()
    registered = [row for row in rows if row["is_registered"]]
    wrong = [
        f"{row['member']} ({row['status'] or 'never seen'})" for row in registered if row["status"] in (None, "failed")
    ]
    return warning(wrong[:10], {"registered": len(registered), "failed": len(wrong)})


@dg.asset_check(asset=FLEET_MEMBERSHIP.name, description="The agents that report agree on who is alive.")
def views_agree(lake: LakeResource) -> dg.AssetCheckResult:
    """The members on which observers disagree."""
    columns = ["member", "status", "alive_views", "other_views"]
    wrong = list(disputed(lake.open().log(FLEET_MEMBERSHIP).rows(columns).to_pylist()))
    return warning(wrong[:10], {"disputed": len(wrong)})


@dg.asset_check(asset=FLEET_MEMBERSHIP.name, description="Every agent that gossips is listed in the registry.")
def members_are_registered(lake: LakeResource) -> dg.AssetCheckResult:
    """The agents that are alive and not in the registry."""
    rows = lake.open().log(FLEET_MEMBERSHIP).rows(["member", "status", "is_registered"]).to_pylist()
    wrong = [row["member"] for row in rows if row["status"] == "alive" and not row["is_registered"]]
    return warning(wrong[:10], {"not_registered": len(wrong)})
