"""A station, its log and its uplinks in one process, stepped by hand: real HTTP, a clock that the test moves."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest

from sda_platform.ground.command_states import states
from sda_platform.ground.commanders import Commanders
from sda_platform.ground.event_keys import EventKeys
from sda_platform.ground.failure_detection import INTRA_REGION
from sda_platform.ground.log import CommandLog
from sda_platform.ground.message_guard import MessageGuard
from sda_platform.ground.station import DurableStation, ExecutionFailed
from sda_platform.ground.station_server import serve
from sda_platform.ground.uplink import Uplink, UplinkSettings
from sda_platform.ground.uplink_lease import UplinkLease
from sda_platform.lake.lake import Lake
from sda_platform_tests.support.delta_tables import lake_at
from sda_platform_tests.support.segments import START_NS

SECOND_NS = 10**9
NO_KEYS = EventKeys()


@dataclass
class Ground:
    """A station and its log; uplinks share a clock that the test moves. Heartbeats reach the station as they are."""

    lake: Lake
    landing: Path | str
    station: DurableStation
    url: str
    now_s: float = 0.0
    station_ahead_s: float = 0.0
    execution_s: float = 0.0
    """How long the station takes for a command, by its clock."""
    failures: dict[str, str] = field(default_factory=dict)
    """Commands that it cannot execute, with the reason."""
    uplinks: dict[str, Uplink] = field(default_factory=dict)

    def now_ns(self) -> int:
        return START_NS + round(self.now_s * SECOND_NS)

    def uplink(
        self,
        name: str,
        *,
        lease: UplinkLease | None = None,
        auth: httpx.Auth | None = None,
        commanders: Commanders = MappingProxyType({}),
        event_keys: EventKeys = NO_KEYS,
        **settings: float | None,
    ) -> Uplink:
        """A new uplink process: it knows what the log says."""
        log = CommandLog(self.lake, str(self.landing), "atlantic")
        made = Uplink(
            UplinkSettings(name, INTRA_REGION, commands_per_s=1e6, resend_s=0.0, **settings),  # type: ignore[arg-type]
            log,
            httpx.Client(base_url=self.url, timeout=5.0, auth=auth),
            self.now_ns,
            lambda: self.now_s,
            lease=lease,
            commanders=commanders,
            event_keys=event_keys,
        )
        self.uplinks[name] = made
        return made

    def run(self, seconds: float, *names: str) -> None:
        """Step these uplinks (all, if none is named) each 50 ms."""
        for _ in range(round(seconds / 0.05)):
            self.now_s += 0.05
            for name in names or self.uplinks:
                self.uplinks[name].beat()
                self.uplinks[name].step()

    def execute(self, command: dict[str, Any]) -> None:
        self.station_ahead_s += self.execution_s
        if command["command_id"] in self.failures:
            raise ExecutionFailed(self.failures[command["command_id"]])

    def station_ns(self) -> int:
        return self.now_ns() + round(self.station_ahead_s * SECOND_NS)

    def log(self) -> CommandLog:
        return CommandLog(self.lake, str(self.landing), "atlantic")

    def executed(self) -> list[str]:
        return [row[0] for row in self.station._database.execute("SELECT command_id FROM executions ORDER BY number")]

    def rows(self) -> dict[str, dict[str, object]]:
        return {str(row["command_id"]): row for row in states([], self.log().new_events())}


@contextmanager
def ground_at(directory: Path, patch: pytest.MonkeyPatch, guard: MessageGuard | None = None) -> Iterator[Ground]:
    """A ground segment below ``directory``; the station's clocks are moved with those of the uplinks."""
    station = DurableStation(
        directory / "station.sqlite", lambda: made.station_ns(), lambda command: made.execute(command)
    )
    server = serve(station, 0, guard)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    made = Ground(lake_at(directory / "lake"), directory / "landing", station, url)
    patch.setattr("sda_platform.ground.station.time.monotonic", lambda: made.now_s)
    yield made
    server.shutdown()
    server.server_close()
