"""Channels that do not take messages: what a vital and the other channels report."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sda_platform.conjunction.currency import words_of
from sda_platform.lake.errors import Misconfigured
from sda_platform.notification import channel_state
from sda_platform.notification.rules import NotifyRules
from sda_platform.settings import Settings


class LateChannel(NamedTuple):
    """A channel whose message has waited for ``late_s``; ``text`` says so, with what is known of the reason."""

    channel: str
    text: str
    late_s: float


def late_channels(home: Path, channels: Iterable[str], now_s: float, lag_s: float) -> list[LateChannel]:
    """Return the channels of which a message has waited longer than ``lag_s`` at wall ``now_s``, Unix seconds."""
    found = []
    for name in channels:
        state = channel_state.load(home, name)
        late_s = state.late_s(now_s)
        if late_s > lag_s:
            reason = state.problem or "the service does not answer, or no watchdog runs"
            text = f"channel {name} has taken no message for {words_of(late_s)}: {reason}"
            found.append(LateChannel(name, text, late_s))
    return found


def notification_problems(settings: Settings, now_s: float) -> list[LateChannel]:
    """Return what keeps people from being notified: late channels, or rules that cannot be used."""
    try:
        rules = NotifyRules.load(settings)
    except Misconfigured as error:
        return [LateChannel("rules", str(error), 0.0)]
    if rules is None:
        return []
    return late_channels(settings.home.absolute(), rules.file.channels, now_s, settings.notification.lag_s)
