"""One rehearsed fault of a small real ground segment: how long until it is detected, and until a command gets through.

A station, its log and two uplinks run in a directory of their own, over real sockets, each uplink on a link that can
fail. What detects the fault is the platform's own failure detector, and what recovers is its failover.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import httpx

from sda_platform.clock import MissionClock
from sda_platform.formats.game_days import GameDay
from sda_platform.formats.ground_events import ACKNOWLEDGED
from sda_platform.ground.failover import BACKUP, DECLARED, PRIMARY
from sda_platform.ground.failure_detection import CROSS_REGION, PathClass
from sda_platform.ground.faulty_link import FaultyLink
from sda_platform.ground.heartbeat_sender import beating
from sda_platform.ground.log import CommandLog
from sda_platform.ground.station import DurableStation
from sda_platform.ground.station_server import serve
from sda_platform.ground.uplink import STEP_S, TIMEOUT_S, Uplink, UplinkSettings
from sda_platform.lake.errors import Unavailable
from sda_platform.lake.lake import Lake, without_session

LINK_CUT, LINK_SLOW, UPLINK_STOPPED = "link cut", "link slow", "uplink stopped"
FAULTS: Final = (LINK_CUT, LINK_SLOW, UPLINK_STOPPED)
"""Faults of the primary uplink, in the order in which nights take them."""
DETECT_WITHIN_S: Final = 20.0
RECOVER_WITHIN_S: Final = 30.0
_READY_WITHIN_S: Final = 60.0
_DELAY_S: Final = 60.0
_LOOK_S: Final = 0.02
_STATION: Final = "rehearsal"


class _RunningUplink:
    """An uplink in threads of its own, on a link that can fail."""

    def __init__(self, name: str, directory: Path, station_port: int, path: PathClass) -> None:
        self._name, self._directory, self._path = name, directory, path
        self.link = FaultyLink(station_port)
        self.stopped = threading.Event()
        self._uplink: Uplink | None = None

    def run(self) -> None:
        """Work until it is stopped; a stop ends its heartbeats too, as that of a process does."""
        client = httpx.Client(base_url=f"http://127.0.0.1:{self.link.port}", timeout=TIMEOUT_S)
        log = _log(self._directory)
        with client:
            self._uplink = Uplink(UplinkSettings(self._name, self._path), log, client, time.time_ns)
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


def rehearse(fault: str, directory: Path, path: PathClass = CROSS_REGION) -> GameDay:
    """Let ``fault`` strike a ground segment below the empty ``directory``, and return what was measured.

    ``path``: how heartbeats behave. Raises Unavailable where the segment does not begin to work.
    """
    with _ground_segment(directory, path) as (primary, backup):
        log = _log(directory)
        log.issue("TELEMETRY_REQUEST", expires_in_s=3600.0, command_id="before")
        events = _Events(log)
        is_ready = _wait(lambda: events.has_executed("before") and backup.hears_primary(), _READY_WITHIN_S)
        _wait(lambda: False, path.interval_s * path.warm_up)
        if is_ready is None:
            raise Unavailable("the rehearsed ground segment executed no command")
        started_ns, started_s = time.time_ns(), time.monotonic()
        _strike(fault, primary)
        log.issue("TELEMETRY_REQUEST", expires_in_s=3600.0, command_id="after")
        detected_s = _wait(lambda: events.has_declared_primary(started_ns), DETECT_WITHIN_S)
        within_s = RECOVER_WITHIN_S - (time.monotonic() - started_s)
        waited_s = _wait(lambda: backup.is_active and events.has_executed("after"), within_s)
        recovered_s = None if waited_s is None else time.monotonic() - started_s
    return GameDay(fault, started_ns, detected_s, recovered_s, DETECT_WITHIN_S, RECOVER_WITHIN_S)


@contextmanager
def _ground_segment(directory: Path, path: PathClass) -> Iterator[tuple[_RunningUplink, _RunningUplink]]:
    """The uplinks of a station that the primary commands: primary and backup."""
    station = DurableStation(directory / "station.sqlite", time.time_ns)
    server = serve(station, 0)
    # An answer over a link that is cut reaches no one: that is the rehearsal, and no error.
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    with ExitStack() as ending:
        ending.callback(server.server_close)
        ending.callback(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running = [_RunningUplink(name, directory, server.server_port, path) for name in (PRIMARY, BACKUP)]
        for each in running:
            thread = threading.Thread(target=each.run, name="rehearsed uplink", daemon=True)
            # The links are closed first: an uplink that waits for an answer goes on at once.
            ending.callback(thread.join, TIMEOUT_S + 1.0)
            ending.callback(each.link.close)
            ending.callback(each.stopped.set)
            thread.start()
            _wait(lambda: running[0].is_active, _READY_WITHIN_S)
        yield running[0], running[1]


def _strike(fault: str, primary: _RunningUplink) -> None:
    if fault == LINK_CUT:
        primary.link.cut()
    elif fault == LINK_SLOW:
        primary.link.slow(_DELAY_S)
    else:
        primary.stopped.set()


class _Events:
    """What the log of the station says."""

    def __init__(self, log: CommandLog) -> None:
        self._log, self._found = log, list[tuple[str, str, str, int]]()

    def has_executed(self, command_id: str) -> bool:
        self._read()
        return any(event == ACKNOWLEDGED and command == command_id for event, command, *_ in self._found)

    def has_declared_primary(self, since_ns: int) -> bool:
        self._read()
        return any(
            event == DECLARED and uplink == PRIMARY and time_ns >= since_ns for event, _, uplink, time_ns in self._found
        )

    def _read(self) -> None:
        for each in self._log.new_events():
            self._found.append((each["event"], each["command_id"] or "", each["uplink"], each["event_time_ns"]))


def _log(directory: Path) -> CommandLog:
    lake = Lake(str(directory / "lake"), MissionClock(), without_session)
    return CommandLog(lake, str(directory / "landing"), _STATION)


def _wait(holds: Callable[[], bool], seconds: float) -> float | None:
    """Seconds until it ``holds``; None: it does not within so many."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < seconds:
        with suppress(FileNotFoundError):  # a segment that is just sealed
            if holds():
                return time.monotonic() - began_s
        time.sleep(_LOOK_S)
    return None
