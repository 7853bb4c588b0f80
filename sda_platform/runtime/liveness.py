"""Liveness probes: a trivial request with a deadline shows whether a running process still works.

A stopped, deadlocked or overloaded process keeps its process id and its open port. The supervisor kills a process that
misses several probes in succession, and restarts it like one that has ended. Probes are counted, not seconds: after a
suspension of the machine, at most one probe is missed.
"""

import base64
import http.client
import json
import math
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from sda_platform.published import CATALOGUE, COLLECTOR, trust_of, url_of
from sda_platform.runtime import worker_socket
from sda_platform.runtime.processes import Service
from sda_platform.runtime.ui_roles import PROBES
from sda_platform.spark import statements
from sda_platform.spark.channel import open_channel

MISSES = 3
# Dagster's daemon writes its heartbeat that often.
HEARTBEAT_S = 30.0
_HEALTH_CHECK = "/grpc.health.v1.Health/Check"
_DAGSTER_SERVICE = b"\n\nDagsterApi"  # a HealthCheckRequest that names this service
_SERVING = b"\x08\x01"
_HEARTBEATS = "{ instance { daemonHealth { allDaemonStatuses { lastHeartbeatTime } } } }"

# A probe with a deadline in seconds; None: no result is possible now. Never raises.
Question = Callable[[float], bool | None]


@dataclass
class Liveness:
    """The probes that a service has missed since it was started.

    A probe runs every ``period_s`` seconds, with that deadline. ``misses`` in succession mean that the service hangs;
    its first answer may take ``start_s`` seconds. Misses count only after a first answer; ``is_proven``: it was given.
    """

    service: Service
    question: Question
    period_s: float
    start_s: float
    misses: int = MISSES
    is_proven: bool = False
    _has_answered: bool = field(default=False, init=False)
    _missed: int = field(default=0, init=False)
    _pid: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Begin with the process that runs now."""
        self._pid, self._has_answered = self.service.pid, self.is_proven

    def keep_asking(self, stop: threading.Event) -> None:
        """Probe until ``stop``."""
        asked_s = time.monotonic()
        while not stop.wait(max(0.0, asked_s + self.period_s - time.monotonic())):
            asked_s = time.monotonic()
            self.ask()

    def ask(self) -> None:
        """Probe once, if the service runs."""
        pid = self.service.pid
        if pid != self._pid:
            self._pid, self._missed, self._has_answered = pid, 0, False
        if not self.service.is_alive:
            return
        answered = self.question(self.period_s)
        if answered is None or pid != self.service.pid:
            return
        self._missed = 0 if answered else self._missed + 1
        self._has_answered = self._has_answered or answered
        self.is_proven = self.is_proven or answered

    def begin_again(self) -> None:
        """Count from now on."""
        self._missed = 0

    @property
    def is_hung(self) -> bool:
        """Whether the running process has missed as many questions as mean that it hangs."""
        is_asked = self.is_proven and self._pid == self.service.pid and self.service.is_alive
        return is_asked and self._missed >= self._limit

    @property
    def silent_s(self) -> float:
        """Estimate for how many seconds the process has not answered."""
        return self._missed * self.period_s

    @property
    def _limit(self) -> int:
        return self.misses if self._has_answered else max(self.misses, math.ceil(self.start_s / self.period_s))


def engine_answers(remote: str, token: str = "") -> Question:
    """Return whether the engine at ``remote`` executes a statement; ``token``: that of an engine of this machine."""

    def ask(deadline_s: float) -> bool:
        try:
            with open_channel(remote) as channel:
                statements.ask(channel, deadline_s, token)
        except (grpc.RpcError, ValueError):
            return False
        return True

    return ask


def code_server_answers(address: str) -> Question:
    """Return whether Dagster's code server at ``address`` (host:port, or unix:path) reports that it serves."""

    def ask(deadline_s: float) -> bool:
        try:
            with grpc.insecure_channel(address) as channel:
                answer = channel.unary_unary(_HEALTH_CHECK)(_DAGSTER_SERVICE, timeout=deadline_s)
        except grpc.RpcError:
            return False
        return bool(answer == _SERVING)

    return ask


def worker_host_answers(dagster_home: Path) -> Question:
    """Return whether the worker host of ``dagster_home`` starts a worker, which has no work, and sees it end."""

    def ask(deadline_s: float) -> bool:
        try:
            return bool(worker_socket.ask(dagster_home, {"what": "probe"}, deadline_s))
        except worker_socket.WorkerHostError:
            return False

    return ask


def webserver_answers(url: str) -> Question:
    """Return whether Dagster's webserver at ``url`` answers the query for its server info."""

    def ask(deadline_s: float) -> bool:
        try:
            with urllib.request.urlopen(f"{url}/server_info", timeout=deadline_s) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except (OSError, http.client.HTTPException):
            return False

    return ask


def collector_answers(home: Path) -> Question:
    """Return whether the collector of ``home`` answers at its control plane; the state of its sources is not
    evaluated.
    """
    return _published_answers(home, COLLECTOR)


def catalogue_answers(home: Path) -> Question:
    """Return whether the lookup endpoint of ``home`` answers; the state of its index is not evaluated."""
    return _published_answers(home, CATALOGUE)


def _published_answers(home: Path, service: str) -> Question:
    def ask(deadline_s: float) -> bool:
        url = url_of(home, service)
        try:
            trust = trust_of(home, service)
        except OSError:
            return False
        return url is not None and bool(page_answers(f"{url}/health", trust)(deadline_s))

    return ask


def page_answers(url: str, trust: ssl.SSLContext | None = None) -> Question:
    """Return whether the server of this machine at ``url`` answers, with any content; with TLS by ``trust``."""

    def ask(deadline_s: float) -> bool:
        try:
            urllib.request.urlopen(url, timeout=deadline_s, context=trust).close()  # noqa: S310
        except urllib.error.HTTPError:
            return True
        except (OSError, ValueError, http.client.HTTPException):
            return False
        return True

    return ask


def daemon_beats(url: str, token: Path) -> Question:
    """Return whether Dagster's daemon has written a heartbeat since the last probe, according to the webserver at
    ``url``.

    Heartbeats are compared with each other, not with a clock. ``token``: the file with the probes' token at the UI.
    """
    known: list[float] = []

    def ask(deadline_s: float) -> bool | None:
        found = _last_heartbeat(url, token, deadline_s)
        if found is None:
            return None
        is_new = known != [found]
        known[:] = [found]
        return is_new

    return ask


def _last_heartbeat(url: str, token: Path, deadline_s: float) -> float | None:
    """When any part of the daemon wrote its last heartbeat, Unix seconds; 0 before the first; None: not known."""
    query = json.dumps({"query": _HEARTBEATS}).encode()
    try:
        login = base64.b64encode(f"{PROBES}:{token.read_text() if token.exists() else ''}".encode()).decode()
        headers = {"Content-Type": "application/json", "Authorization": f"Basic {login}"}
        request = urllib.request.Request(f"{url}/graphql", query, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=deadline_s) as answer:  # noqa: S310
            statuses = json.load(answer)["data"]["instance"]["daemonHealth"]["allDaemonStatuses"]
            return max((float(status["lastHeartbeatTime"] or 0) for status in statuses), default=0.0)
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None
