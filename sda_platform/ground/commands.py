"""Ground commands: a bounded queue by priority, with room kept for emergencies.

A pure state machine. Each change is a `Transition`; a queue is rebuilt from its transitions, so a caller that stores
them before it acts on them loses nothing in a crash. Delivery to a station is at least once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
ACCEPTED, DISPATCHED, ACKNOWLEDGED, EXPIRED = "accepted", "dispatched", "acknowledged", "expired"


class BadDirection(ValueError):
    """A command lacks its direction, has one that it must not have, or one that no antenna can point at."""


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


@dataclass(frozen=True)
class Transition:
    """A change of one command's state; ``number`` orders the transitions of a queue."""

    number: int
    state: str
    command: Command


class CommandQueue:
    """At most ``capacity`` commands that are not acknowledged, of which ``reserved`` places are for emergencies."""

    def __init__(self, capacity: int, reserved: int, transitions: Iterable[Transition] = ()) -> None:
        self._capacity, self._reserved = capacity, reserved
        self._state: dict[str, tuple[str, Command, int]] = {}
        self._number = 0
        for transition in transitions:
            self._state[transition.command.command_id] = self._entry(transition)
            self._number = transition.number

    def push(self, command: Command) -> Transition | None:
        """Accept a command; None for an id that is known, which changes nothing.

        Raises QueueFull: at capacity, and for what is no emergency also when only reserved places are left.
        """
        if command.command_id in self._state:
            return None
        room = self._capacity - len(self.pending)
        if room <= (0 if command.priority >= EMERGENCY_FROM else self._reserved):
            raise QueueFull(f"no room for {command.kind} {command.command_id}: {len(self.pending)} commands wait")
        return self._change(ACCEPTED, command)

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
        expired = [self._change(EXPIRED, each) for each in self.pending if each.expires_ns <= now_ns]
        return expired, sorted(
            self.pending, key=lambda each: (-each.priority, each.issued_ns, self._state[each.command_id][2])
        )

    def dispatch(self, command_id: str) -> list[Transition]:
        """A pending command is about to be sent; nothing changes where it was sent before."""
        state, command, _ = self._state[command_id]
        return [self._change(DISPATCHED, command)] if state == ACCEPTED else []

    def acknowledge(self, command_id: str) -> Transition | None:
        """The station has executed or refused it; None where that is known."""
        state, command, _ = self._state[command_id]
        return self._change(ACKNOWLEDGED, command) if state in (ACCEPTED, DISPATCHED) else None

    @property
    def pending(self) -> list[Command]:
        """Commands that are accepted or dispatched, in the order of their acceptance."""
        return [command for state, command, _ in self._state.values() if state in (ACCEPTED, DISPATCHED)]

    def _change(self, state: str, command: Command) -> Transition:
        self._number += 1
        transition = Transition(self._number, state, command)
        self._state[command.command_id] = self._entry(transition)
        return transition

    def _entry(self, transition: Transition) -> tuple[str, Command, int]:
        known = self._state.get(transition.command.command_id)
        return transition.state, transition.command, known[2] if known else transition.number
