"""Alerts as a person reads them: the table of what holds at the subscriber, and an alert's story."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from rich.table import Table as Grid
from rich.text import Text

from sda_platform.cli.people import lake_of
from sda_platform.clock import iso
from sda_platform.conjunction.acknowledging import known_acknowledgements
from sda_platform.conjunction.alert_policy import RED, reported, urgency
from sda_platform.conjunction.currency import Currency
from sda_platform.conjunction.data_origins import DataOrigin, origin_columns, origins_of_events
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.conjunction.unalerted_cdms import unalerted_cdms
from sda_platform.delivery.configured import subscriber_of
from sda_platform.lake.correction_log import INSERT
from sda_platform.observability.trace import Trace
from sda_platform.orbits.risk.probability import RISK_LEVELS
from sda_platform.runtime.platform_home import running_platform
from sda_platform.settings import Settings

_COLOURS = {"red": "bold red", "yellow": "yellow"}


@dataclass(frozen=True)
class CurrentAlert:
    """One alert that holds at the subscriber."""

    alert_id: str
    sequence: int
    tca_utc: str
    norad_id_1: int | None
    object_name_1: str
    norad_id_2: int | None
    object_name_2: str
    miss_distance_km: float
    relative_speed_km_s: float | None
    collision_probability: float | None
    risk: str
    from_tracks: int
    status: str
    rule: str
    change: str
    acknowledged_by: str = ""
    comment: str = ""
    acknowledged_sequence: int | None = None
    stated_probability: float | None = None
    stated_by: str = ""
    state_source_1: str | None = None
    state_source_2: str | None = None
    data_of_1: str | None = None
    data_of_2: str | None = None


def current_alerts(settings: Settings, *, with_origins: bool = False) -> list[CurrentAlert]:
    """The alerts that hold by the subscriber's own account, highest level first, then Pc, then TCA.

    ``with_origins``: with whose data the states of both objects are.
    """
    lake = lake_of(settings)
    held = subscriber_of(settings).held()
    known = known_acknowledgements(lake, settings.landing_uri)
    facts = [{"event_id": entry.alert_id, **json.loads(entry.body)} for entry in held if entry.op == INSERT]
    revisions = {entry.alert_id: entry.sequence for entry in held}
    active = sorted((alert for alert in facts if alert.get("status") != "closed"), key=urgency)
    origins = origins_of_events(lake, (alert["event_id"] for alert in active)) if with_origins else {}
    return [
        _alert(a, revisions[a["event_id"]], known.get(a["event_id"], ()), origin_columns(origins, a["event_id"]))
        for a in active
    ]


def currency_lines(settings: Settings) -> Iterator[str]:
    """What a list of alerts rests on, what others state beyond it, and whether the platform runs."""
    lake = lake_of(settings)
    yield str(Currency.of(lake))
    for message in unalerted_cdms(lake, lake.clock.now_ns()):
        yield f"not among the alerts: {message.text}"
    if running_platform(settings.home.absolute()) is None:
        commit = lake.log(CONJUNCTION_ALERTS).head().commit
        newest = (
            f"alerts are those of {iso(commit.timestamp_ms * 1_000_000)[:19]}Z, wall time" if commit else "no alert"
        )
        yield f"the platform does not run: {newest}; `sda up` starts it"


def alert_grid(alerts: Sequence[CurrentAlert], limit: int = 40) -> Grid | str:
    """The first ``limit`` alerts, and every red one, as a table for the terminal: numbers whole, names wrapped."""
    if not alerts:
        return "no alert holds"
    numbers = ("miss km", "Pc", "seen")
    headers = ("level", "alert", "TCA (UTC)", *numbers, "primary\nsecondary", "ack")
    grid = Grid(*headers, box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in grid.columns:
        column.no_wrap = column.header not in headers[-2:]
        column.justify = "right" if column.header in numbers else "left"
    shown = [a for place, a in enumerate(alerts) if place < limit or a.risk == RISK_LEVELS[RED]]
    for a in shown:
        grid.add_row(
            Text(a.risk, _COLOURS.get(a.risk, "")),
            a.alert_id[:8],
            a.tca_utc[5:19].replace("T", " "),
            f"{a.miss_distance_km:.3f}",
            "none" if a.collision_probability is None else f"{a.collision_probability:.1e}",
            f"{a.from_tracks}/2",
            _pair_of(a),
            _seen_by(a),
        )
    newer = any(_seen_by(a).endswith("*") for a in alerts)
    cut = f", {len(shown)} of them shown (--limit)" if len(shown) < len(alerts) else ""
    grid.caption = (
        f"{len(alerts)} active alerts{cut}; Pc: our own; seen: number of the two objects whose state comes from a track"
    )
    if newer:
        grid.caption += "; *: a later revision came since"
    grid.caption_justify = "left"
    return grid


def _pair_of(alert: CurrentAlert) -> str:
    """Both objects, with whose data their states are, and what others state of them."""
    lines = []
    for n in (1, 2):
        number, kind, data = (getattr(alert, f"{name}_{n}") for name in ("norad_id", "state_source", "data_of"))
        origin = f" · {DataOrigin(kind, (data,) if data else ())}" if kind else ""
        lines.append(f"{number or ''} {getattr(alert, f'object_name_{n}')}{origin}".lstrip())
    if alert.stated_probability is not None:
        lines.append(f"{alert.stated_by}: Pc {alert.stated_probability:.1e}")
    return "\n".join(lines)


def _seen_by(alert: CurrentAlert) -> str:
    """Who acknowledged it last; with a star where it was revised since."""
    is_older = alert.acknowledged_sequence is not None and alert.acknowledged_sequence < alert.sequence
    return f"{alert.acknowledged_by}{'*' if is_older else ''}"


def trace_lines(trace: Trace) -> Iterator[str]:
    """An alert's story, newest statement first, down to segments and records."""
    last = trace.alerts[-1]
    pair = [f"{last[f'object_name_{n}']} ({last[f'norad_id_{n}']})" for n in (1, 2)]
    yield f"alert {trace.alert_id}: {pair[0]} – {pair[1]}"
    for row in trace.alerts:
        miss = f"miss {row['miss_distance_km']:.3f} km at {iso(row['tca_time_ns'])}"
        facts = f"{reported(row)}, {miss}"
        why = f" ({row['change']})" if row["op"] == INSERT and row["change"] else ""
        yield f"  {row['op']} {row['sequence']} as of {iso(row['as_of_ns'])}: {row['risk']}, {facts}{why}"
    for row in trace.deliveries:
        batch = f"batch {row['batch_id']}"
        yield f"  delivered {row['op']} {row['sequence']} to {row['subscriber']}: {row['outcome']} ({batch})"
    for row in trace.candidates:
        yield f"  candidate {row['op']} {row['sequence']}: miss {row['miss_distance_km']:.3f} km by both element sets"
    for row in trace.elements:
        yield f"  elements of {row['norad_id']}: epoch {iso(row['epoch_time_ns'])}, {_where(row)}"
    for row in sorted((r for r in trace.tracks if r["op"] == INSERT), key=itemgetter("epoch_time_ns")):
        kinds = f"{row['radar_count']} radar, {row['optical_count']} optical, {row['isl_count']} ISL"
        yield f"  track of {row['norad_id']} at {iso(row['epoch_time_ns'])}, entry {row['sequence']}: {kinds}"
    for row in sorted(trace.observations, key=itemgetter("sensor_time_ns")):
        yield f"    {row['source_id']} {iso(row['sensor_time_ns'])}: {_where(row)}"
    for each in trace.acknowledgements:
        remark = f": {each['comment']}" if each["comment"] else ""
        when = iso(each["acknowledged_time_ns"])
        yield f"  acknowledged {each['revision']} by {each['acknowledged_by']} at {when}{remark}"
    for row in trace.messages:
        yield f"  {row['originator']} reported the same encounter, message {row['message_id']}: {_where(row)}"


def _where(row: dict[str, Any]) -> str:
    sender = row.get("source_name")
    came = f", from {sender}" + (f" at {row['peer']}" if row["peer"] else "") if sender else ""
    return f"segment {row['segment_name']} record {row['record_number']} (sha256 {row['segment_sha256'][:12]}…){came}"


def _alert(
    facts: Mapping[str, Any],
    revision: int,
    acknowledgements: Sequence[Mapping[str, Any]],
    origin: Mapping[str, str | None],
) -> CurrentAlert:
    seen = acknowledgements[-1] if acknowledgements else {}
    return CurrentAlert(
        alert_id=facts["event_id"],
        sequence=revision,
        tca_utc=iso(facts["tca_time_ns"]),
        norad_id_1=facts["norad_id_1"],
        object_name_1=facts["object_name_1"] or "",
        norad_id_2=facts["norad_id_2"],
        object_name_2=facts["object_name_2"] or "",
        miss_distance_km=facts["miss_distance_km"],
        relative_speed_km_s=facts["relative_speed_km_s"],
        collision_probability=facts["collision_probability"],
        risk=facts["risk"],
        from_tracks=sum(facts[name] is not None for name in ("track_id_1", "track_id_2")),
        status=facts.get("status") or "open",
        rule=facts.get("rule") or "",
        change=facts.get("change") or "",
        acknowledged_by=seen.get("acknowledged_by", ""),
        comment=seen.get("comment", ""),
        acknowledged_sequence=seen.get("revision"),
        stated_probability=facts.get("stated_probability"),
        stated_by=facts.get("stated_by") or "",
        state_source_1=origin["state_source_1"],
        state_source_2=origin["state_source_2"],
        data_of_1=origin["data_of_1"],
        data_of_2=origin["data_of_2"],
    )
