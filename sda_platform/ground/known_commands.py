"""What an uplink has read of its station's commands, whether it commands or not."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from sda_platform.formats.ground_events import CONFIRMED, ISSUED
from sda_platform.ground.command_states import FINAL, command_of, transitions
from sda_platform.ground.commanders import Commanders
from sda_platform.ground.commands import BadCommand, Command, CommandQueue, check_command
from sda_platform.ground.event_keys import EventKeys, is_signed
from sda_platform.ground.issued_commands import valid_requests


class KnownCommands:
    """The events of commands that are not done; of the others the ids alone, so that the past costs nothing."""

    def __init__(self, keys: EventKeys, clock_ns: Callable[[], int]) -> None:
        """``keys`` with which uplinks sign what became of commands."""
        self._keys, self._clock_ns = keys, clock_ns
        self._open: dict[str, list[Mapping[str, Any]]] = {}
        self._done: set[str] = set()

    def add(self, events: Iterable[Mapping[str, Any]]) -> list[str]:
        """Take events of commands from the log, in any order; return the ids of commands that are done by them.

        Anyone who can write to the landing zone can write that a command is done. Where there are keys, an end counts
        if an uplink signed it, or if the command has expired anyway.
        """
        found = list(events)
        for each in found:
            if each["event"] not in FINAL and each["command_id"] not in self._done:
                self._open.setdefault(each["command_id"], []).append(each)
        ends, now_ns, keys = [each for each in found if each["event"] in FINAL], self._clock_ns(), self._keys.now()
        done = [
            each["command_id"] for each in ends if self._is_over(each["command_id"], now_ns) or is_signed(each, keys)
        ]
        self._done.update(done)
        for command_id in done:
            self._open.pop(command_id, None)
        return done

    def requests(self, events: Iterable[Mapping[str, Any]] | None = None) -> list[Mapping[str, Any]]:
        """Return those of ``events`` that issue or confirm commands, by default of all known ones, without those of
        commands that are done.
        """
        return [
            each
            for each in (self._events() if events is None else events)
            if each["event"] in (ISSUED, CONFIRMED) and each["command_id"] not in self._done
        ]

    def queue(self, capacity: int, reserved: int, commanders: Commanders) -> CommandQueue:
        """Return a queue with what was accepted and is not done, as far as ``commanders`` requested it.

        Events of uplinks state what became of a request, and not what it is.
        """
        found = []
        for change in transitions(self._events()):
            command = self._requested(change.command, commanders)
            found += [] if command is None else [replace(change, command=command)]
        return CommandQueue(capacity, reserved, found, self._done)

    def _requested(self, accepted: Command, commanders: Commanders) -> Command | None:
        """Return the command as it was requested, by the very request that was accepted if there are several."""
        events = self._open[accepted.command_id]
        if not commanders and all(each["event"] != ISSUED for each in events):
            return accepted if _is_sendable(accepted) else None
        valid = [command_of(each) for each in valid_requests(events, commanders)]
        return accepted if accepted in valid else next(iter(valid), None)

    def _is_over(self, command_id: str, now_ns: int) -> bool:
        """Return whether the command has expired, by every request for it: nothing sends it any more."""
        expiries_ns = [each["expires_time_ns"] for each in self._open.get(command_id, ()) if each["event"] == ISSUED]
        return bool(expiries_ns) and max(expiries_ns) <= now_ns

    def _events(self) -> Iterator[Mapping[str, Any]]:
        return chain.from_iterable(self._open.values())


def _is_sendable(command: Command) -> bool:
    try:
        check_command(command)
    except BadCommand:
        return False
    return True
