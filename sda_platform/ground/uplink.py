"""An uplink to a station: takes commands from the log, sends them while it is active, and takes over by the rule.

Each uplink decides for itself, by heartbeats that the station records. It requests a token from the station, or brings
that of its lease. A pause, a crash or a cut network of the active one costs commands time, but executes none twice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from sda_platform.formats.ground_events import (
    COMMAND_EVENTS,
    REJECTED,
    GroundEvent,
)
from sda_platform.formats.membership_events import ALIVE
from sda_platform.ground.commanders import Commanders
from sda_platform.ground.commands import (
    APID,
    Command,
    CommandQueue,
    Transition,
)
from sda_platform.ground.event_keys import EventKeys
from sda_platform.ground.failover import Failover, LinkEvent, Path
from sda_platform.ground.failure_detection import PathClass
from sda_platform.ground.heartbeat_sender import HeartbeatAnswer, HeartbeatSender
from sda_platform.ground.heartbeats import HeartbeatRecorders
from sda_platform.ground.issued_commands import IssuedCommands
from sda_platform.ground.known_commands import KnownCommands
from sda_platform.ground.log import CommandLog
from sda_platform.ground.poll_pace import PollPace
from sda_platform.ground.station_link import StationLink
from sda_platform.ground.uplink_events import UplinkEvents
from sda_platform.ground.uplink_lease import UplinkLease
from sda_platform.resilience import BreakerState, RetryBudget

TIMEOUT_S = 2.0
STEP_S = 0.05
# How long an uplink whose lease has run out sends no heartbeat.
_SILENT_S = 30.0
# A step that takes longer hangs: longer than a call to the station and one to the leases may take.
_HUNG_S = 10.0


@dataclass
class UplinkSettings:
    """How an uplink works; ``commands_per_s`` limits what is sent, also after a failover."""

    name: str
    path_class: PathClass
    capacity: int = 256
    reserved: int = 32
    commands_per_s: float = 20.0
    resend_s: float = 1.0
    failback_after_s: float | None = 120.0
    apid: int = APID
    """Of the station's packets."""


@dataclass
class Uplink:
    """One uplink. `step` does what is due, and `beat` in a thread of its own: call each all 50 ms or more often."""

    settings: UplinkSettings
    log: CommandLog
    station: httpx.Client
    clock_ns: Callable[[], int]
    monotonic_s: Callable[[], float] = time.monotonic
    lease: UplinkLease | None = None
    """Held while it is active; None: the station grants the tokens."""
    reported: Callable[[str], int] = lambda _: ALIVE
    """Status of an uplink's agent by the fleet's membership; without it heartbeats and calls are the only evidence."""
    commanders: Commanders = field(default_factory=dict)
    """Who may request commands; empty: any."""
    event_keys: EventKeys = field(default_factory=EventKeys)
    """With which both uplinks sign what became of commands."""
    token: int = 0
    queue: CommandQueue | None = None
    failover: Failover = field(init=False)
    _retries: RetryBudget = field(default_factory=RetryBudget)
    _known: KnownCommands = field(init=False)
    _issued: IssuedCommands = field(init=False)
    _pace: PollPace = field(init=False)
    _sent_s: dict[str, float] = field(default_factory=dict)
    _under_way: set[str] = field(default_factory=set)
    _next_send_s: float = 0.0
    _took_over_s: float = 0.0
    _stepped_s: float = math.inf
    _highest: int = 0
    _former: str = ""
    _recorders: HeartbeatRecorders = field(init=False)
    _heartbeats: HeartbeatSender = field(init=False)
    _reports: UplinkEvents = field(init=False)
    _link: StationLink = field(init=False)

    def __post_init__(self) -> None:
        settings = self.settings
        self._issued = IssuedCommands(self.commanders)
        self._pace = PollPace(STEP_S, self.log.longest_pause_s)
        self.failover = Failover(settings.path_class, lambda: 0, failback_after_s=settings.failback_after_s)
        others = [name for name in self.failover.paths if name != settings.name]
        self._recorders = HeartbeatRecorders(settings.path_class.name, others)
        self._known = KnownCommands(self.event_keys, lambda: self.clock_ns())
        self._reports = UplinkEvents(self.log.station, settings.name, lambda: self.clock_ns(), self.event_keys)
        self._link = StationLink(self.station, settings.name, settings.apid)
        self._heartbeats = HeartbeatSender(
            settings.path_class.interval_s, self._link.heartbeat, lambda: self.monotonic_s()
        )

    @property
    def is_active(self) -> bool:
        """Whether it sends commands."""
        return self.queue is not None

    @property
    def _path(self) -> Path:
        return self.failover.paths[self.settings.name]

    def beat(self) -> None:
        """Send a heartbeat when it is time: none while its calls fail or hang, so that the other uplink takes over."""
        now_s = self.monotonic_s()
        if self._path.breaker.state(now_s) is not BreakerState.OPEN and now_s - self._stepped_s <= _HUNG_S:
            self._heartbeats.beat()

    def step(self) -> None:
        """Watch the other uplink, take over if the rule requires it, take and send commands."""
        for answer in self._heartbeats.take_answers():
            self._hear(answer)
        self._watch()
        self._keep_lease()
        self._take()
        self._send()
        records = self._recorders.complete(self.monotonic_s())
        self.log.append([self._reports.of_heartbeats(text, self.token) for text in records])
        self._stepped_s = self.monotonic_s()

    def _hear(self, answer: HeartbeatAnswer) -> None:
        state = answer.state
        for name, silence_s in state["silence_s"].items():
            times_s = self._recorders.times_s(name, state["beats"][name], answer.received_s - silence_s)
            for at_s in times_s if name in self.failover.paths else ():
                self.failover.paths[name].note_heartbeat(at_s)
                self._recorders.beat(name, at_s)
        if answer.sent_s < self._took_over_s:
            return  # The station may have answered before the promotion.
        self._highest = state["token"]
        self.failover.active, self._former = state["active"] or None, state["active"]
        if self.is_active and self._highest > self.token:
            self._stop(answer.received_s)

    def _keep_lease(self) -> None:
        """Stop where the lease has run out; give it up where the station cannot be commanded through this uplink."""
        if self.lease is None or not self.is_active:
            return
        now_s = self.monotonic_s()
        is_of_no_use = self._path.is_declared or self._path.breaker.state(now_s) is BreakerState.OPEN
        has_lease = self.lease.keep()
        if not has_lease:
            # It may reach no etcd, while its heartbeats would hold up an uplink that does.
            self._heartbeats.pause(_SILENT_S)
        if is_of_no_use or not has_lease:
            self._stop(now_s)

    def _stop(self, now_s: float) -> None:
        """Command no more under the present token."""
        self.queue, self._issued = None, IssuedCommands(self.commanders)
        self._under_way.clear()
        if self.lease is not None:
            self.lease.release()
        self._record([LinkEvent(now_s, self.settings.name, "deposed", token=self.token)])

    def _watch(self) -> None:
        now_s = self.monotonic_s()
        for name, path in self.failover.paths.items():
            path.delay_s = self._heartbeats.delay_s(now_s)
            # Its own path is judged by its own calls.
            path.reported = ALIVE if name == self.settings.name else self.reported(name)
        found = self.failover.update(now_s)
        self.failover.events.clear()
        mine = [each for each in found if each.event in ("promoted", "failed_back")]
        self._record([each for each in found if each not in mine])
        for event in mine:
            if event.uplink == self.settings.name:
                self._take_over(event)
        if self.failover.active == self.settings.name and self.queue is None and not self._path.is_declared:
            # It was active before it was started again.
            self._take_over(LinkEvent(self.monotonic_s(), self.settings.name, "promoted"))

    def _take_over(self, event: LinkEvent) -> None:
        former = self.failover.paths.get(self._former)
        token = self._new_token()
        if not token:
            return
        self.token = self._highest = token
        self._took_over_s = self.monotonic_s()
        self._record([LinkEvent(event.time_s, event.uplink, event.event, event.phi, token)], self._silence(former))
        # Who acted before has sealed what it sent; what it did not is in the log as issued.
        self._new_events()
        self.queue = self._known.queue(self.settings.capacity, self.settings.reserved, self.commanders)
        self._sent_s = {}
        self._accept(self._known.requests())

    def _new_token(self) -> int:
        """Return the token of a promotion that the station has accepted; 0: another uplink was sooner, or holds the
        lease.
        """
        offered = None
        if self.lease is not None and (offered := self.lease.acquire()) is None:
            return 0
        try:
            token = self._link.promote(self._highest, offered)
        except httpx.HTTPError:
            token = 0
        if not token and self.lease is not None:
            self.lease.release()
        return token

    def _take(self) -> None:
        now_s = self.monotonic_s()
        if self._pace.is_due(now_s):
            found = self._new_events()
            self._pace.looked(now_s, has_found=bool(found))
            self._accept(self._known.requests(found))
        self._make_use_of_room()

    def _new_events(self) -> list[dict[str, Any]]:
        found = [each for each in self.log.new_events() if each["event"] in COMMAND_EVENTS]
        for command_id in self._known.add(found):
            self._sent_s.pop(command_id, None)
        return found

    def _accept(self, requests: list[Mapping[str, Any]]) -> None:
        if (queue := self.queue) is None:
            return
        refused = self._issued.add(each for each in requests if not queue.knows(each["command_id"]))
        self.log.append([self._reports.of_command(each, REJECTED, self.token, why) for each, why in refused])

    def _make_use_of_room(self) -> None:
        """Accept issued commands, the most urgent first, new or not; what has expired is recorded as such."""
        queue = self.queue
        if queue is None:
            return
        changes = [queue.expire(each) for each in self._issued.take_expired(self.clock_ns())]
        accepted = (queue.push(each) for each in self._issued.take_while(queue.has_room))
        changes += [each for each in accepted if each]
        self.log.append(self._as_events(changes))

    def _send(self) -> None:
        now_s = self.monotonic_s()
        if self.queue is None or now_s < self._next_send_s:
            return
        expired, waiting = self.queue.pending_by_urgency(self.clock_ns())
        self.log.append(self._as_events(expired))
        due = [each for each in waiting if now_s - self._sent_s.get(each.command_id, -1e9) >= self.settings.resend_s]
        if self._path.breaker.state(now_s) is BreakerState.OPEN:
            return
        # A command whose retry must wait neither holds up those behind it nor uses up the breaker's probe.
        command = next((each for each in due if self._may_send(each, now_s)), None)
        if command is None or not self._path.breaker.allows(now_s):
            return
        if self.lease is not None and not self.lease.is_held:
            return
        self.log.append(self._as_events(self.queue.dispatch(command.command_id)))
        self._sent_s[command.command_id] = now_s
        self._next_send_s = now_s + 1.0 / self.settings.commands_per_s
        self._call(command, now_s)

    def _may_send(self, command: Command, now_s: float) -> bool:
        """Return whether it is a first attempt, a question or a retry within the budget; counts it if so."""
        if command.command_id in self._under_way:
            self._under_way.discard(command.command_id)
            return True
        if command.command_id in self._sent_s:
            return self._retries.allows_retry(now_s)
        self._retries.called(now_s)
        return True

    def _call(self, command: Command, began_s: float) -> None:
        try:
            answer = self._link.send(command, self.token)
        except httpx.HTTPError:
            # Whether it was executed is not known: it stays dispatched, and is sent again with the same id.
            self._path.note_call(True, began_s=began_s, now_s=self.monotonic_s())
            return
        self._path.note_call(False, began_s=began_s, now_s=self.monotonic_s())
        if answer["outcome"] == "stale_sender":
            self._stop(began_s)
        elif answer["outcome"] == "under_way":
            # The station works, and learns nothing new when it is asked: no retry after a failure.
            self._under_way.add(command.command_id)
        elif self.queue is not None:
            self.queue.acknowledge(command.command_id)
            self.log.append([self._reports.of_answer(command, answer, self.token)])

    def _as_events(self, changes: list[Transition]) -> list[GroundEvent]:
        return [self._reports.of_command(each.command, each.state, self.token) for each in changes]

    def _record(self, found: list[LinkEvent], more: str = "") -> None:
        """Make events of links durable, with what was seen of them."""
        self.log.append([self._reports.of_link(each, self.token, more) for each in found])

    def _silence(self, former: Path | None) -> str:
        """Return how long the other uplink was silent, if this is the reason for taking over."""
        if former is None or former.name == self.settings.name or not former.is_declared:
            return ""
        return f"; silent for {former.detector.silence_s(self.monotonic_s()):.3f} s"
