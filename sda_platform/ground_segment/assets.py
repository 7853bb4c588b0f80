"""Assets of the ground segment: landing/ground → ground_events → ground_commands."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import pyarrow as pa

from sda_platform.clock import NANOSECONDS_PER_SECOND
from sda_platform.ground_segment.command_states import decode, oldest_pending_ns, states
from sda_platform.ground_segment.links import heartbeat_events, link_events, link_states
from sda_platform.ground_segment.path_states import path_states
from sda_platform.ground_segment.tables import GROUND_COMMANDS, GROUND_EVENTS, GROUND_FEED
from sda_platform.lake.errors import Unavailable
from sda_platform.landing.decoding import one_by_one
from sda_platform.orchestration.jobs import GROUND_SEGMENT
from sda_platform.orchestration.landing_table import land
from sda_platform.orchestration.leases import LeaseResource, without_leases
from sda_platform.orchestration.resources import LakeResource, LandingResource
from sda_platform.orchestration.table_asset import markdown_table, materialized, nothing_new, table_asset
from sda_platform.orchestration.zone_asset import zone_asset

_HEARD_NS = 3600 * NANOSECONDS_PER_SECOND

ground_zone = zone_asset(
    GROUND_FEED,
    GROUND_EVENTS,
    GROUND_SEGMENT,
    "Events of ground commands and uplinks as lines of JSON, sealed by issuers and uplinks.",
    replayable="yes",
    ordering="by uplink and token",
    delivery="at least once",
)


@table_asset(GROUND_EVENTS, jobs=[GROUND_SEGMENT])
def ground_events(
    context: dg.AssetExecutionContext, lake: LakeResource, landing: LandingResource
) -> dg.MaterializeResult[Any]:
    """Every event of a ground command (issued, accepted, sent, acknowledged, expired) and of an uplink, for ever.

    An event counts once its segment is sealed. An uplink that takes over rebuilds its queue from here and from what
    still waits in the landing zone.
    """
    return land(lake, landing, GROUND_EVENTS, one_by_one(decode), report=context.log_event)


@table_asset(GROUND_COMMANDS, jobs=[GROUND_SEGMENT], stand_ins=without_leases)
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
    """How long the oldest command of each station and priority has waited, the most urgent first."""
    order = sorted(oldest_ns.items(), key=lambda each: (each[0][0], -each[0][1]))
    rows = [
        {"station": station, "priority": priority, "oldest_waits_s": (now_ns - issued_ns) / NANOSECONDS_PER_SECOND}
        for (station, priority), issued_ns in order
    ]
    return _table("waiting", rows)


def shown_links(events: list[dict[str, Any]], heard: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Who commands each station under which token, the state of each path, and the timeline, where there are any."""
    from sda_platform.ground_segment.pictures import timeline

    picture = timeline(events)
    facts = {
        **_table("links", [link.shown() for link in link_states(events)]),
        **_table("paths", [path.shown() for path in path_states([*events, *heard])]),
    }
    return facts | ({"failover_timeline": dg.MetadataValue.md(picture)} if picture else {})


def shown_leases(leases: LeaseResource) -> dict[str, Any]:
    """Who holds which lease, under which token and for how long, where the platform has an etcd that answers."""
    try:
        return _table("leases", [each.shown() for each in leases.held()])
    except Unavailable as error:
        return {"leases": str(error)}


def _table(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: dg.MetadataValue.md(markdown_table(pa.Table.from_pylist(rows)))} if rows else {}
