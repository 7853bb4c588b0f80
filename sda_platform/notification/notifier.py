"""Sending to all channels, each in a thread of its own: a service that hangs delays no other one."""

from collections.abc import Callable
from threading import Event, Thread
from typing import Final

from sda_platform.lake.errors import Misconfigured
from sda_platform.lake.lake import Lake
from sda_platform.notification.rules import NotifyRules
from sda_platform.notification.sender import ChannelSender
from sda_platform.notification.situation import AlertReader
from sda_platform.settings import Settings

_INTERVAL_S: Final = 5.0


class Notifier:
    """Sends what the rules of ``settings`` select from the alerts of ``lake``; ``log`` gets a line of each problem."""

    def __init__(self, settings: Settings, lake: Lake, log: Callable[[str], object]) -> None:
        self._settings, self._log = settings, log
        self._reader = AlertReader(lake, settings.landing_uri)
        self._threads: dict[str, Thread] = {}
        self._rules: NotifyRules | None = None
        self._problem = ""

    def keep_sending(self, stop: Event, interval_s: float = _INTERVAL_S) -> None:
        """Load the rules anew in each round and keep a thread for each channel, until ``stop``."""
        while not stop.is_set():
            self._load()
            for channel in self._rules.file.channels if self._rules else ():
                if channel not in self._threads or not self._threads[channel].is_alive():
                    arguments = (channel, stop, interval_s)
                    self._threads[channel] = Thread(target=self._keep_channel, args=arguments, daemon=True)
                    self._threads[channel].start()
            stop.wait(interval_s)

    def _load(self) -> None:
        """Take up the rules as they are now; rules that cannot be used leave the earlier ones in force."""
        try:
            self._rules, problem = NotifyRules.load(self._settings), ""
        except Misconfigured as error:
            problem = str(error)
        if problem and problem != self._problem:
            self._log(f"the rules of notification cannot be used: {problem}")
        self._problem = problem

    def _keep_channel(self, channel: str, stop: Event, interval_s: float) -> None:
        sender = ChannelSender(self._settings, self._reader, channel, self._log)
        while not stop.is_set() and (rules := self._rules) and channel in rules.file.channels:
            try:
                sender.round(rules)
            except Exception as error:  # whatever one round meets, the next message must be sent
                self._log(f"channel {channel}: {type(error).__name__}: {error}")
            stop.wait(interval_s)
