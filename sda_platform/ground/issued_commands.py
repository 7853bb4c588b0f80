"""Commands that were issued and that the queue has not accepted: they wait for a second person, or for room."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sda_platform.formats.ground_events import ISSUED
from sda_platform.ground.command_states import command_of
from sda_platform.ground.commanders import Commanders, confirmation_refusal, issue_refusal, needs_confirmation
from sda_platform.ground.commands import BadDirection, Command, CommandsWithoutRoom, check_direction


class IssuedCommands:
    """What an active uplink has not accepted yet, of those that ``commanders`` may request."""

    def __init__(self, commanders: Commanders) -> None:
        self._commanders = commanders
        self._waiting = CommandsWithoutRoom()
        self._unconfirmed: dict[str, Mapping[str, Any]] = {}
        self._confirmations: dict[str, list[Mapping[str, Any]]] = defaultdict(list)

    def add(self, requests: Iterable[Mapping[str, Any]]) -> list[tuple[Command, str]]:
        """Take events that issue or confirm commands, in any order; return the refused commands with the reason.

        A confirmation that does not count changes nothing: another one may follow.
        """
        found = list(requests)
        refused = []
        for each in found:
            if each["event"] != ISSUED:
                self._confirmations[each["command_id"]].append(each)
            elif (reason := self._refusal(each)) is not None:
                refused.append((command_of(each), reason))
            elif needs_confirmation(each["kind"], self._commanders):
                self._unconfirmed[each["command_id"]] = each
            else:
                self._waiting.add(command_of(each))
        for command_id in {each["command_id"] for each in found} & self._unconfirmed.keys():
            issued = self._unconfirmed[command_id]
            seen = self._confirmations[command_id]
            if any(confirmation_refusal(each, issued, self._commanders) is None for each in seen):
                self._waiting.add(command_of(self._unconfirmed.pop(command_id)))
        return refused

    def take_expired(self, now_ns: int) -> list[Command]:
        """Remove the commands whose time is over by ``now_ns``, also unconfirmed ones, and return them."""
        late = [each for each in self._unconfirmed.values() if each["expires_time_ns"] <= now_ns]
        for each in late:
            del self._unconfirmed[each["command_id"]]
        return [*self._waiting.take_expired(now_ns), *map(command_of, late)]

    def take_while(self, has_room: Callable[[Command], bool]) -> Iterator[Command]:
        """Remove the most urgent command that may be sent, for as long as there is room for it, and yield it."""
        return self._waiting.take_while(has_room)

    def _refusal(self, issued: Mapping[str, Any]) -> str | None:
        try:
            check_direction(issued["kind"], issued["azimuth_deg"], issued["elevation_deg"])
        except BadDirection as reason:
            return str(reason)
        return issue_refusal(issued, self._commanders)
