"""What must hold for the tables of membership."""

from collections.abc import Sequence

import dagster as dg

from sda_platform.lake.lake import Lake
from sda_platform.lake.log import TableLog
from sda_platform.lake.log_commits import Commit
from sda_platform.membership.tables import FLEET_MEMBERSHIP, MEMBERSHIP_OBSERVATIONS
from sda_platform.membership.transforms import disputed
from sda_platform.orchestration.freshness import never_stale, nothing_waits
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.table_checks import DataFreshness, table_checks
from sda_platform.orchestration.warning import warning
from sda_platform.recovery.verification import consumed_rows

MAX_WAIT_S = 1800.0


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


checks = [
    *table_checks(
        MEMBERSHIP_OBSERVATIONS,
        freshness=DataFreshness("a platform need not have agents", MAX_WAIT_S, never_stale),
    ),
    *table_checks(
        FLEET_MEMBERSHIP,
        balance=[every_claim_has_a_member],
        freshness=DataFreshness("no event waits", MAX_WAIT_S, nothing_waits),
    ),
    members_are_alive,
    views_agree,
    members_are_registered,
]
