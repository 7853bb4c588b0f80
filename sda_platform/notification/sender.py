"""Sending through one channel: what its rules have to send, durable before it is sent, until the service takes it."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from sda_platform import failpoints
from sda_platform.notification import channel_state, channels
from sda_platform.notification.channel_state import MOST_REFUSALS, ChannelState, RefusedMessage
from sda_platform.notification.due import due
from sda_platform.notification.late_channels import late_channels, refusals_of
from sda_platform.notification.message import message_of
from sda_platform.notification.rules import NotifyRules
from sda_platform.notification.situation import AlertReader, AlertsNow
from sda_platform.resilience import doubling_s
from sda_platform.settings import Settings

_FIRST_PAUSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 120.0


class ChannelSender:
    """Sends what rules select for one channel, a message at a time. While one waits, later changes add up.

    ``log`` gets a line of each problem that begins. ``wall_s``: Unix seconds.
    """

    def __init__(
        self,
        settings: Settings,
        reader: AlertReader,
        channel: str,
        log: Callable[[str], object],
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._home, self._reader = settings, settings.home.absolute(), reader
        self._channel, self._log, self._wall_s = channel, log, wall_s
        self._unstored: ChannelState | None = None
        self._again_s = 0.0

    def round(self, rules: NotifyRules) -> None:
        """Determine what is to be sent, unless a message waits, and send what waits where it is time."""
        before = state = self._unstored or channel_state.load(self._home, self._channel)
        if state.pending is None:
            state = self._with_due(rules, state, self._reader.now())
        if state != before:
            self._store(state)
        if state.pending is None or self._wall_s() < self._again_s:
            return
        entry, is_plain_allowed = rules.file.channels[self._channel], self._settings.access.plain_http
        problem = channels.send(self._channel, entry, state.pending, is_plain_allowed=is_plain_allowed)
        failpoints.hit("notify.sent")
        if problem is None:
            self._store(replace(state, pending=None, attempts=0, problem=""))
            return
        if problem.is_refused:
            self._log(f"channel {self._channel} refuses a message for good: {problem.reason}")
            refusal = RefusedMessage(state.pending.title, problem.reason, self._wall_s())
            refused = (*state.refused, refusal)[-MOST_REFUSALS:]
            self._store(replace(state, pending=None, attempts=0, problem="", refused=refused))
            return
        attempts = state.attempts + 1
        self._again_s = self._wall_s() + doubling_s(attempts, base_s=_FIRST_PAUSE_S, cap_s=_LONGEST_PAUSE_S)
        if problem.reason != state.problem:
            self._log(f"channel {self._channel}: {problem.reason}; the message is sent again")
        self._store(replace(state, attempts=attempts, problem=problem.reason))

    def _with_due(self, rules: NotifyRules, state: ChannelState, now: AlertsNow) -> ChannelState:
        followed, changed = {}, {}
        for rule in rules.of_channel(self._channel):
            followed[rule.name], found = due(rules, rule, state.followed.get(rule.name, {}), now)
            changed.update({each.alert["event_id"]: each for each in found})
        others, lag_s = {*rules.file.channels} - {self._channel}, self._settings.notification.lag_s
        late = {each.channel: each.text for each in late_channels(self._home, sorted(others), self._wall_s(), lag_s)}
        notes = [text for name, text in late.items() if name not in state.late]
        notes += [f"channel {name} takes messages again" for name in state.late if name not in late]
        refusals = refusals_of(self._home, sorted(others), state.refusals_reported_s)
        notes += [each.text for each in refusals]
        reported_s = max((each.refusal.at_s for each in refusals), default=state.refusals_reported_s)
        message = message_of(self._channel, list(changed.values()), notes, now.now_ns, rules.file.console)
        since_s = self._wall_s() if message else 0.0
        return replace(
            state,
            followed=followed,
            late=tuple(late),
            refusals_reported_s=reported_s,
            pending=message,
            pending_since_s=since_s,
        )

    def _store(self, state: ChannelState) -> None:
        """Keep the state in memory while the disk takes none, so that people are notified all the same."""
        try:
            channel_state.store(self._home, self._channel, state)
            self._unstored = None
        except OSError as error:
            self._unstored = state
            self._log(f"the state of channel {self._channel} cannot be stored: {error}")
