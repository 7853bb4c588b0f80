"""What a rule has to send: the difference between the alerts of now and what it sent before. Pure.

A rule compares states and follows no events. What happened while a channel was away, or in quiet hours, is therefore
one change, from what was sent last to what holds now.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sda_platform.notification.notify_file import Change, RuleEntry
from sda_platform.notification.quiet_hours import is_quiet
from sda_platform.notification.rules import NotifyRules
from sda_platform.notification.situation import AlertsNow
from sda_platform.orbits.risk.levels import RISK_LEVELS

_NOTHING_SENT = -1
_rank = RISK_LEVELS.index


@dataclass(frozen=True)
class FollowedAlert:
    """An alert that a rule selects: its ``level``, and when and at which revision it came to it.

    ``sent_sequence`` and ``sent_level``: what was sent last; -1 and empty: nothing yet.
    """

    level: str
    since_ns: int
    since_sequence: int
    sent_sequence: int = _NOTHING_SENT
    sent_level: str = ""

    @property
    def is_sent(self) -> bool:
        """Whether anything was sent of it."""
        return self.sent_sequence != _NOTHING_SENT


@dataclass(frozen=True)
class DueAlert:
    """An alert to send, and what has changed since it was sent last."""

    alert: Mapping[str, Any]
    change: Change


Followed = Mapping[str, FollowedAlert]


def due(rules: NotifyRules, rule: RuleEntry, before: Followed, now: AlertsNow) -> tuple[Followed, list[DueAlert]]:
    """Return what ``rule`` follows after ``now``, by alert, and what is to be sent of it."""
    after: dict[str, FollowedAlert] = {}
    changed = []
    for event_id, alert in now.alerts.items():
        is_selected = now.is_active(event_id) and rules.selects(rule, alert, now.now_ns)
        followed, change = (_of_selected if is_selected else _of_other)(rule, alert, before.get(event_id), now)
        if followed:
            after[event_id] = followed
        if change in rule.changes:
            changed.append(DueAlert(alert, change))
    return after, changed


def _of_selected(
    rule: RuleEntry, alert: Mapping[str, Any], before: FollowedAlert | None, now: AlertsNow
) -> tuple[FollowedAlert, Change | None]:
    level, sequence = alert["risk"], alert["sequence"]
    if before is None:
        before = FollowedAlert(level, now.now_ns, sequence)
    elif _rank(level) > _rank(before.level):
        before = replace(before, since_ns=now.now_ns, since_sequence=sequence)
    followed = replace(before, level=level)
    if is_quiet(rule.quiet, rule.timezone, now.now_ns) or not _is_time(rule, alert["event_id"], followed, now):
        return followed, None
    sent = replace(followed, sent_sequence=sequence, sent_level=level)
    if not followed.is_sent:
        return sent, "begun"
    if level != followed.sent_level:
        return sent, "raised" if _rank(level) > _rank(followed.sent_level) else "lowered"
    return sent, "revised" if sequence > followed.sent_sequence else None


def _of_other(
    rule: RuleEntry, alert: Mapping[str, Any], before: FollowedAlert | None, now: AlertsNow
) -> tuple[FollowedAlert | None, Change | None]:
    """Of an alert that is withdrawn or selected no more, the end is sent where anything was sent."""
    if before is None or not before.is_sent:
        return None, None
    if is_quiet(rule.quiet, rule.timezone, now.now_ns):
        return before, None
    if not now.is_active(alert["event_id"]):
        return None, "withdrawn"
    return None, "lowered" if _rank(alert["risk"]) < _rank(before.sent_level) else None


def _is_time(rule: RuleEntry, event_id: str, followed: FollowedAlert, now: AlertsNow) -> bool:
    if rule.unacknowledged_for is None:
        return True
    is_late = now.now_ns - followed.since_ns >= rule.unacknowledged_for
    return is_late and not is_acknowledged(event_id, followed, now)


def is_acknowledged(event_id: str, followed: FollowedAlert, now: AlertsNow) -> bool:
    """Return whether somebody has acknowledged an alert since it came to its level."""
    return now.acknowledged.get(event_id, _NOTHING_SENT) >= followed.since_sequence
