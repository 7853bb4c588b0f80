"""`sda alert list`: the alerts that hold at the subscriber, and how current the list is."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from rich.table import Table as Grid
from rich.text import Text

from sda_platform.cli.listing import grid, number, word, words
from sda_platform.cli.people import lake_of
from sda_platform.clock import iso, iso_to_second, parse_iso_ns
from sda_platform.conjunction.acknowledging import acknowledgements_of, assignee, known_actions
from sda_platform.conjunction.alert_policy import BY_PROBABILITY, RED, urgency
from sda_platform.conjunction.currency import Currency
from sda_platform.conjunction.data_origins import SHORT_KINDS, assessments_of, data_origins, of_whom, origin_columns
from sda_platform.conjunction.selection import EventSelection, first_places, sort_key
from sda_platform.conjunction.tables import CONJUNCTION_ALERTS
from sda_platform.conjunction.unalerted_cdms import unalerted_cdms
from sda_platform.delivery.configured import subscriber_of
from sda_platform.formats.markings import Marking
from sda_platform.lake.correction_log import INSERT, current_rows
from sda_platform.lake.lake import Lake
from sda_platform.observability.vitals.history import faults_now
from sda_platform.orbits.risk.levels import RISK_LEVELS, probability_text
from sda_platform.runtime.platform_home import running_platform
from sda_platform.settings import Settings

_COPIED = ("norad_id_1", "norad_id_2", "miss_distance_km", "relative_speed_km_s", "collision_probability", "risk")
_TEXTS = ("object_name_1", "object_name_2", "rule", "change", "stated_by")
_COLOURS = {"red": "bold red", "yellow": "yellow"}


@dataclass(frozen=True)
class CurrentAlert:
    """One alert that holds at the subscriber."""

    event_id: str
    revision: int
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
    assigned_to: str = ""
    acknowledged_revision: int | None = None
    stated_probability: float | None = None
    stated_by: str = ""
    state_source_1: str | None = None
    state_source_2: str | None = None
    data_of_1: str | None = None
    data_of_2: str | None = None
    owner_1: str | None = None
    owner_2: str | None = None
    source_name_1: str | None = None
    source_name_2: str | None = None
    classification: str | None = None
    data_mode: str | None = None


def current_alerts(settings: Settings, *, with_origins: bool = False) -> list[CurrentAlert]:
    """Return the alerts that hold by the subscriber's own account, highest level first, then Pc, then TCA.

    ``with_origins``: with whose data the states of both objects are.
    """
    lake = lake_of(settings)
    held = subscriber_of(settings).held()
    known = known_actions(lake, settings.landing_uri)
    facts = [{"event_id": entry.alert_id, **json.loads(entry.body)} for entry in held if entry.op == INSERT]
    revisions = {entry.alert_id: entry.sequence for entry in held}
    active = sorted((alert for alert in facts if alert.get("status") != "closed"), key=urgency)
    origins = data_origins(lake, list(assessments_of(lake, active).values())) if with_origins else {}
    seen = acknowledgements_of(known)
    return [
        _alert(
            a,
            revisions[a["event_id"]],
            seen.get(a["event_id"], ()),
            assignee(known.get(a["event_id"], ())),
            origin_columns(origins, a["event_id"]),
        )
        for a in active
    ]


def currency_lines(settings: Settings) -> Iterator[str]:
    """Describe what a list of alerts rests on, what received CDMs state beyond it, and whether the platform runs."""
    lake = lake_of(settings)
    yield str(Currency.of(lake))
    if lacking := _not_at_subscriber(lake, settings):
        red = lacking.count(RISK_LEVELS[RED])
        yield (
            f"not in the list: {len(lacking):,} active alerts of the lake, {red:,} of them red, that the subscriber "
            "lacks; the next delivery sends them"
        )
    for message in unalerted_cdms(lake, lake.clock.now_ns()):
        yield f"not among the alerts: {message.text}"
    if running_platform(settings.home.absolute()) is None:
        commit = lake.log(CONJUNCTION_ALERTS).head().commit
        newest = (
            f"alerts are those of {iso_to_second(commit.timestamp_ms * 1_000_000)}, wall time" if commit else "no alert"
        )
        yield f"the platform does not run: {newest}; `sda up` starts it"
    else:
        yield from (f"fault: {text}" for text in faults_now(settings.home.absolute()))


def _not_at_subscriber(lake: Lake, settings: Settings) -> list[str]:
    """Return the levels of the lake's active alerts that the subscriber does not have: not delivered yet, or lost
    there.
    """
    log = lake.log(CONJUNCTION_ALERTS)
    if log.head().commit is None:
        return []
    current = current_rows(log.rows(["event_id", "sequence", "op", "risk", "status"]), "event_id")
    known = {entry.alert_id for entry in subscriber_of(settings).held() if entry.op == INSERT}
    return [row["risk"] for row in current.to_pylist() if row["status"] != "closed" and row["event_id"] not in known]


def selected_alerts(alerts: Sequence[CurrentAlert], selection: EventSelection, sort: str) -> list[CurrentAlert]:
    """Return the alerts that are selected, in one of ORDERS."""
    facts = {alert: {**vars(alert), "tca_time_ns": parse_iso_ns(alert.tca_utc)} for alert in alerts}
    found = [alert for alert, fact in facts.items() if selection.has(fact)]
    return sorted(found, key=lambda alert: sort_key(sort, facts[alert]))


def first_alerts(alerts: Sequence[CurrentAlert], limit: int | None) -> list[CurrentAlert]:
    """Return the first ``limit`` alerts, and every red one."""
    return [alerts[place] for place in first_places((alert.risk for alert in alerts), limit)]


def write_alerts(settings: Settings, alerts: Sequence[CurrentAlert], stream: TextIO) -> None:
    """Write alerts as CSV in the columns of the console; what the subscriber holds counts, of one assessment each."""
    from sda_platform.conjunction.conjunction_csv import write_conjunctions

    lake = lake_of(settings)
    known = assessments_of(lake, map(vars, alerts))
    origins = data_origins(lake, list(known.values()))
    rows = (
        {
            **known.get(alert.event_id, {}),
            **{
                f"data_time_{n}_ns": origins[alert.event_id, n].time_ns
                for n in (1, 2)
                if (alert.event_id, n) in origins
            },
            **vars(alert),
            "tca_time_ns": parse_iso_ns(alert.tca_utc),
        }
        for alert in alerts
    )
    write_conjunctions(rows, lake.clock.now_ns(), stream)


def alert_grid(alerts: Sequence[CurrentAlert], limit: int | None = 40, active: int | None = None) -> Grid | str:
    """`first_alerts` as a table for the terminal: numbers whole, names wrapped.

    ``active``: how many alerts hold, where ``alerts`` are a selection of them.
    """
    of = "" if active in (None, len(alerts)) else f" of {active}"
    if not alerts:
        return f"none{of} active alerts is selected" if of else "no alert holds"
    shown = first_alerts(alerts, limit)
    cut = f", {len(shown)} of them shown (--limit)" if len(shown) < len(alerts) else ""
    newer = "; *: a later revision came since" if any("*" in _seen_by(a) for a in alerts) else ""
    tracks = "seen: number of the two objects whose state comes from a track"
    return grid(_COLUMNS, shown, f"{len(alerts)}{of} active alerts{cut}; Pc: our own; {tracks}{newer}")


def _pair_of(alert: CurrentAlert) -> str:
    """Both objects, with whose data their states are, and what others state of them."""
    shown = Marking(alert.classification, alert.data_mode).shown
    lines = [f"[{shown}]"] if shown else []
    for n in (1, 2):
        number, kind, data = (getattr(alert, f"{name}_{n}") for name in ("norad_id", "state_source", "data_of"))
        origin = f" · {SHORT_KINDS.get(kind, kind)} {of_whom(data or '')}".rstrip() if kind else ""
        lines.append(f"{number or ''} {getattr(alert, f'object_name_{n}')}{origin}".lstrip())
    if alert.stated_probability is not None:
        lines.append(f"{alert.stated_by}: Pc {probability_text(alert.stated_probability, 1)}")
    if alert.rule not in ("", BY_PROBABILITY):
        lines.append(f"rule: {alert.rule}")
    return "\n".join(lines)


def _seen_by(alert: CurrentAlert) -> str:
    """Return who acknowledged it last, with a star where it was revised since, and to whom it is assigned."""
    is_older = alert.acknowledged_revision is not None and alert.acknowledged_revision < alert.revision
    assigned = f"→ {alert.assigned_to}" if alert.assigned_to else ""
    return " ".join(filter(None, (f"{alert.acknowledged_by}{'*' if is_older else ''}", assigned)))


_COLUMNS = (
    word("level", lambda a: Text(a.risk, _COLOURS.get(a.risk, ""))),
    word("alert", lambda a: a.event_id[:8]),
    word("TCA (UTC)", lambda a: a.tca_utc[5:19].replace("T", " ")),
    number("miss km", lambda a: f"{a.miss_distance_km:.3f}"),
    number("Pc", lambda a: "none" if a.collision_probability is None else probability_text(a.collision_probability, 1)),
    number("seen", lambda a: f"{a.from_tracks}/2"),
    words("primary\nsecondary", _pair_of),
    words("ack", _seen_by),
)


def _alert(
    facts: Mapping[str, Any],
    revision: int,
    acknowledgements: Sequence[Mapping[str, Any]],
    assigned_to: str,
    origin: Mapping[str, str | None],
) -> CurrentAlert:
    seen = acknowledgements[-1] if acknowledgements else {}
    copied: dict[str, Any] = {name: facts[name] for name in _COPIED} | {name: facts.get(name) or "" for name in _TEXTS}
    copied |= {**origin, **Marking.of(facts).columns()}
    return CurrentAlert(
        event_id=facts["event_id"],
        revision=revision,
        tca_utc=iso(facts["tca_time_ns"]),
        from_tracks=sum(facts[name] is not None for name in ("track_id_1", "track_id_2")),
        status=facts.get("status") or "open",
        acknowledged_by=seen.get("acknowledged_by", ""),
        comment=seen.get("comment", ""),
        assigned_to=assigned_to,
        acknowledged_revision=seen.get("revision"),
        stated_probability=facts.get("stated_probability"),
        **copied,
    )
