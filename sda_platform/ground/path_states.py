"""Is an uplink's path suspected, is it declared failed, and since when: from the events of uplinks. Pure.

Suspicion and declaration are apart: a path may be suspected and not declared, and a declaration outlasts its suspicion.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sda_platform.clock import iso
from sda_platform.formats.ground_events import HEARTBEATS
from sda_platform.ground.failover import CLEARED, DECLARED, RECOVERED, SUSPECTED
from sda_platform.ground.heartbeats import recorded

_SEEN: Final = re.compile(r"seen by (\w+); phi ([\d.]+)")


@dataclass(frozen=True)
class PathState:
    """What is known of the path through one uplink; None: nothing happened to it."""

    station: str
    uplink: str
    path_class: str
    suspicion: Mapping[str, Any] | None
    declaration: Mapping[str, Any] | None

    @property
    def state(self) -> str:
        """Name the state in one word."""
        if self.declaration is not None and self.declaration["event"] == DECLARED:
            return "failed"
        return "suspected" if self.suspicion is not None and self.suspicion["event"] == SUSPECTED else "in service"

    def shown(self) -> dict[str, Any]:
        """Describe the state, for people."""
        facts = {"station": self.station, "uplink": self.uplink, "class": self.path_class, "state": self.state}
        return {**facts, **_shown("suspicion", self.suspicion), **_shown("declaration", self.declaration)}


def path_states(events: Iterable[Mapping[str, Any]]) -> list[PathState]:
    """Return the state of each path that ``events`` of links and heartbeats are about, by station and uplink."""
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for event in sorted(events, key=lambda each: each["event_time_ns"]):
        if event["event"] == HEARTBEATS:
            record = recorded(event)
            newest.setdefault((event["station"], record.heard), {})["class"] = record.path
        elif event["event"] in (SUSPECTED, CLEARED):
            newest.setdefault((event["station"], event["uplink"]), {})["suspicion"] = event
        elif event["event"] in (DECLARED, RECOVERED):
            newest.setdefault((event["station"], event["uplink"]), {})["declaration"] = event
    return [
        PathState(*key, found.get("class", ""), found.get("suspicion"), found.get("declaration"))
        for key, found in sorted(newest.items())
    ]


def _shown(name: str, event: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the newest event of a path: what, since when, the suspicion then, and who saw it."""
    if event is None:
        return {name: "never", f"{name} since": "", f"{name} phi": "", f"{name} seen by": ""}
    seen = _SEEN.search(event["detail"] or "")
    who, phi = (seen[1], seen[2]) if seen else ("", "")
    since = iso(event["event_time_ns"])
    return {name: event["event"], f"{name} since": since, f"{name} phi": phi, f"{name} seen by": who}
