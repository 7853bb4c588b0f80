"""A small real ground segment for rehearsals: a station, its log and two uplinks in a directory, over real sockets."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from sda_platform.clock import MissionClock
from sda_platform.formats.ground_events import ACKNOWLEDGED
from sda_platform.ground.failover import BACKUP, DECLARED, PRIMARY
from sda_platform.ground.failure_detection import PathClass
from sda_platform.ground.faulty_link import FaultyLink
from sda_platform.ground.heartbeat_sender import beating
from sda_platform.ground.log import CommandLog
from sda_platform.ground.rehearsal import Stopwatch
from sda_platform.ground.station import DurableStation
from sda_platform.ground.station_link import COMMAND_TIMEOUT_S
from sda_platform.ground.station_server import serve
from sda_platform.ground.uplink import STEP_S, TIMEOUT_S, Uplink, UplinkSettings
from sda_platform.ground.uplink_lease import UplinkLease
from sda_platform.lake.errors import Unavailable
from sda_platform.lake.lake import Lake, without_session

STATION: Final = "rehearsal"
_READY_WITHIN_S: Final = 60.0
LeaseOf = Callable[[str], UplinkLease | None]


class RunningUplink:
    """An uplink in threads of its own, on a link that can fail."""

    def __init__(self, settings: UplinkSettings, directory: Path, station_port: int, lease: UplinkLease | None) -> None:
        self._settings, self._directory, self._lease = settings, directory, lease
        self.link = FaultyLink(station_port)
        self.stopped = threading.Event()
        self._uplink: Uplink | None = None

    def run(self) -> None:
        """Work until it is stopped; a stop ends its heartbeats too, as that of a process does."""
        client = httpx.Client(base_url=f"http://127.0.0.1:{self.link.port}", timeout=TIMEOUT_S)
        with client:
            self._uplink = Uplink(self._settings, log_below(self._directory), client, time.time_ns, lease=self._lease)
            with beating(self._uplink.beat, STEP_S):
                while not self.stopped.wait(STEP_S):
                    self._uplink.step()

    @property
    def is_active(self) -> bool:
        """Whether it commands the station."""
        return self._uplink is not None and self._uplink.is_active

    def hears_primary(self) -> bool:
        """Whether it has enough heartbeats of the primary to judge the next."""
        if self._uplink is None:
            return False
        path = self._uplink.failover.paths[PRIMARY]
        return path.detector.gap_s[0] > 0.0 and not path.is_declared and not path.is_suspected


class _Events:
    """What the log of the station says."""

    def __init__(self, log: CommandLog) -> None:
        self._log, self._found = log, list[tuple[str, str, str, int]]()

    def has_executed(self, command_id: str) -> bool:
        """Whether the station has answered that it did."""
        self._read()
        return any(event == ACKNOWLEDGED and command == command_id for event, command, *_ in self._found)

    def has_declared_primary(self, since_ns: int) -> bool:
        """Whether an uplink has declared the primary failed since then."""
        self._read()
        return any(
            event == DECLARED and uplink == PRIMARY and time_ns >= since_ns for event, _, uplink, time_ns in self._found
        )

    def _read(self) -> None:
        for each in self._log.new_events():
            self._found.append((each["event"], each["command_id"] or "", each["uplink"], each["event_time_ns"]))


@dataclass(frozen=True)
class Segment:
    """The uplinks of a station that the primary commands, and the station's log."""

    primary: RunningUplink
    backup: RunningUplink
    log: CommandLog
    events: _Events

    def issue(self, command_id: str) -> None:
        """Request a command that has no effect."""
        self.log.issue("TELEMETRY_REQUEST", expires_in_s=3600.0, command_id=command_id)


@contextmanager
def ground_segment(
    directory: Path, path: PathClass, station: DurableStation | None = None, lease_of: LeaseOf = lambda _: None
) -> Iterator[Segment]:
    """A segment that works, with heartbeats as on ``path``. Raises Unavailable where it does not begin to.

    ``lease_of``: the lease of an uplink, by its name.
    """
    server = serve(station or DurableStation(directory / "station.sqlite", time.time_ns), 0)
    # An answer over a link that is cut reaches no one: that is the rehearsal, and no error.
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    with ExitStack() as ending:
        ending.callback(server.server_close)
        ending.callback(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running = [
            RunningUplink(UplinkSettings(name, path), directory, server.server_port, lease_of(name))
            for name in (PRIMARY, BACKUP)
        ]
        for each in running:
            thread = threading.Thread(target=each.run, name="rehearsed uplink", daemon=True)
            # The links are closed first: an uplink that waits for an answer goes on at once.
            ending.callback(thread.join, COMMAND_TIMEOUT_S + 1.0)
            ending.callback(each.link.close)
            ending.callback(each.stopped.set)
            thread.start()
            Stopwatch().when(lambda: running[0].is_active, _READY_WITHIN_S)
        log = log_below(directory)
        segment = Segment(running[0], running[1], log, _Events(log))
        _await_work(segment, path)
        yield segment


def _await_work(segment: Segment, path: PathClass) -> None:
    segment.issue("before")
    watch = Stopwatch()
    if watch.when(lambda: segment.events.has_executed("before") and segment.backup.hears_primary(), _READY_WITHIN_S):
        Stopwatch().when(lambda: False, path.interval_s * path.warm_up)
        return
    raise Unavailable("the rehearsed ground segment executed no command")


def log_below(directory: Path) -> CommandLog:
    """The log of the station in a rehearsal's directory."""
    lake = Lake(str(directory / "lake"), MissionClock(), without_session)
    return CommandLog(lake, str(directory / "landing"), STATION)
