"""Commands that were issued and that the queue has not accepted: they wait for a second person, or for room."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sda_platform.formats.ground_events import CONFIRMED, ISSUED
from sda_platform.ground.command_states import command_of
from sda_platform.ground.commanders import Commanders, confirmation_refusal, issue_refusal, needs_confirmation
from sda_platform.ground.commands import BadCommand, Command, CommandsWithoutRoom, check_command


def valid_requests(events: Iterable[Mapping[str, Any]], commanders: Commanders) -> list[Mapping[str, Any]]:
    """Find by which of the ``events`` of one command it may be sent: issued ones, confirmed where it must be."""
    found = list(events)
    confirmations = [each for each in found if each["event"] == CONFIRMED]
    issued = sorted((each for each in found if each["event"] == ISSUED), key=_age)
    return [
        each for each in issued if _refusal(each, commanders) is None and _is_confirmed(each, confirmations, commanders)
    ]


class IssuedCommands:
    """What an active uplink has not accepted yet, of those that ``commanders`` may request."""

    def __init__(self, commanders: Commanders) -> None:
        self._commanders = commanders
        self._waiting = CommandsWithoutRoom()
        # A repeated request has the id of the first one, and either may be the one that is confirmed.
        self._unconfirmed: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        self._confirmations: dict[str, list[Mapping[str, Any]]] = defaultdict(list)

    def add(self, requests: Iterable[Mapping[str, Any]]) -> list[tuple[Command, str]]:
        """Take events that issue or confirm commands, in any order; return the refused commands with the reason.

        A request or confirmation that does not count changes nothing for a valid one of the same command.
        """
        found = sorted(requests, key=_age)
        refused = []
        for each in found:
            if each["event"] != ISSUED:
                self._confirmations[each["command_id"]].append(each)
            elif (reason := _refusal(each, self._commanders)) is not None:
                refused.append((command_of(each), reason))
            elif each["command_id"] not in self._waiting:
                self._unconfirmed[each["command_id"]].append(each)
        for command_id in dict.fromkeys(each["command_id"] for each in found):
            seen = self._confirmations.get(command_id, ())
            issued = (
                each for each in self._unconfirmed.get(command_id, ()) if _is_confirmed(each, seen, self._commanders)
            )
            if (valid := next(issued, None)) is not None:
                self._waiting.add(command_of(valid))
                del self._unconfirmed[command_id]
        return [(command, reason) for command, reason in refused if not self._has(command.command_id)]

    def take_expired(self, now_ns: int) -> list[Command]:
        """Remove the commands whose time is over by ``now_ns``, also unconfirmed ones, and return them."""
        late = []
        for command_id, issued in list(self._unconfirmed.items()):
            self._unconfirmed[command_id] = [each for each in issued if each["expires_time_ns"] > now_ns]
            if not self._unconfirmed[command_id]:
                late.append(command_of(issued[0]))
                del self._unconfirmed[command_id]
        return [*self._waiting.take_expired(now_ns), *late]

    def take_while(self, has_room: Callable[[Command], bool]) -> Iterator[Command]:
        """Remove the most urgent command that may be sent, for as long as there is room for it, and yield it."""
        return self._waiting.take_while(has_room)

    def _has(self, command_id: str) -> bool:
        return command_id in self._waiting or command_id in self._unconfirmed


def _age(event: Mapping[str, Any]) -> tuple[int, str]:
    return event["issued_time_ns"], event["signature"] or ""


def _refusal(issued: Mapping[str, Any], commanders: Commanders) -> str | None:
    try:
        check_command(command_of(issued))
    except BadCommand as reason:
        return str(reason)
    return issue_refusal(issued, commanders)


def _is_confirmed(issued: Mapping[str, Any], seen: Iterable[Mapping[str, Any]], commanders: Commanders) -> bool:
    """Return whether one of the confirmations ``seen`` is of this very event, or it needs none."""
    if not needs_confirmation(issued["kind"], commanders):
        return True
    return any(confirmation_refusal(each, issued, commanders) is None for each in seen)
