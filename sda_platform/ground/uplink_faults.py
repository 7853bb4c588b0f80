"""Rehearsed faults of an uplink and of the station, which failure detector and failover of the platform must meet."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sda_platform.ground.failure_detection import CROSS_REGION, PathClass
from sda_platform.ground.rehearsal import Measured, Stopwatch
from sda_platform.ground.rehearsed_segment import RunningUplink, ground_segment
from sda_platform.ground.station import DurableStation

LINK_CUT, LINK_SLOW, UPLINK_STOPPED = "link cut", "link slow", "uplink stopped"
_DELAY_S: Final = 60.0


@dataclass(frozen=True)
class UplinkFault:
    """A fault of the primary, by name: the backup must execute a command."""

    name: str
    path: PathClass = CROSS_REGION
    detect_within_s: float = 20.0
    recover_within_s: float = 30.0

    def rehearse(self, directory: Path) -> Measured:
        """Strike the primary, and wait for its declaration and for a command."""
        with ground_segment(directory, self.path) as segment:
            watch = Stopwatch()
            self._strike(segment.primary)
            segment.issue("after")
            events, backup = segment.events, segment.backup
            detected_s = watch.when(lambda: events.has_declared_primary(watch.started_ns), self.detect_within_s)
            recovered_s = watch.when(lambda: backup.is_active and events.has_executed("after"), self.recover_within_s)
        return Measured(watch.started_ns, detected_s, recovered_s)

    def _strike(self, primary: RunningUplink) -> None:
        if self.name == LINK_CUT:
            primary.link.cut()
        elif self.name == LINK_SLOW:
            primary.link.slow(_DELAY_S)
        else:
            primary.stopped.set()


class _LateStation(DurableStation):
    """A station that can answer late, and take long for each command."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, time.time_ns, lambda _: time.sleep(self.execution_s))
        self.latency_s = self.execution_s = 0.0

    def receive(self, command: dict[str, Any]) -> dict[str, Any]:
        """Answer late."""
        time.sleep(self.latency_s)
        return super().receive(command)

    def heartbeat(self, uplink: str) -> None:
        """Hear it late."""
        time.sleep(self.latency_s)
        super().heartbeat(uplink)


@dataclass(frozen=True)
class SlowStation:
    """The station answers late and executes slowly: no failure, so no uplink may be declared one."""

    path: PathClass = CROSS_REGION
    name: str = "station slow"
    detect_within_s: float = 0.0
    recover_within_s: float = 30.0
    latency_s: float = 0.6
    execution_s: float = 1.5
    watched_s: float = 15.0
    commands: int = 3

    def rehearse(self, directory: Path) -> Measured:
        """Slow the station, wait for its commands, and watch for a declaration."""
        station = _LateStation(directory / "station.sqlite")
        with ground_segment(directory, self.path, station) as segment:
            watch = Stopwatch()
            station.latency_s, station.execution_s = self.latency_s, self.execution_s
            names = [f"after {number}" for number in range(self.commands)]
            for name in names:
                segment.issue(name)
            events = segment.events
            executed_s = watch.when(lambda: all(map(events.has_executed, names)), self.recover_within_s)
            until_s = max(self.watched_s, watch.elapsed_s + 1.0)
            declared_s = watch.when(lambda: events.has_declared_primary(watch.started_ns), until_s)
        return Measured(watch.started_ns, declared_s, executed_s)
