"""Assets of package membership: landing/membership → membership_observations → fleet_membership."""

from collections import Counter
from typing import Any

import dagster as dg
import pyarrow as pa

from sda_platform.landing.decoding import one_by_one
from sda_platform.membership.tables import FLEET_MEMBERSHIP, MEMBERSHIP_FEED, MEMBERSHIP_OBSERVATIONS
from sda_platform.membership.transforms import decode, disputed, merged
from sda_platform.orchestration.jobs import GROUND_SEGMENT
from sda_platform.orchestration.landing_table import land
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.orchestration.table_asset import markdown_table, materialized, nothing_new, table_asset
from sda_platform.orchestration.zone_asset import zone_asset

_SHOWN = ("member", "is_registered", "status", "generation", "role", "alive_views", "other_views")

membership_zone = zone_asset(
    MEMBERSHIP_FEED,
    MEMBERSHIP_OBSERVATIONS,
    GROUND_SEGMENT,
    "Views of the agents of stations and collectors, and changes of the registry, as lines of JSON.",
    replayable="yes",
    ordering="by observer",
    delivery="at least once",
)


@table_asset(MEMBERSHIP_OBSERVATIONS, jobs=[GROUND_SEGMENT])
def membership_observations(
    context: dg.AssetExecutionContext, lake: LakeResource, landing: LandingResource
) -> dg.MaterializeResult[Any]:
    """Every claim of an agent about the status of another one, and every change of the registry, for ever."""
    return land(lake, landing, MEMBERSHIP_OBSERVATIONS, one_by_one(decode), report=context.log_event)


@table_asset(FLEET_MEMBERSHIP, jobs=[GROUND_SEGMENT])
def fleet_membership(lake: LakeResource) -> dg.MaterializeResult[Any]:
    """The status of each agent of the fleet: the views of all observers, merged by (generation, status).

    Serf spreads the status between the agents (SWIM). Which agents belong to the fleet is what the registry lists.
    """
    store = lake.open()
    plan = store.plan(FLEET_MEMBERSHIP)
    if plan.is_empty:
        return nothing_new(store, plan)
    events = store.new_rows(plan, MEMBERSHIP_OBSERVATIONS).to_pylist()
    before = store.current_rows(plan).to_pylist()
    changed = merged(before, [event for event in events if event["error_kind"] is None])
    receipt = store.replace(plan, pa.Table.from_pylist(changed, FLEET_MEMBERSHIP.content_schema))
    fleet = sorted({row["member"]: row for row in (*before, *changed)}.values(), key=lambda row: row["member"])
    return materialized(store, receipt, **shown_fleet(fleet))


def shown_fleet(fleet: list[dict[str, Any]]) -> dict[str, Any]:
    """Registered members by status, the table of those that are not alive, and who holds whom for what."""
    if not fleet:
        return {}
    from sda_platform.membership.pictures import views_picture

    facts: dict[str, Any] = dict(Counter(f"now_{row['status'] or 'silent'}" for row in fleet if row["is_registered"]))
    facts["disputed"] = sum(1 for _ in disputed(fleet))
    worst = sorted(
        fleet,
        key=lambda row: (row["status"] == "alive", not row["is_registered"], row["alive_views"], row["member"]),
    )
    shown = pa.Table.from_pylist([{name: row[name] for name in _SHOWN} for row in worst])
    facts["members"] = dg.MetadataValue.md(markdown_table(shown))
    picture = views_picture(fleet)
    return facts | ({"views": dg.MetadataValue.md(picture)} if picture else {})
