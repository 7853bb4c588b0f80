"""Commands through two uplinks under seeded faults: a deterministic model of the ground segment.

The parts are those of the platform: `CommandQueue`, `Station` and `Failover`. Around them are a network that loses,
delays, repeats and reorders, and a command log that both uplinks read. Uplinks pause, crash and are cut off. A step is
50 ms.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from sda_platform.ground.commands import (
    ACKNOWLEDGED,
    EXPIRED,
    PRIORITY,
    Command,
    CommandQueue,
    QueueFull,
    Transition,
)
from sda_platform.ground.failover import BACKUP, BOTH_DOWN, FAILED_BACK, PRIMARY, PROMOTED, Failover
from sda_platform.ground.failure_detection import CROSS_REGION, INTRA_REGION, PathClass
from sda_platform_tests.models.station import Station

STEP_S: Final = 0.05
CAPACITY, RESERVED = 64, 16
DRAIN_PER_S: Final = 4.0
_NS: Final = 1_000_000_000
_RESEND_S: Final = 1.0


@dataclass
class ModelledUplink:
    """One uplink: its token while it is active, its queue, and the faults that it has."""

    name: str
    token: int = 0
    queue: CommandQueue | None = None
    sends_at_s: float = 0.0
    sent_s: dict[str, float] = field(default_factory=dict)
    paused_until_s: float = 0.0
    cut_until_s: float = 0.0
    crashed_until_s: float = 0.0
    has_forgotten: bool = False
    """It was started anew and has no queue yet."""

    def is_awake(self, now_s: float) -> bool:
        """Whether it acts; a pause keeps its memory, a crash does not."""
        return now_s >= self.paused_until_s and now_s >= self.crashed_until_s

    def is_heard(self, now_s: float) -> bool:
        """Whether its heartbeats arrive."""
        return self.is_awake(now_s) and now_s >= self.cut_until_s


@dataclass(frozen=True)
class UplinkOutcome:
    """What a schedule did. ``unserved``: accepted, not executed, not expired."""

    seed: int
    accepted: int
    executed: int
    executed_twice: int
    executed_stale: int
    """Executed for a sender after the station had promoted another one."""
    unserved: int
    expired: int
    stale_refused: int
    promotions: int
    slowest_promotion_s: float
    """From a stop of the active uplink to the promotion of the other; 0: there was none."""
    fastest_drain_per_s: float


def run(
    seed: int, *, seconds: float = 120.0, path: PathClass | None = None, is_fenced: bool = True, remembers: bool = True
) -> UplinkOutcome:
    """Carry out the schedule of ``seed``.

    Planted bugs: ``is_fenced`` False is a station that takes any token, ``remembers`` False one that forgets ids.
    """
    station = _Forgetful() if not remembers else Station() if is_fenced else _Trusting()
    return _Schedule(seed, path, station).carried_out(seconds)


class _Schedule:
    def __init__(self, seed: int, path: PathClass | None, station: Station) -> None:
        self.seed, self.chance = seed, random.Random(seed)
        self.path = path or self.chance.choice([INTRA_REGION, CROSS_REGION])
        self.station = station
        self.tokens = 0
        self.failover = Failover(self.path, self._token, failback_after_s=20.0)
        self.uplinks = {name: ModelledUplink(name) for name in (PRIMARY, BACKUP)}
        self.log: list[Transition] = []
        self.network: list[tuple[float, int, str, str, tuple[object, ...]]] = []
        self.messages = 0
        self.stopped_s: float | None = None
        self.promotions: list[float] = []
        self.stale = self.executed_stale = self.newest_at_station = 0
        self.received_s: list[float] = []

    def carried_out(self, seconds: float) -> UplinkOutcome:
        beats = max(1, round(self.path.interval_s / STEP_S))
        calm_from, step = int(seconds / STEP_S * 0.7), 0
        for step in range(int(seconds / STEP_S)):
            now_s = step * STEP_S
            if step < calm_from:
                self._fault(now_s)
                self._issue(step, now_s)
            for uplink in self.uplinks.values():
                if step % beats == 0 and uplink.is_heard(now_s):
                    self._send(now_s, "heartbeat", uplink.name, (), fastest=0.0, slowest=0.01, is_faulty=False)
            self._deliver(now_s)
            self._elect(now_s)
            for uplink in self.uplinks.values():
                self._work(uplink, now_s)
        return self._outcome()

    def _fault(self, now_s: float) -> None:
        uplink = self.uplinks[self.chance.choice([PRIMARY, BACKUP])]
        if self.chance.random() > 0.004 or now_s < 10:
            return
        until_s = now_s + self.chance.uniform(0.5, 25.0)
        kind = self.chance.choice(["paused", "crashed", "cut"])
        setattr(uplink, f"{kind}_until_s", until_s)
        if kind == "crashed":
            uplink.queue, uplink.token, uplink.sent_s, uplink.has_forgotten = None, 0, {}, True
        if self.failover.active == uplink.name and until_s - now_s > 6.0 and self.stopped_s is None:
            self.stopped_s = now_s

    def _issue(self, step: int, now_s: float) -> None:
        if self.chance.random() > 0.03:
            return
        active = self.uplinks.get(self.failover.active or "")
        # A command is accepted when the log has it; the log takes it from the holder of the newest token only.
        if active is None or active.queue is None or not active.is_awake(now_s) or active.token != self.tokens:
            return
        now_ns = int(now_s * _NS)
        expires_ns = now_ns + (5 * _NS if self.chance.random() < 0.1 else 3600 * _NS)
        try:
            accepted = active.queue.push(Command(f"c{step}", self.chance.choice(sorted(PRIORITY)), now_ns, expires_ns))
        except QueueFull:
            return
        self._store(active, [accepted] if accepted else [])

    def _elect(self, now_s: float) -> None:
        for event in self.failover.update(now_s):
            if event.event == BOTH_DOWN:
                self.stopped_s = None
            if event.event not in (PROMOTED, FAILED_BACK):
                continue
            self.uplinks[event.uplink].has_forgotten = False
            if self.stopped_s is not None and event.event == PROMOTED:
                self.promotions.append(now_s - self.stopped_s)
            self.stopped_s = None
            self._send(now_s, "promote", event.uplink, (event.token,))
        active = self.uplinks.get(self.failover.active or "")
        if active is not None and active.has_forgotten and active.is_awake(now_s):
            # It was active before it was started again, and takes over under a new token.
            active.has_forgotten = False
            self._send(now_s, "promote", active.name, (self._token(),))

    def _work(self, uplink: ModelledUplink, now_s: float) -> None:
        if not uplink.is_awake(now_s) or uplink.queue is None or now_s < uplink.sends_at_s:
            return
        changes, waiting = uplink.queue.pending_by_urgency(int(now_s * _NS))
        self._store(uplink, changes)
        for command in waiting:
            if now_s - uplink.sent_s.get(command.command_id, -_RESEND_S) >= _RESEND_S:
                self._store(uplink, uplink.queue.dispatch(command.command_id))
                uplink.sent_s[command.command_id] = now_s
                uplink.sends_at_s = now_s + 1.0 / DRAIN_PER_S
                self._send(now_s, "command", uplink.name, (command, uplink.token, now_s))
                return

    def _store(self, uplink: ModelledUplink, changes: list[Transition]) -> None:
        if uplink.token == self.tokens:
            self.log += changes

    def _send(
        self, now_s: float, kind: str, name: str, content: tuple[object, ...], *, fastest: float = 0.02,
        slowest: float = 0.4, is_faulty: bool = True,
    ) -> None:  # fmt: skip
        copies = self.chance.choices([0, 1, 2], [0.1, 0.8, 0.1])[0] if is_faulty and kind != "promote" else 1
        for _ in range(copies):
            # Seconds late, a command may come after a successor was promoted and before that one has sent it.
            is_late = is_faulty and kind == "command" and self.chance.random() < 0.1
            late = self.chance.uniform(0.0, self.chance.choice((5.0, 30.0))) if is_late else 0.0
            self.messages += 1
            arrival_s = now_s + self.chance.uniform(fastest, slowest) + late
            heapq.heappush(self.network, (arrival_s, self.messages, kind, name, content))

    def _deliver(self, now_s: float) -> None:
        while self.network and self.network[0][0] <= now_s:
            _, _, kind, name, content = heapq.heappop(self.network)
            uplink, path = self.uplinks[name], self.failover.paths[name]
            if kind == "heartbeat":
                path.note_heartbeat(now_s)
            elif now_s < uplink.cut_until_s and kind != "promote":
                continue
            elif kind == "command":
                self._at_station(name, content, now_s)
            elif kind == "answer" and uplink.is_awake(now_s) and uplink.queue is not None:
                command_id, began_s = str(content[0]), float(str(content[1]))
                path.note_call(False, began_s=began_s, now_s=now_s)
                done = uplink.queue.acknowledge(command_id)
                self._store(uplink, [done] if done else [])
            elif kind == "promote":
                self._promoted(uplink, content, now_s)

    def _promoted(self, uplink: ModelledUplink, content: tuple[object, ...], now_s: float) -> None:
        token = int(str(content[0]))
        if token < self.tokens:
            return
        if not uplink.is_awake(now_s):
            self._send(now_s, "promote", uplink.name, content, fastest=0.1)
            return
        self.station.promote(token)
        self.newest_at_station = max(self.newest_at_station, token)
        uplink.token, uplink.queue, uplink.sent_s = token, CommandQueue(CAPACITY, RESERVED, self.log), {}

    def _at_station(self, name: str, content: tuple[object, ...], now_s: float) -> None:
        command, token, began_s = content
        assert isinstance(command, Command)
        outcome = self.station.receive(command, int(str(token)), int(now_s * _NS))
        self.executed_stale += outcome == "executed" and int(str(token)) < self.newest_at_station
        self.newest_at_station = max(self.newest_at_station, int(str(token)))
        if outcome == "stale_sender":
            self.stale += 1
            return
        self.received_s.append(now_s)
        self._send(now_s, "answer", name, (command.command_id, began_s))

    def _token(self) -> int:
        self.tokens += 1
        return self.tokens

    def _outcome(self) -> UplinkOutcome:
        executed = Counter(self.station.executed)
        last = {each.command.command_id: each.state for each in self.log}
        open_ids = {name for name, state in last.items() if state not in (ACKNOWLEDGED, EXPIRED)}
        dispatches = sorted(self.received_s)
        spans = [later - first for first, later in zip(dispatches, dispatches[10:], strict=False)]
        return UplinkOutcome(
            seed=self.seed,
            accepted=len(last),
            executed=len(executed),
            executed_twice=sum(count > 1 for count in executed.values()),
            executed_stale=self.executed_stale,
            unserved=len(open_ids - set(executed)),
            expired=sum(state == EXPIRED for state in last.values()),
            stale_refused=self.stale,
            promotions=sum(event.event == PROMOTED for event in self.failover.events),
            slowest_promotion_s=max(self.promotions, default=0.0),
            fastest_drain_per_s=10 / max(min(spans, default=1e9), 1e-9),
        )


class _Trusting(Station):
    """A station with a planted bug: it takes any token. It remembers ids as it should."""

    def receive(self, command: Command, token: int, now_ns: int) -> str:
        return super().receive(command, max(token, self._highest), now_ns)


class _Forgetful(Station):
    """A station with a planted bug: it forgets the ids of what it has executed."""

    def receive(self, command: Command, token: int, now_ns: int) -> str:
        self._seen.clear()
        return super().receive(command, token, now_ns)
