"""Which of two uplinks commands a station: a failed primary is replaced by its backup, and comes back by a rule.

A pure state machine. Time is passed in, monotonic, in seconds. Suspicion of a path is continuous (phi), a declaration
is discrete and sticky. A heartbeat and an answered call are both evidence of life; a path whose heartbeats arrive but
whose calls fail is declared by its breaker. Each promotion takes a new fencing token from the station, so that the
commands of the former uplink are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sda_platform.formats.membership_events import ALIVE, DEAD, LEFT
from sda_platform.ground.failure_detection import PathClass, PhiDetector
from sda_platform.resilience import Breaker, BreakerState

PRIMARY, BACKUP = "primary", "backup"
SUSPECTED, CLEARED, DECLARED, RECOVERED = "suspected", "cleared", "declared", "recovered"
PROMOTED, FAILED_BACK, BOTH_DOWN = "promoted", "failed_back", "both_down"
SUSPECT_PHI: Final = 3.0


@dataclass(frozen=True)
class LinkEvent:
    """What happened to a path: ``token`` is that of a promotion, else 0."""

    time_s: float
    uplink: str
    event: str
    phi: float = 0.0
    token: int = 0


@dataclass
class Path:
    """What is known of one uplink: its heartbeats, the outcomes of its calls, and since when it is healthy."""

    name: str
    detector: PhiDetector
    breaker: Breaker
    is_suspected: bool = False
    is_declared: bool = False
    healthy_since_s: float | None = None
    reported: int = ALIVE
    """Status by the fleet's membership: who left is declared at once, who failed as soon as it is suspected too."""
    delay_s: float = 0.0
    """How late the station's answers are: a silence that this explains is none."""

    def note_heartbeat(self, now_s: float) -> None:
        """Record that a heartbeat arrived."""
        self.detector.heartbeat(now_s)

    def note_call(self, has_failed: bool, *, began_s: float, now_s: float) -> None:
        """A call through this path ended; an answer is evidence of life as a heartbeat is."""
        self.breaker.record(has_failed, began_s=began_s, now_s=now_s)
        if not has_failed:
            self.detector.alive(now_s)

    def update(self, now_s: float) -> list[LinkEvent]:
        """Suspicions and declarations at ``now_s`` that are new."""
        heard_s = now_s - self.delay_s
        phi = self.detector.suspicion(heard_s)
        is_reported = self.reported == LEFT or (self.reported == DEAD and phi >= SUSPECT_PHI)
        is_open = self.breaker.state(now_s) is BreakerState.OPEN
        has_failed = is_reported or is_open or self.detector.is_failed(heard_s)
        found = []
        if (phi >= SUSPECT_PHI) != self.is_suspected:
            self.is_suspected = not self.is_suspected
            found.append(LinkEvent(now_s, self.name, SUSPECTED if self.is_suspected else CLEARED, phi))
        if has_failed != self.is_declared:
            self.is_declared = has_failed
            found.append(LinkEvent(now_s, self.name, DECLARED if has_failed else RECOVERED, phi))
            self.healthy_since_s = None
        if not has_failed and self.healthy_since_s is None:
            self.healthy_since_s = now_s
        return found


@dataclass
class Failover:
    """Primary and backup of one station. ``active`` is None before the first promotion and while both are down.

    Failback: the primary takes over again when it was healthy for ``failback_after_s``; None: when the backup fails.
    """

    path_class: PathClass
    new_token: Callable[[], int]
    failback_after_s: float | None = 120.0
    token: int = 0
    active: str | None = None
    events: list[LinkEvent] = field(default_factory=list)
    paths: dict[str, Path] = field(init=False)
    _is_both_down: bool = False

    def __post_init__(self) -> None:
        self.paths = {name: Path(name, PhiDetector(self.path_class), Breaker()) for name in (PRIMARY, BACKUP)}

    def update(self, now_s: float) -> list[LinkEvent]:
        """Return the changes up to ``now_s``; call it at least as often as heartbeats are sent."""
        found = [event for path in self.paths.values() for event in path.update(now_s)]
        found += self._choose(now_s)
        self.events += found
        return found

    def _choose(self, now_s: float) -> list[LinkEvent]:
        usable = [name for name, path in self.paths.items() if not path.is_declared]
        if not usable:
            # No uplink is active: the queue keeps its commands, and drops what expires.
            was, self.active, self._is_both_down = self._is_both_down, None, True
            return [] if was else [LinkEvent(now_s, "", BOTH_DOWN)]
        self._is_both_down = False
        if self.active not in usable:
            return [self._promote(usable[0], PROMOTED, now_s)]
        since_s = self.paths[PRIMARY].healthy_since_s
        is_due = self.failback_after_s is not None and since_s is not None and now_s - since_s >= self.failback_after_s
        if self.active == BACKUP and PRIMARY in usable and is_due:
            return [self._promote(PRIMARY, FAILED_BACK, now_s)]
        return []

    def _promote(self, name: str, event: str, now_s: float) -> LinkEvent:
        self.active, self.token = name, self.new_token()
        return LinkEvent(now_s, name, event, token=self.token)
