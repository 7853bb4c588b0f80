"""Which uplink of each station was active when, from the events of uplinks."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

import pyarrow.dataset as ds

from sda_platform.clock import iso
from sda_platform.formats.ground_events import ACKNOWLEDGED, HEARTBEATS, LINK_EVENTS
from sda_platform.ground.command_states import EVENT_COLUMNS
from sda_platform.ground.tables import GROUND_EVENTS
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.units import SECOND_NS

PROMOTIONS: Final = ("promoted", "failed_back")
_SILENCE: Final = re.compile(r"silent for ([\d.]+) s")


@dataclass(frozen=True)
class Term:
    """An uplink was active from a promotion to the next one; ``silence_s``: how long the former one was silent then."""

    station: str
    uplink: str
    token: int
    from_ns: int
    until_ns: int | None
    reason: str
    silence_s: float | None

    def shown(self) -> dict[str, Any]:
        """Describe the term, for people."""
        silence = "" if self.silence_s is None else f"{self.silence_s:.1f} s"
        facts = {"station": self.station, "uplink": self.uplink, "token": self.token, "since": iso(self.from_ns)}
        return {**facts, "reason": self.reason, "stop to promotion": silence}


def link_events(lake: Lake, *, upto_sequence: int = 2**62) -> list[dict[str, Any]]:
    """Events of uplinks in `ground_events` up to a commit; the events of commands, far more, are not read."""
    is_wanted = ds.field("event").isin(list(LINK_EVENTS)) & (ds.field(COMMIT_SEQUENCE) <= upto_sequence)
    return list(lake.log(GROUND_EVENTS).rows(EVENT_COLUMNS, is_wanted).to_pylist())


def heartbeat_events(lake: Lake, since_ns: int, *, upto_sequence: int = 2**62) -> list[dict[str, Any]]:
    """Records of heartbeats in `ground_events` since ``since_ns``, up to a commit."""
    is_wanted = (ds.field("event") == HEARTBEATS) & (ds.field("event_time_ns") > since_ns)
    is_usable = ds.field("error_kind").is_null() & (ds.field(COMMIT_SEQUENCE) <= upto_sequence)
    return list(lake.log(GROUND_EVENTS).rows(EVENT_COLUMNS, is_wanted & is_usable).to_pylist())


def terms(events: Iterable[Mapping[str, Any]]) -> list[Term]:
    """Return the terms of all stations, by station and token."""
    promotions: dict[tuple[str, int], Mapping[str, Any]] = {}
    for event in events:
        if event["event"] in PROMOTIONS:
            promotions.setdefault((event["station"], event["token"]), event)
    found: list[Term] = []
    ordered = [promotions[key] for key in sorted(promotions)]
    for event, following in zip_longest(ordered, ordered[1:]):
        is_followed = following is not None and following["station"] == event["station"]
        silence = _SILENCE.search(event["detail"] or "")
        found.append(
            Term(
                event["station"],
                event["uplink"],
                event["token"],
                event["event_time_ns"],
                following["event_time_ns"] if following is not None and is_followed else None,
                event["event"].replace("_", " "),
                float(silence[1]) if silence else None,
            )
        )
    return found


def link_states(events: Iterable[Mapping[str, Any]]) -> list[Term]:
    """Return the current term of each station."""
    return [term for term in terms(events) if term.until_ns is None]


def stale_executions(
    events: Iterable[Mapping[str, Any]], known_terms: Iterable[Term], *, tolerance_s: float = 5.0
) -> list[str]:
    """Commands of ``events`` that a station executed for a former uplink after the next one was promoted.

    ``tolerance_s``: an answer may be on its way during the promotion, and the clocks of uplinks differ.
    """
    until = {(term.station, term.token): term.until_ns for term in known_terms if term.until_ns is not None}
    return [
        row["command_id"]
        for row in events
        if row["event"] == ACKNOWLEDGED
        and row["detail"] == "executed"
        and row["event_time_ns"] > until.get((row["station"], row["token"]), 2**62) + tolerance_s * SECOND_NS
    ]
