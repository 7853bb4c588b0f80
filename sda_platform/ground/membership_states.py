"""Segments of membership events to bronze rows, and events to the merged state of each member. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from sda_platform.formats.membership_events import ADMITTED, ALIVE, REGISTRY_EVENTS, STATUS_NAMES
from sda_platform.ground.membership import Membership
from sda_platform.ground.tables import FLEET_MEMBERSHIP, MEMBERSHIP_FEED, MEMBERSHIP_OBSERVATIONS
from sda_platform.landing.record_rows import record_decoder

VIEW_EXPIRES_S: Final = 120.0
"""An observer that reported nothing for so long before the newest report has no vote: it may have failed itself."""
_COLUMNS: Final = FLEET_MEMBERSHIP.content_schema.names

decode = record_decoder(MEMBERSHIP_OBSERVATIONS, MEMBERSHIP_FEED, asdict)


def merged(before: Iterable[Mapping[str, Any]], events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Apply ``events``, in any order, to the rows ``before`` of `fleet_membership`; return the changed rows.

    Of each observer its newest claim of a member counts, while the observer reports. The greatest of these claims by
    (generation, status) holds.
    """
    known = {row["member"]: {**row, "views": json.loads(row["views"])} for row in before}
    old = {name: dict(row) for name, row in known.items()}
    for event in sorted(events, key=_order):
        row = known.setdefault(event["member"], _first(event))
        if event["event"] in REGISTRY_EVENTS:
            row["is_registered"] = event["event"] == ADMITTED
        else:
            _take(row, event)
    current = _current_observers(known.values())
    rows = (_with_status(row, current) for _, row in sorted(known.items()))
    return [_stored(row) for row in rows if row != old.get(row["member"])]


def _take(row: dict[str, Any], event: Mapping[str, Any]) -> None:
    """Replace the observer's claim, unless it made a later one."""
    views: dict[str, list[int]] = row["views"]
    mine = views.get(event["observer"])
    if mine is not None and mine[2] >= event["number"]:
        return
    held = [event["generation"], STATUS_NAMES.index(event["event"])]
    since_ns = mine[3] if mine is not None and mine[:2] == held else event["event_time_ns"]
    claim = [*held, event["number"], since_ns]
    row["views"] = {**views, event["observer"]: claim}
    if event["observer"] == event["member"]:
        row["own_report_time_ns"] = max(row["own_report_time_ns"] or 0, event["event_time_ns"])
    is_newest = all(event["generation"] >= generation for generation, *_ in views.values())
    row |= {name: event[name] for name in ("role", "address") if event[name] and is_newest}


def _current_observers(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return who reported within `VIEW_EXPIRES_S` before the newest report."""
    reports = {row["member"]: row["own_report_time_ns"] for row in rows if row["own_report_time_ns"] is not None}
    newest_ns = max(reports.values(), default=0)
    return {name for name, time_ns in reports.items() if newest_ns - time_ns <= VIEW_EXPIRES_S * 1e9}


def _with_status(row: dict[str, Any], current: set[str]) -> dict[str, Any]:
    """``row`` with the status that follows from the views of ``current`` observers, or of all where none is."""
    views = [view for observer, view in row["views"].items() if observer in current]
    every = views or list(row["views"].values())
    if not every:
        return row
    held = max(Membership(generation, status) for generation, status, *_ in every)
    alive = sum(status == ALIVE for _, status, *_ in views)
    since_ns = min(since_ns for *claim, _, since_ns in every if Membership(*claim) == held)
    state = {"generation": held.generation, "status": held.name, "since_time_ns": since_ns}
    return {**row, **state, "alive_views": alive, "other_views": len(views) - alive}


def _order(event: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(event[name] for name in ("event_time_ns", "number", "observer", "member", "event"))


def _first(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of a member before its first event."""
    numbers = {"generation": 0, "alive_views": 0, "other_views": 0, "since_time_ns": event["event_time_ns"]}
    unknown = {"is_registered": False, "status": None, "own_report_time_ns": None, "role": "", "address": ""}
    return {"member": event["member"], "views": {}, **numbers, **unknown}


def _stored(row: dict[str, Any]) -> dict[str, Any]:
    stored = row | {"views": json.dumps(row["views"], sort_keys=True)}
    return {name: stored[name] for name in _COLUMNS}


def disputed(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Find members that some current observers see alive and others failed: the network may be cut between them."""
    for row in rows:
        if row["status"] in ("suspected", "failed") and row["alive_views"] and row["other_views"]:
            views = f"alive for {row['alive_views']} observers, not for {row['other_views']}"
            yield f"{row['member']} is {views}"
