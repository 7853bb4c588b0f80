"""The events that an uplink reports, numbered in their order."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Final

from sda_platform.formats.ground_events import ACKNOWLEDGED, EXPIRED, FAILED, HEARTBEATS, LOST, GroundEvent
from sda_platform.ground.commands import Command
from sda_platform.ground.event_keys import EventKeys
from sda_platform.ground.failover import LinkEvent

REPORTS: Final = ("accepted", "started", "finished")
"""What a station reports of a command, by its own clock."""
# What becomes of a command by the answer of the station; any other answer acknowledges it.
_ANSWERS: Final = {"failed": FAILED, "expired": EXPIRED, "lost": LOST}


class UplinkEvents:
    """Makes the events of the uplink ``name`` to ``station``."""

    def __init__(self, station: str, name: str, clock_ns: Callable[[], int], keys: EventKeys) -> None:
        """``keys`` sign the events of commands."""
        self._keys = keys
        self._station, self._name, self._clock_ns = station, name, clock_ns
        self._numbers = count(1)

    def of_command(self, command: Command, event: str, token: int, detail: str = "") -> GroundEvent:
        """A change of a command, which the uplink made under ``token``."""
        return self._keys.signed(self._of_command(command, event, token, detail))

    def of_answer(self, command: Command, answer: Mapping[str, Any], token: int) -> GroundEvent:
        """What the station reports of a command, with the times of its own clock."""
        outcome, times_ns = str(answer["outcome"]), answer.get("times_ns", {})
        event = self._of_command(command, _ANSWERS.get(outcome, ACKNOWLEDGED), token, answer.get("reason") or outcome)
        stated = {f"station_{name}_time_ns": int(times_ns.get(name, 0)) for name in REPORTS}
        return self._keys.signed(replace(event, **stated))  # type: ignore[arg-type]

    def _of_command(self, command: Command, event: str, token: int, detail: str) -> GroundEvent:
        return GroundEvent(
            self._station,
            event,
            self._clock_ns(),
            self._name,
            token,
            next(self._numbers),
            command.command_id,
            command.kind,
            command.issued_ns,
            command.expires_ns,
            detail,
            command.azimuth_deg,
            command.elevation_deg,
        )

    def of_link(self, link: LinkEvent, token: int, more: str = "") -> GroundEvent:
        """A change of an uplink, as this one saw it; ``token``: where the change has none."""
        detail = f"seen by {self._name}; phi {min(link.phi, 999.0):.1f}{more}"
        return self._of_uplink(link.event, link.uplink or self._name, link.token or token, detail)

    def of_heartbeats(self, record: str, token: int) -> GroundEvent:
        """Make the record of heartbeats."""
        return self._of_uplink(HEARTBEATS, self._name, token, record)

    def _of_uplink(self, event: str, uplink: str, token: int, detail: str) -> GroundEvent:
        return GroundEvent(self._station, event, self._clock_ns(), uplink, token, next(self._numbers), detail=detail)
