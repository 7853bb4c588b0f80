"""What an uplink has read of its station's commands, whether it commands or not."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from sda_platform.formats.ground_events import CONFIRMED, ISSUED
from sda_platform.ground.command_states import FINAL, command_of, transitions
from sda_platform.ground.commanders import Commanders
from sda_platform.ground.commands import Command, CommandQueue
from sda_platform.ground.issued_commands import valid_requests


class KnownCommands:
    """The events of commands that are not done; of the others the ids alone, so that the past costs nothing."""

    def __init__(self) -> None:
        self._open: dict[str, list[Mapping[str, Any]]] = {}
        self._done: set[str] = set()

    def add(self, events: Iterable[Mapping[str, Any]]) -> list[str]:
        """Take events of commands from the log, in any order; return the ids of commands that are done by them."""
        found = list(events)
        done = [each["command_id"] for each in found if each["event"] in FINAL]
        self._done.update(done)
        for command_id in done:
            self._open.pop(command_id, None)
        for each in found:
            if each["command_id"] not in self._done:
                self._open.setdefault(each["command_id"], []).append(each)
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

        Events of uplinks are not signed: they state what became of a request, and not what it is.
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
            return accepted
        valid = [command_of(each) for each in valid_requests(events, commanders)]
        return accepted if accepted in valid else next(iter(valid), None)

    def _events(self) -> Iterator[Mapping[str, Any]]:
        return chain.from_iterable(self._open.values())
