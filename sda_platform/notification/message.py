"""The text of a message to people."""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sda_platform.clock import iso_to_second
from sda_platform.conjunction.alert_policy import BY_STATEMENT
from sda_platform.conjunction.currency import words_of
from sda_platform.foreign_text import in_message
from sda_platform.formats.markings import Marking
from sda_platform.notification.due import DueAlert
from sda_platform.orbits.risk.levels import RISK_LEVELS, probability_text
from sda_platform.units import SECOND_NS

# Chats and pagers cut long messages.
_MOST_ALERTS = 15
_MOST_CHARACTERS = 60
_COPIED = (
    "event_id", "sequence", "norad_id_1", "norad_id_2", "miss_distance_km", "collision_probability",
    "stated_probability", "stated_by",
)  # fmt: skip


@dataclass(frozen=True)
class PeopleMessage:
    """A message: ``key`` is the same for each repetition of it; ``level`` the highest of its alerts, or empty.

    ``alerts`` has the facts of each alert for a program, in the order of the text.
    """

    key: str
    title: str
    body: str
    level: str = ""
    alerts: tuple[Mapping[str, Any], ...] = ()


def trial_message() -> PeopleMessage:
    """Return a message that shows whether a channel takes one."""
    return PeopleMessage(f"test-{uuid.uuid4().hex}", "Test of the SDA platform", "This channel takes messages.")


def message_of(
    channel: str, changed: Sequence[DueAlert], notes: Sequence[str], now_ns: int, console: str = ""
) -> PeopleMessage | None:
    """Return the message to ``channel`` about alerts and what else is to note; None where there is nothing.

    ``console``: the address that links begin with; empty: there is no link. The highest level comes first.
    """
    if not changed and not notes:
        return None
    ordered = sorted(changed, key=lambda each: (-RISK_LEVELS.index(each.alert["risk"]), each.alert["tca_time_ns"]))
    lines = [_line(each, now_ns, console) for each in ordered[:_MOST_ALERTS]]
    if len(ordered) > _MOST_ALERTS:
        lines.append(f"and {len(ordered) - _MOST_ALERTS} more: `sda alert list`")
    body = "\n".join([*lines, *notes, f"As of {iso_to_second(now_ns)}."])
    title = _title(ordered, now_ns) if ordered else notes[0]
    key = hashlib.sha256(f"{channel}\n{now_ns}\n{body}".encode()).hexdigest()[:24]
    facts = tuple(_facts(each, console) for each in ordered)
    return PeopleMessage(key, title, body, ordered[0].alert["risk"] if ordered else "", facts)


def _title(ordered: Sequence[DueAlert], now_ns: int) -> str:
    first = ordered[0]
    more = f" and {len(ordered) - 1} more" if len(ordered) > 1 else ""
    ahead = words_of((first.alert["tca_time_ns"] - now_ns) / SECOND_NS)
    pair = f"{_name(first.alert, 1)} – {_name(first.alert, 2)}"
    return f"{_marks(first.alert)}{first.alert['risk']} {first.change}: {pair}, in {ahead}{more}"


def _line(due: DueAlert, now_ns: int, console: str) -> str:
    alert = due.alert
    pair = " – ".join(f"{_name(alert, n)} ({alert[f'norad_id_{n}'] or 'no number'})" for n in (1, 2))
    tca = f"TCA {iso_to_second(alert['tca_time_ns'])}, in {words_of((alert['tca_time_ns'] - now_ns) / SECOND_NS)}"
    link = _link(alert, console) or f"alert {alert['event_id']}"
    numbers = f"miss {alert['miss_distance_km']:.3f} km, {_probability(alert)}"
    if due.change == "withdrawn":
        numbers = f"last {numbers}; {_why_withdrawn(alert)}: `sda alert show {alert['event_id'][:8]}`"
    return f"{_marks(alert)}{alert['risk']}, {due.change}: {pair}\n  {tca}; {numbers}\n  {link}"


def _why_withdrawn(alert: Mapping[str, Any]) -> str:
    if alert["status"] == "closed":
        return "its TCA has passed"
    if alert["rule"] == BY_STATEMENT:
        return "the messages that it rested on count no more, or state less"
    return "by the newest states it is below all levels, there is no such approach, or the fleet has neither object"


def _link(alert: Mapping[str, Any], console: str) -> str | None:
    return f"{console.rstrip('/')}/conjunctions/{alert['event_id']}" if console else None


def _facts(due: DueAlert, console: str) -> dict[str, Any]:
    alert = due.alert
    names = {f"object_name_{n}": _name(alert, n) for n in (1, 2)}
    copied = {**{name: alert[name] for name in _COPIED}, **Marking.of(alert).columns()}
    tca, link = iso_to_second(alert["tca_time_ns"]), _link(alert, console)
    return {**copied, **names, "level": alert["risk"], "change": due.change, "tca_utc": tca, "link": link}


def _probability(alert: Mapping[str, Any]) -> str:
    ours, stated = alert["collision_probability"], alert["stated_probability"]
    parts = [f"Pc {probability_text(ours, 1)}"] if ours is not None else []
    if stated is not None:
        parts.append(f"Pc {probability_text(stated, 1)} by {_one_line(alert['stated_by'] or 'others')}")
    return ", ".join(parts) or "no Pc"


def _marks(alert: Mapping[str, Any]) -> str:
    """Return what a reader must see first: the marking of the data, unless it is unclassified and real, or unknown."""
    shown = Marking.of(alert).shown
    return f"[{_one_line(shown)}] " if shown else ""


def _name(alert: Mapping[str, Any], n: int) -> str:
    return _one_line(alert[f"object_name_{n}"] or "unnamed")


def _one_line(text: str) -> str:
    """Return a text that others wrote as a part of a line."""
    shown = in_message(text)
    return shown if len(shown) <= _MOST_CHARACTERS else f"{shown[: _MOST_CHARACTERS - 1]}…"
