"""Assets of package ground: landing/ground → ground_events → ground_commands, and the same of membership."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from sda_platform.ground import command_states, game_day_rows, membership_states
from sda_platform.ground.checks import MAX_WAIT_S, commands_are_executed_once, every_claim_has_a_member
from sda_platform.ground.command_states import oldest_pending_ns, states
from sda_platform.ground.links import heartbeat_events, link_events, link_states
from sda_platform.ground.membership_states import disputed, merged
from sda_platform.ground.path_states import path_states
from sda_platform.ground.tables import (
    FLEET_MEMBERSHIP,
    GAME_DAY_FEED,
    GAME_DAYS,
    GROUND_COMMANDS,
    GROUND_EVENTS,
    GROUND_FEED,
    MEMBERSHIP_FEED,
    MEMBERSHIP_OBSERVATIONS,
)
from sda_platform.lake.errors import Unavailable
from sda_platform.lake.lake import Lake
from sda_platform.landing.decoding import one_by_one
from sda_platform.orchestration.declarations import table_asset
from sda_platform.orchestration.jobs import GROUND_SEGMENT
from sda_platform.orchestration.landing_table import Decoding, landing_asset
from sda_platform.orchestration.leases import LeaseResource, without_leases
from sda_platform.orchestration.materialization import in_ui, markdown_table, materialized, nothing_new, shown_table
from sda_platform.orchestration.resources import LakeResource
from sda_platform.orchestration.table_checks import DataFreshness
from sda_platform.orchestration.zone_asset import ZoneContents
from sda_platform.units import HOUR_NS, SECOND_NS

_SHOWN_OF_MEMBERS = ("member", "is_registered", "status", "generation", "role", "alive_views", "other_views")
_HEARD_NS = HOUR_NS


@landing_asset(
    GAME_DAYS,
    jobs=[GROUND_SEGMENT],
    zones={
        GAME_DAY_FEED: ZoneContents(
            "Outcomes of rehearsed faults as lines of JSON, sealed by the asset `game_day`.",
            replayable="no",
            ordering="by time of the fault",
        )
    },
    freshness=DataFreshness.unscheduled("a check of its own demands rehearsals"),
)
def game_days(_store: Lake) -> Decoding:
    """Every rehearsed fault: how long the ground segment took to detect it and to recover."""
    return Decoding(one_by_one(game_day_rows.decode))


@landing_asset(
    GROUND_EVENTS,
    jobs=[GROUND_SEGMENT],
    zones={
        GROUND_FEED: ZoneContents(
            "Events of ground commands and uplinks as lines of JSON, sealed by issuers and uplinks.",
            replayable="yes",
            ordering="by uplink and token",
        )
    },
    freshness=DataFreshness.unscheduled("a platform need not command stations"),
)
def ground_events(_store: Lake) -> Decoding:
    """Every event of a ground command (issued, accepted, sent, acknowledged, expired) and of an uplink, for ever.

    An event counts once its segment is sealed. An uplink that takes over rebuilds its queue from here and from what
    still waits in the landing zone.
    """
    return Decoding(one_by_one(command_states.decode))


@table_asset(
    GROUND_COMMANDS,
    jobs=[GROUND_SEGMENT],
    balance=[commands_are_executed_once],
    max_wait_s=MAX_WAIT_S,
    stand_ins=without_leases,
)
def ground_commands(lake: LakeResource, leases: LeaseResource) -> dg.MaterializeResult[Any]:
    """The state of each ground command and when it reached each state; which uplink of a station is active.

    The metadata show who holds which lease, and which paths are suspected or declared failed, since when. They show
    how long the oldest command of each priority has waited.

    A command is sent at least once and executed at most once: the station has its id, and refuses the sender of an
    older fencing token.
    """
    store = lake.open()
    plan = store.plan(GROUND_COMMANDS)
    if plan.is_empty:
        return nothing_new(store, plan)
    events = [row for row in store.new_rows(plan, GROUND_EVENTS).to_pylist() if row["error_kind"] is None]
    named = {row["command_id"] for row in events}
    present = {row["command_id"]: row for row in store.current_rows(plan).to_pylist()}
    rows = states([row for row in present.values() if row["command_id"] in named], events)
    waiting = oldest_pending_ns({**present, **{row["command_id"]: row for row in rows}}.values())
    receipt = store.replace(plan, pa.Table.from_pylist(rows, GROUND_COMMANDS.content_schema))
    facts: dict[str, Any] = {f"now_{state}": count for state, count in Counter(row["state"] for row in rows).items()}
    upto = plan.window(GROUND_EVENTS).upto_sequence
    links = link_events(store, upto_sequence=upto)
    heard = heartbeat_events(store, plan.as_of_ns - _HEARD_NS, upto_sequence=upto)
    shown = {**shown_waiting(waiting, plan.as_of_ns), **shown_links(links, heard), **shown_leases(leases)}
    return materialized(store, receipt, **facts, **shown)


def shown_waiting(oldest_ns: Mapping[tuple[str, int], int], now_ns: int) -> dict[str, Any]:
    """Tabulate how long the oldest command of each station and priority has waited, the most urgent first."""
    order = sorted(oldest_ns.items(), key=lambda each: (each[0][0], -each[0][1]))
    rows = [
        {"station": station, "priority": priority, "oldest_waits_s": (now_ns - issued_ns) / SECOND_NS}
        for (station, priority), issued_ns in order
    ]
    return _table("waiting", rows)


def shown_links(events: list[dict[str, Any]], heard: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Tabulate who commands each station under which token, the state of each path, and the timeline."""
    from sda_platform.ground.pictures import timeline

    picture = timeline(events)
    facts = {
        **_table("links", [link.shown() for link in link_states(events)]),
        **_table("paths", [path.shown() for path in path_states([*events, *heard])]),
    }
    return facts | ({"failover_timeline": in_ui(picture)} if picture else {})


def shown_leases(leases: LeaseResource) -> dict[str, Any]:
    """Tabulate the holder, token and remaining time of each lease, where the platform has an etcd that answers."""
    try:
        return _table("leases", [each.shown() for each in leases.held()])
    except Unavailable as error:
        return {"leases": str(error)}


def _table(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: shown_table(rows)} if rows else {}


@landing_asset(
    MEMBERSHIP_OBSERVATIONS,
    jobs=[GROUND_SEGMENT],
    zones={
        MEMBERSHIP_FEED: ZoneContents(
            "Views of the agents of stations and collectors, and changes of the registry, as lines of JSON.",
            replayable="yes",
            ordering="by observer",
        )
    },
    freshness=DataFreshness.unscheduled("a platform need not have agents"),
)
def membership_observations(_store: Lake) -> Decoding:
    """Every claim of an agent about the status of another one, and every change of the registry, for ever."""
    return Decoding(one_by_one(membership_states.decode))


@table_asset(FLEET_MEMBERSHIP, jobs=[GROUND_SEGMENT], balance=[every_claim_has_a_member], max_wait_s=MAX_WAIT_S)
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
    """Tabulate registered members by status, members that are not alive, and which observer holds what for which."""
    if not fleet:
        return {}
    from sda_platform.ground.pictures import views_picture

    facts: dict[str, Any] = dict(Counter(f"now_{row['status'] or 'silent'}" for row in fleet if row["is_registered"]))
    facts["disputed"] = sum(1 for _ in disputed(fleet))
    worst = sorted(
        fleet,
        key=lambda row: (row["status"] == "alive", not row["is_registered"], row["alive_views"], row["member"]),
    )
    shown = pa.Table.from_pylist([{name: row[name] for name in _SHOWN_OF_MEMBERS} for row in worst])
    facts["members"] = in_ui(markdown_table(shown))
    picture = views_picture(fleet)
    return facts | ({"views": in_ui(picture)} if picture else {})
