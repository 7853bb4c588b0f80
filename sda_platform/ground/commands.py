"""Ground commands: a bounded queue by priority, with room kept for emergencies.

A pure state machine. Each change is a `Transition`; a queue is rebuilt from its transitions, so a caller that stores
them before it acts on them loses nothing in a crash. Delivery to a station is at least once.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from math import isfinite
from typing import Final

PRIORITY: Final = {
    "SAFE_MODE": 255,
    "EMERGENCY_ABORT": 230,
    "REPOINT": 150,
    "TELEMETRY_REQUEST": 100,
    "HOUSEKEEPING": 10,
}
"""Priority by kind, higher first: a caller cannot give a command another one."""
EMERGENCY_FROM: Final = 200
POINTING: Final = frozenset({"REPOINT"})
"""Kinds that have a direction, and need one."""
MOST_ID_BYTES: Final = 255
APID: Final = 100
"""Of the packets of a station that is given no other."""
MOST_APID: Final = 2046
"""The next one is that of idle packets."""
ACCEPTED, DISPATCHED, ACKNOWLEDGED, EXPIRED = "accepted", "dispatched", "acknowledged", "expired"


class BadCommand(ValueError):
    """No station can execute the command; the text says why."""


class BadDirection(BadCommand):
    """A command lacks its direction, has one that it must not have, or one that no antenna can point at."""


class BadId(BadCommand):
    """A command's id is empty, too long for a packet, or no plain text."""


class QueueFull(Exception):
    """The queue has no room for a command of this priority."""


@dataclass(frozen=True)
class Command:
    """One command to a satellite through a station; times in nanoseconds, the id unique for ever."""

    command_id: str
    kind: str
    issued_ns: int
    expires_ns: int
    azimuth_deg: float | None = None
    """From north by east; of kinds that point."""
    elevation_deg: float | None = None

    @property
    def priority(self) -> int:
        """Return the priority of the command's kind. Raises KeyError for a kind that does not exist."""
        return PRIORITY[self.kind]


def check_direction(kind: str, azimuth_deg: float | None, elevation_deg: float | None) -> None:
    """Raise BadDirection unless a command of ``kind`` may have this direction (None: it has none)."""
    if kind not in POINTING:
        if azimuth_deg is not None or elevation_deg is not None:
            raise BadDirection(f"{kind} has no direction")
        return
    for name, value, most in (("azimuth", azimuth_deg, 360.0), ("elevation", elevation_deg, 90.0)):
        if value is None or not isfinite(value) or not 0.0 <= value <= most:
            raise BadDirection(f"{kind} needs an {name} from 0 to {most:g} degrees, not {value}")


def check_id(command_id: str) -> None:
    """Raise BadId unless a packet to a station has room for the id."""
    if not 0 < (size := len(command_id.encode(errors="replace"))) <= MOST_ID_BYTES:
        raise BadId(f"an id has 1 to {MOST_ID_BYTES} bytes, not {size}")


def check_command(command: Command) -> None:
    """Raise BadCommand for what cannot be sent."""
    check_direction(command.kind, command.azimuth_deg, command.elevation_deg)
    check_id(command.command_id)


@dataclass(frozen=True)
class Transition:
    """A change of one command's state; ``number`` orders the transitions of a queue."""

    number: int
    state: str
    command: Command


class CommandQueue:
    """At most ``capacity`` commands that are not acknowledged, of which ``reserved`` places are for emergencies.

    Of commands that are done only the ids are kept: no look costs more for those of the past.
    """

    def __init__(
        self, capacity: int, reserved: int, transitions: Iterable[Transition] = (), done: Iterable[str] = ()
    ) -> None:
        """``transitions`` of earlier queues, in their order; ``done``: ids of further commands that are done."""
        self._capacity, self._reserved = capacity, reserved
        self._pending: dict[str, tuple[str, Command, int]] = {}
        self._done = set(done)
        self._number = 0
        for transition in transitions:
            self._number = transition.number
            self._enter(transition)

    def push(self, command: Command) -> Transition | None:
        """Accept a command; None for an id that is known, which changes nothing.

        Raises QueueFull: at capacity, and for what is no emergency also when only reserved places are left.
        """
        if self.knows(command.command_id):
            return None
        if not self.has_room(command):
            raise QueueFull(f"no room for {command.kind} {command.command_id}: {len(self._pending)} commands wait")
        return self._change(ACCEPTED, command)

    def knows(self, command_id: str) -> bool:
        """Return whether a command was accepted, or is done."""
        return command_id in self._pending or command_id in self._done

    def has_room(self, command: Command) -> bool:
        """Return whether a command of this priority can be accepted now."""
        return self._capacity - len(self._pending) > (0 if command.priority >= EMERGENCY_FROM else self._reserved)

    def next(self, now_ns: int) -> tuple[list[Transition], Command | None]:
        """Return the commands expired by ``now_ns``, and the next to send: highest priority, oldest, first accepted.

        A dispatched command stays pending until it is acknowledged: after a crash it is sent again.
        """
        expired, waiting = self.pending_by_urgency(now_ns)
        if not waiting:
            return expired, None
        return expired + self.dispatch(waiting[0].command_id), waiting[0]

    def pending_by_urgency(self, now_ns: int) -> tuple[list[Transition], list[Command]]:
        """Return the commands expired by ``now_ns``, and all commands to send, in the order of `next`."""
        expired = [self.expire(each) for each in self.pending if each.expires_ns <= now_ns]
        return expired, sorted(
            self.pending, key=lambda each: (-each.priority, each.issued_ns, self._pending[each.command_id][2])
        )

    def dispatch(self, command_id: str) -> list[Transition]:
        """A pending command is about to be sent; nothing changes where it was sent before."""
        state, command, _ = self._pending[command_id]
        return [self._change(DISPATCHED, command)] if state == ACCEPTED else []

    def acknowledge(self, command_id: str) -> Transition | None:
        """The station has executed or refused it; None where that is known."""
        found = self._pending.get(command_id)
        return self._change(ACKNOWLEDGED, found[1]) if found else None

    def expire(self, command: Command) -> Transition:
        """Its time is over; it need not have been accepted."""
        return self._change(EXPIRED, command)

    @property
    def pending(self) -> list[Command]:
        """Commands that are accepted or dispatched, in the order of their acceptance."""
        return [command for _, command, _ in self._pending.values()]

    def _change(self, state: str, command: Command) -> Transition:
        self._number += 1
        transition = Transition(self._number, state, command)
        self._enter(transition)
        return transition

    def _enter(self, transition: Transition) -> None:
        command_id, known = transition.command.command_id, self._pending.get(transition.command.command_id)
        if transition.state not in (ACCEPTED, DISPATCHED):
            self._pending.pop(command_id, None)
            self._done.add(command_id)
        elif command_id not in self._done:
            place = known[2] if known else transition.number
            self._pending[command_id] = transition.state, transition.command, place


class CommandsWithoutRoom:
    """Issued commands that no queue has accepted yet: the most urgent is first, whatever their number."""

    def __init__(self) -> None:
        self._commands: dict[str, Command] = {}
        self._by_urgency: list[tuple[int, int, int, str]] = []
        self._by_expiry: list[tuple[int, str]] = []
        self._places = count()

    def __len__(self) -> int:
        return len(self._commands)

    def __contains__(self, command_id: object) -> bool:
        return command_id in self._commands

    def add(self, command: Command) -> None:
        """Let a command wait, unless it does."""
        if command.command_id not in self._commands:
            self._commands[command.command_id] = command
            urgency = -command.priority, command.issued_ns, next(self._places), command.command_id
            heapq.heappush(self._by_urgency, urgency)
            heapq.heappush(self._by_expiry, (command.expires_ns, command.command_id))

    def take_expired(self, now_ns: int) -> list[Command]:
        """Remove the commands whose time is over by ``now_ns``, and return them."""
        found = []
        while self._by_expiry and self._by_expiry[0][0] <= now_ns:
            command = self._commands.pop(heapq.heappop(self._by_expiry)[1], None)
            found += [command] if command else []
        return found

    def take_while(self, has_room: Callable[[Command], bool]) -> Iterator[Command]:
        """Remove the most urgent command for as long as there is room for it, and yield it."""
        while self._by_urgency:
            command = self._commands.get(self._by_urgency[0][-1])
            if command is not None and not has_room(command):
                return
            heapq.heappop(self._by_urgency)
            if command is not None:
                del self._commands[command.command_id]
                yield command
