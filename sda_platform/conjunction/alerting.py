"""From assessed events and the alerts that were sent to the alerts that hold. Arrow in, Arrow out, no Spark.

An alert that did not change in a way that matters is returned as it was sent, so that no entry follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.conjunction.alert_policy import LEVEL_COLUMNS, AlertPolicy
from sda_platform.conjunction.event_rows import STATED_COLUMNS
from sda_platform.conjunction.operator_ephemerides import ASSUMED_EPHEMERIS
from sda_platform.conjunction.stated_encounters import STATED, STATED_TYPE, Statements
from sda_platform.conjunction.stated_precision import rounded
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS, CONJUNCTION_ASSESSMENTS
from sda_platform.formats.markings import Marking, highest, of_pair
from sda_platform.lake.correction_log import content, fact_schema
from sda_platform.orbits.risk.levels import RISK_LEVELS

OPEN, CLOSED = "open", "closed"
SENT = "sent"
"""The column with the alert that was sent last, a struct of its content; null: none is active."""
ASSESSED_COLUMNS = (
    "event_id", *LEVEL_COLUMNS, "miss_distance_km", "relative_speed_km_s", "object_name_1", "object_name_2",
    "state_source_1", "state_source_2", "track_id_1", "track_id_2", "classification_1", "classification_2",
    "data_mode_1", "data_mode_2",
)  # fmt: skip
JUDGED_COLUMNS = (*LEVEL_COLUMNS, "stated_probability")
_EVENT_SCHEMA = pa.schema(
    [
        *(CONJUNCTION_ASSESSMENTS.arrow_schema.field(name) for name in ASSESSED_COLUMNS),
        pa.field(STATED, STATED_TYPE),
        pa.field(
            SENT, pa.struct([CONJUNCTION_ALERTS.arrow_schema.field(name) for name in content(CONJUNCTION_ALERTS)])
        ),
    ]
)
ALERT_SCHEMA = fact_schema(CONJUNCTION_ALERTS)
_QUALITIES = ("element_sets", "mixed", "tracks_or_ephemerides")
# Sources whose covariance is the model of element-set errors.
_MODELLED = ("element_set", ASSUMED_EPHEMERIS)
_ONLY_STATED = "received_cdm"
_COPIED = (
    "event_id", "norad_id_1", "norad_id_2", "object_name_1", "object_name_2", "track_id_1", "track_id_2", "stated_by",
)  # fmt: skip
Row = Mapping[str, Any]


def alerts_of(events: pa.Table, policy: AlertPolicy, as_of_ns: int) -> pa.Table:
    """Return the alerts that hold at ``as_of_ns``; an event without one is left out.

    ``events`` has ASSESSED_COLUMNS, null where the event is not assessed, `STATED` and `SENT`. Our assessment comes
    before what others state; an event that only messages have is as they state it. An alert is closed, with its
    outcome, once its TCA has passed, and then stays as it is, unless its TCA moves ahead again. An event that is first
    known after its TCA gets no alert.
    """
    sent, facts = events.column(SENT).to_pylist(), with_statements(events)
    is_known = np.asarray(facts.column("tca_time_ns").is_valid())
    rows, gone = np.flatnonzero(is_known), np.flatnonzero(~is_known)
    ids = events.column("event_id").to_pylist()
    # What has passed is not withdrawn.
    passed = [{"event_id": ids[row], **sent[row]} for row in gone if _is_closed(sent[row])]
    known = facts.take(pa.array(rows))
    columns = {name: known.column(name).to_numpy(zero_copy_only=False) for name in JUDGED_COLUMNS}
    before = np.array([RISK_LEVELS.index(sent[row]["risk"]) if sent[row] else 0 for row in rows], dtype=np.int64)
    levels = policy.levels(columns, before, as_of_ns)
    rules = policy.rule(columns, levels, as_of_ns)
    closed = np.array([_is_closed(sent[row]) for row in rows], dtype=np.bool_)
    kept = np.flatnonzero((levels > 0) | closed)
    chosen = known.take(pa.array(kept)).to_pylist()
    found = [
        _alert(fact, sent[rows[at]], int(levels[at]), rules[at], policy, as_of_ns)
        for at, fact in zip(kept, chosen, strict=True)
    ]
    return pa.Table.from_pylist([*passed, *(each for each in found if each)], ALERT_SCHEMA)


def with_statements(events: pa.Table) -> pa.Table:
    """``events`` without `STATED` and `SENT`: its facts in their own columns, where we have no assessment ourselves."""
    found, stated = events.drop_columns([SENT, STATED]), events.column(STATED).combine_chunks()
    is_assessed = found.column("tca_time_ns").is_valid()
    for name in STATED_COLUMNS:
        column = pc.struct_field(stated, name)
        if name in ASSESSED_COLUMNS:
            kept = pc.if_else(is_assessed, found.column(name), column)
            found = found.set_column(found.schema.get_field_index(name), name, kept)
        else:
            found = found.append_column(name, column)
    return found


def events_table(assessed: Mapping[str, Row], stated: Statements, sent: Mapping[str, Row] | None = None) -> pa.Table:
    """Return the events of any of these, each by event id, in order of ids: what `alerts_of` takes.

    ``assessed`` has ASSESSED_COLUMNS, ``sent`` the content of alerts.
    """
    active = sent or {}
    rows = [
        {**assessed.get(event, {}), "event_id": event, STATED: stated.get(event), SENT: active.get(event)}
        for event in sorted(assessed.keys() | stated.keys() | active.keys())
    ]
    return pa.Table.from_pylist(rows, _EVENT_SCHEMA)


def _is_closed(sent: Row | None) -> bool:
    return sent is not None and sent["status"] == CLOSED


def _alert(
    fact: Row, sent: Row | None, level: int, rule: str, policy: AlertPolicy, as_of_ns: int
) -> dict[str, Any] | None:
    """Return the alert of an assessed event; None where it has none."""
    has_passed = fact["tca_time_ns"] <= as_of_ns
    known = None if sent is None else {"event_id": fact["event_id"], **sent}
    if has_passed and (sent is None or _is_closed(sent)):
        return known
    if level == 0:  # a closed alert whose TCA moved ahead, and which is no alert any more
        return known
    highest = level if sent is None else max(level, RISK_LEVELS.index(sent["highest_risk"] or sent["risk"]))
    now = {
        **{name: fact[name] for name in _COPIED},
        **rounded(fact),
        "risk": RISK_LEVELS[level],
        "highest_risk": RISK_LEVELS[highest],
        "rule": rule,
        "data_quality": _quality(fact),
        **_marking(fact).columns(),
        "status": CLOSED if has_passed else OPEN,
        "outcome": f"passed_{RISK_LEVELS[level]}" if has_passed else None,
    }
    if sent is None:
        return {**now, "change": "new"}
    changes = policy.changes(now, sent)
    if _is_closed(sent):
        changes.insert(0, "reopened")
    if has_passed:
        changes.append(CLOSED)
    return {**now, "change": ",".join(changes)} if changes else known


def _quality(fact: Row) -> str:
    sources = [fact[f"state_source_{n}"] for n in (1, 2)]
    return _ONLY_STATED if None in sources else _QUALITIES[sum(source not in _MODELLED for source in sources)]


def _marking(fact: Row) -> Marking:
    """Return the marking of the data of both states, and of the received message that the alert names."""
    of_message = [Marking.of(fact)] if fact["stated_probability"] is not None else []
    is_assessed = fact["state_source_1"] is not None
    return highest([*(of_pair(fact) if is_assessed else ()), *of_message])
