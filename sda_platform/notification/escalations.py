"""Alerts without an acknowledgement, which a rule sends for that reason: which, when, and whether they were sent."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sda_platform.notification import channel_state
from sda_platform.notification.due import is_acknowledged
from sda_platform.notification.rules import NotifyRules
from sda_platform.notification.situation import AlertsNow


class Escalation(NamedTuple):
    """A rule sends an alert through a channel at mission time ``due_ns`` unless it is acknowledged; or ``is_sent``."""

    event_id: str
    rule: str
    channel: str
    due_ns: int
    is_sent: bool


def escalations(home: Path, rules: NotifyRules, now: AlertsNow) -> Iterator[Escalation]:
    """Yield the escalations of alerts that wait for an acknowledgement, from what the channels follow."""
    for channel in rules.file.channels:
        state = channel_state.load(home, channel)
        for rule in rules.of_channel(channel):
            if rule.unacknowledged_for is None:
                continue
            for event_id, followed in state.followed.get(rule.name, {}).items():
                is_open = event_id in now.alerts and now.is_active(event_id)
                if is_open and not is_acknowledged(event_id, followed, now):
                    due_ns = followed.since_ns + rule.unacknowledged_for
                    yield Escalation(event_id, rule.name, channel, due_ns, followed.is_sent)
