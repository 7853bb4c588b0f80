"""External CDM comparison: risk and miss distance of received messages against our own assessment of the encounter.

A message and one of our events are the same encounter if they name the same pair and their TCAs are close. The limit is
the tolerance for an event's id. The match is computed on reading and not stored: either may come first, and TCAs
change.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.clock import iso
from sda_platform.conjunction.creation_times import reported_ns
from sda_platform.conjunction.identity import Pair, in_order
from sda_platform.conjunction.superseded_messages import STATES, path_changes_in_force
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS, RECEIVED_CDMS, SAME_EVENT_NS
from sda_platform.lake.lake import Lake
from sda_platform.orbits.risk.levels import YELLOW_FROM
from sda_platform.recovery.verification import current_keys

Row = Mapping[str, Any]
# Probabilities that differ by more than this lead to different decisions.
CONTRADICTION = 10.0
_SAID = [
    "originator", "message_id", "created_time_ns", "received_time_ns", "norad_id_1", "norad_id_2",
    "object_designator_1", "object_designator_2", "object_name_1", "object_name_2", "tca_time_ns", "miss_distance_km",
    "stated_probability", "recomputed_probability", "risk", "segment_name", "segment_sha256", "record_number", *STATES,
]  # fmt: skip
_OURS = ["norad_id_1", "norad_id_2", "tca_time_ns", "collision_probability"]


@dataclass(frozen=True)
class SecondOpinion:
    """A received message about an encounter, and our current assessment of it, if there is one."""

    message: Row
    event: Row | None
    superseded: str = ""
    """How an object has left the path of the message since; such a message counts no more."""

    @property
    def disagreement(self) -> str | None:
        """Describe how the two results for a yellow or red encounter differ; None: they agree."""
        theirs, ours = reported_probability(self.message), self.event["collision_probability"] if self.event else 0.0
        if theirs is None or self.superseded or max(ours, theirs) < YELLOW_FROM:
            return None
        report = f"{self.message['originator']} reports Pc {theirs:.2e} for {_encounter(self.message)}"
        if self.event is None:
            return f"{report}; we have no such event"
        if max(ours, theirs) > CONTRADICTION * min(ours, theirs):
            return f"{report}; our Pc is {ours:.2e} (event {self.event['event_id'][:8]})"
        return None

    def row(self) -> dict[str, Any]:
        """Both in one row, for a table: null where there is nothing of ours."""
        names = ("originator", "object_name_1", "object_name_2", "tca_time_ns", "miss_distance_km")
        ours = self.event or {"collision_probability": None, "event_id": None}
        return {
            **{name: self.message[name] for name in names},
            "stated_probability": self.message["stated_probability"],
            "recomputed_probability": self.message["recomputed_probability"],
            "own_probability": ours["collision_probability"],
            "event_id": ours["event_id"],
        }


def reported_probability(message: Row) -> float | None:
    """Return the Pc that a message reports: the stated one, else the one that follows from its states and
    covariances.
    """
    stated: float | None = message["stated_probability"]
    recomputed: float | None = message["recomputed_probability"]
    return recomputed if stated is None else stated


def comparisons_with(lake: Lake, event: Row) -> tuple[dict[str, Any], ...]:
    """Find the received CDMs about ``event`` (both norad ids and its TCA), oldest first, and how each is superseded."""
    pair = [event["norad_id_1"], event["norad_id_2"]]
    numbers = [number for number in pair if number]
    named = [ds.field(name).isin(pa.array(numbers, pa.int64())) for name in ("norad_id_1", "norad_id_2")]
    if None in pair:
        named = [each | ds.field(f"norad_id_{n}").is_null() for n, each in enumerate(named, 1)]
    found = lake.log(RECEIVED_CDMS).rows(_SAID, named[0] & named[1]).to_pylist()
    same, changes = [message for message in found if _is_same(message, event)], path_changes_in_force(lake, [event])
    return tuple({**message, "superseded": changes.since(message)} for message in sorted(same, key=age_of))


def open_comparisons(lake: Lake, now_ns: int) -> list[SecondOpinion]:
    """Return the newest message of each originator about each encounter after ``now_ns``, by TCA, with our
    assessment.
    """
    ahead = newest(lake.log(RECEIVED_CDMS).rows(_SAID, ds.field("tca_time_ns") > now_ns).to_pylist())
    named = sorted({each[name] for each in ahead for name in ("norad_id_1", "norad_id_2") if each[name]})
    events = defaultdict(list)
    if named:
        about = ds.field("norad_id_1").isin(named) & ds.field("norad_id_2").isin(named)
        for event in current_keys(lake.log(CONJUNCTION_ASSESSMENTS), _OURS, where=about).to_pylist():
            events[pair_of(event)].append(event)
    changes = path_changes_in_force(lake, ahead)
    return [
        SecondOpinion(message, _nearest(message, events[pair_of(message)]), changes.since(message)) for message in ahead
    ]


def newest(messages: Iterable[Row]) -> list[Row]:
    """Return the last message of each originator about each encounter, in the order of TCAs."""
    last: dict[object, list[Row]] = defaultdict(list)
    for message in sorted(messages, key=age_of, reverse=True):
        kept = last[message["originator"], pair_of(message)]
        if _nearest(message, kept) is None:
            kept.append(message)
    return sorted((message for kept in last.values() for message in kept), key=lambda m: (m["tca_time_ns"], age_of(m)))


def _nearest(row: Row, others: Iterable[Row]) -> Row | None:
    """That of ``others`` which is the same encounter, if there is one."""
    same = (other for other in others if _is_same(row, other))
    return min(same, key=lambda other: abs(other["tca_time_ns"] - row["tca_time_ns"]), default=None)


def _is_same(one: Row, other: Row) -> bool:
    return pair_of(one) == pair_of(other) and abs(one["tca_time_ns"] - other["tca_time_ns"]) < SAME_EVENT_NS


def pair_of(row: Row) -> Pair:
    """Both objects in one order: by number, else as the message designates or names them."""
    one, other = (
        row[f"norad_id_{n}"] or row.get(f"object_designator_{n}") or row.get(f"object_name_{n}") or "" for n in (1, 2)
    )
    return in_order((one, other))


def age_of(message: Row) -> tuple[int, str, int]:
    """Return the key that sorts messages by the time to which they report."""
    return reported_ns(message), message["segment_sha256"], message["record_number"]


def _encounter(message: Row) -> str:
    names = (message[f"object_name_{n}"] or "unknown" for n in (1, 2))
    designators = (message[f"object_designator_{n}"] or "?" for n in (1, 2))
    pair = " – ".join(f"{name} ({designator})" for name, designator in zip(names, designators, strict=True))
    return f"{pair} at {iso(message['tca_time_ns'])}"
