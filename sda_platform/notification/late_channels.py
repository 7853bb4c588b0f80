"""Channels that do not take messages, and messages that were refused: what a vital and the other channels report."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sda_platform.conjunction.currency import words_of
from sda_platform.lake.errors import Misconfigured
from sda_platform.notification import channel_state
from sda_platform.notification.channel_state import RefusedMessage
from sda_platform.notification.rules import NotifyRules
from sda_platform.settings import Settings
from sda_platform.units import DAY_S


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


class ChannelRefusal(NamedTuple):
    """A message that a channel refused for good; ``text`` says so."""

    channel: str
    refusal: RefusedMessage

    @property
    def text(self) -> str:
        """Name channel, message and reason."""
        return f"channel {self.channel} refused a message for good, {self.refusal.title!r}: {self.refusal.reason}"


def refusals_of(home: Path, channels: Iterable[str], after_s: float) -> list[ChannelRefusal]:
    """Return the messages that were refused for good after wall ``after_s``, Unix seconds, the oldest first."""
    found = [ChannelRefusal(name, each) for name in channels for each in channel_state.load(home, name).refused]
    return sorted((each for each in found if each.refusal.at_s > after_s), key=lambda each: each.refusal.at_s)


def notification_problems(settings: Settings, now_s: float) -> list[LateChannel]:
    """Return what keeps people from being notified: late channels, messages refused within a day, or rules that cannot
    be used.
    """
    try:
        rules = NotifyRules.load(settings)
    except Misconfigured as error:
        return [LateChannel("rules", str(error), 0.0)]
    if rules is None:
        return []
    home, channels = settings.home.absolute(), rules.file.channels
    refused = {each.channel: each for each in refusals_of(home, channels, now_s - DAY_S)}  # of each the newest
    return [
        *late_channels(home, channels, now_s, settings.notification.lag_s),
        *(LateChannel(f"message of {name}", each.text, now_s - each.refusal.at_s) for name, each in refused.items()),
    ]
