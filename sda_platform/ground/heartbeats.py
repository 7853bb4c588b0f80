"""Recorded heartbeats: the gaps between them as an uplink saw them, from which its detector is calibrated.

A record has at most `MOST_GAPS` gaps, and one is begun each `EVERY_S`. So beats of each 0.5 s are recorded all the
time, and those of each 50 ms a tenth of it. A day of one path is half a megabyte at most.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sda_platform.formats.ground_events import heartbeat_gaps

MOST_GAPS: Final = 1_200
EVERY_S: Final = 600.0


@dataclass(frozen=True)
class HeartbeatRecord:
    """Gaps between the heartbeats of uplink ``heard``, on a path of class ``path``, in the order they came."""

    station: str
    heard: str
    path: str
    gaps_s: tuple[float, ...]


@dataclass
class HeartbeatRecorder:
    """Records the heartbeats of one uplink; times are monotonic, seconds."""

    heard: str
    path: str
    _gaps_ms: list[int] = field(default_factory=list)
    _began_s: float | None = None
    _last_s: float = 0.0
    _next_s: float = -float("inf")

    def beat(self, at_s: float) -> None:
        """A heartbeat was sent, or arrived, at ``at_s``."""
        if self._began_s is None:
            if at_s >= self._next_s:
                self._began_s = self._last_s = at_s
            return
        if len(self._gaps_ms) < MOST_GAPS and at_s > self._last_s:
            self._gaps_ms.append(round(1000 * (at_s - self._last_s)))
            self._last_s = at_s

    def complete(self, now_s: float) -> str | None:
        """Return the record as text, once, when it is full or long enough; the next one begins in time."""
        if self._began_s is None or (len(self._gaps_ms) < MOST_GAPS and now_s - self._began_s < EVERY_S):
            return None
        self._next_s, gaps_ms = self._began_s + EVERY_S, self._gaps_ms
        self._began_s, self._gaps_ms = None, []
        return json.dumps({"heard": self.heard, "path": self.path, "gaps_ms": gaps_ms}) if gaps_ms else None


class HeartbeatRecorders:
    """The recorders of the ``others``, all on paths of one class, and which heartbeats are known."""

    def __init__(self, path: str, others: Iterable[str]) -> None:
        self._recorders = {name: HeartbeatRecorder(name, path) for name in others}
        self._newest: dict[str, tuple[int, float]] = {}

    def times_s(self, name: str, number: int, at_s: float) -> list[float]:
        """Compute the sending times of the new heartbeats of ``name``; heartbeat ``number`` was sent ``at_s``.

        The station has the time of the newest alone: none is new while it repeats that, and of several the others are
        placed evenly before it.
        """
        known = self._newest.get(name)
        if known is not None and known[0] == number:
            return []
        self._newest[name] = number, at_s
        if known is None or number < known[0]:
            return [at_s]
        count, before_s = number - known[0], known[1]
        return [before_s + (at_s - before_s) * each / count for each in range(1, count + 1)]

    def beat(self, name: str, at_s: float) -> None:
        """A heartbeat of ``name`` was sent at ``at_s``."""
        if name in self._recorders:
            self._recorders[name].beat(at_s)

    def complete(self, now_s: float) -> list[str]:
        """Return the records that are complete, as text, each once."""
        return [text for each in self._recorders.values() if (text := each.complete(now_s)) is not None]


def recorded(event: Mapping[str, Any]) -> HeartbeatRecord:
    """Return the record in the ``detail`` of an event."""
    heard, path, gaps_ms = heartbeat_gaps(event["detail"])
    return HeartbeatRecord(event["station"], heard, path, tuple(ms / 1000 for ms in gaps_ms))
