"""Encounters as received CDMs state them, by their ids: of each originator the newest statement, of all the largest Pc.

Messages are of one encounter if pair and TCA agree, as for our own events (`identity`). An encounter has the id of our
event, if screening has found it. Otherwise its first message gives it the id that screening would give it, and a later
screening continues that id. So one encounter has one alert, whichever comes first.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.conjunction.cdm_comparison import age_of, pair_of, reported_probability
from sda_platform.conjunction.event_rows import STATED_COLUMNS
from sda_platform.conjunction.identity import SLOT_NS, Pair, event_ids
from sda_platform.conjunction.superseded_messages import NO_CHANGES, STATES, PathChanges, objects_of, path_changes
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_CANDIDATES,
    RECEIVED_CDMS,
    SAME_EVENT_NS,
)
from sda_platform.formats.markings import MARKS
from sda_platform.lake.correction_log import last_rows
from sda_platform.lake.lake import Lake
from sda_platform.lake.manifest import CommitManifest, TableSnapshot, TableWindow
from sda_platform.lake.planning import Plan, snapshot_of
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.units import DAY_NS

# Messages of one encounter lie nearer together than this, so that all of it are read.
_READ_BEFORE_NS: Final = DAY_NS
STATED: Final = "stated"
"""The column with what received CDMs state of an event, a struct of STATED_COLUMNS; null: nothing."""
STATED_TYPE: Final = pa.struct([CONJUNCTION_ALERTS.arrow_schema.field(name) for name in STATED_COLUMNS])
_MESSAGE = (
    "originator", "created_time_ns", "received_time_ns", "norad_id_1", "norad_id_2", "object_designator_1",
    "object_designator_2", "object_name_1", "object_name_2", "tca_time_ns", "miss_distance_km", "relative_speed_km_s",
    "stated_probability", "recomputed_probability", "segment_sha256", "record_number", COMMIT_SEQUENCE, *STATES, *MARKS,
)  # fmt: skip
_KNOWN = ("event_id", "norad_id_1", "norad_id_2", "tca_time_ns", "sequence", "op")
Row = Mapping[str, Any]
Statements = Mapping[str, Mapping[str, Any] | None]
"""What messages state of encounters, by their ids, in STATED_COLUMNS; None: nothing any more."""


@dataclass
class StatedEncounter:
    """An encounter that messages state: ``newest`` is the last message of each originator."""

    event_id: str
    pair: Pair
    tca_time_ns: int
    newest: dict[object, Row] = field(default_factory=dict)
    last_commit: int = 0

    def add(self, message: Row) -> None:
        """Add a message of the encounter; messages may come in any order of creation."""
        known = self.newest.get(message["originator"])
        if known is None or age_of(message) >= age_of(known):
            self.newest[message["originator"]] = message
        self.tca_time_ns, self.last_commit = message["tca_time_ns"], message[COMMIT_SEQUENCE]

    def strongest(self, changes: PathChanges) -> Row | None:
        """Return the newest message with the largest Pc, of those on paths that still hold by ``changes``; None: there
        is none.
        """
        reporting = (message for message in self.newest.values() if reported_probability(message) is not None)
        return max((each for each in reporting if not changes.since(each)), key=_strength, default=None)

    def is_news(self, changes: PathChanges) -> bool:
        """Return whether a message does not count any more, by a change that is new."""
        found = [message for message in self.newest.values() if objects_of([message]) & changes.new]
        return any(changes.since(message) for message in found)

    def id_among(self, events: Mapping[Pair, Sequence[Row]]) -> str:
        """Return the id of our event of the same encounter, else its own; ``events`` by their pairs."""
        own = events.get(self.pair, ())
        if any(event["event_id"] == self.event_id for event in own):
            return self.event_id
        apart = [(abs(event["tca_time_ns"] - self.tca_time_ns), str(event["event_id"])) for event in own]
        return min((each for each in apart if each[0] < SAME_EVENT_NS), default=(0, self.event_id))[1]


def encounters_of(messages: Iterable[Row]) -> list[StatedEncounter]:
    """Return the encounters of ``messages`` with _MESSAGE, each of which continues the nearest known one of its
    pair.
    """
    found: dict[Pair, dict[str, StatedEncounter]] = defaultdict(dict)
    for message in sorted(messages, key=lambda m: (m[COMMIT_SEQUENCE], m["segment_sha256"], m["record_number"])):
        pair, tca_ns = pair_of(message), message["tca_time_ns"]
        known = [(each.tca_time_ns, event_id) for event_id, each in found[pair].items()]
        (event_id,) = event_ids(pair, [(tca_ns, SLOT_NS)], known)
        found[pair].setdefault(event_id, StatedEncounter(event_id, pair, tca_ns)).add(message)
    return [each for of_pair in found.values() for each in of_pair.values()]


def stated_facts(
    encounters: Iterable[StatedEncounter],
    events: Mapping[Pair, Sequence[Row]],
    changes: PathChanges = NO_CHANGES,
) -> dict[str, dict[str, Any] | None]:
    """Return STATED_COLUMNS of each encounter by its id; None: no Pc is stated that counts, or not under this id.

    ``events`` are the last entries of our own events by their pairs, withdrawn ones included.
    """
    strongest: dict[str, Row] = {}
    seen: set[str] = set()
    for encounter in encounters:
        event_id, message = encounter.id_among(events), encounter.strongest(changes)
        seen |= {event_id, encounter.event_id}
        if message and (event_id not in strongest or _strength(message) > _strength(strongest[event_id])):
            strongest[event_id] = message
    return {event_id: _stated(strongest[event_id]) if event_id in strongest else None for event_id in sorted(seen)}


def _strength(message: Row) -> tuple[float, tuple[int, str, int]]:
    return reported_probability(message) or 0.0, age_of(message)


def statements(store: Lake, plan: Plan, judged: Collection[str], due: Sequence[str]) -> Statements:
    """Read what received CDMs state of the events ``judged`` (ids), and of encounters with news for ``plan``.

    News are messages in the plan's window, changes of paths since the last commit, or another policy than its own.
    ``due`` are events judged because time has passed.
    """
    is_other_policy = plan.previous is not None and plan.previous.settings != plan.settings
    first_ns = _first_ns(store, plan, due)
    return statements_read(
        store, plan.windows, plan.snapshots, first_ns, judged, every=is_other_policy, previous=plan.previous
    )


def statements_read(
    store: Lake,
    windows: Iterable[TableWindow],
    snapshots: Iterable[TableSnapshot],
    first_ns: int,
    judged: Collection[str],
    *,
    every: bool = False,
    previous: CommitManifest | None = None,
) -> Statements:
    """As `stated_facts`, by these inputs of the alerts, of ``judged`` events and of encounters with a new message.

    TCAs count from ``first_ns`` on. Nothing where a commit of an earlier version consumed no message.
    """
    consumed = next((each for each in windows if each.table == RECEIVED_CDMS.name), None)
    if consumed is None or not consumed.upto_sequence:
        return {}
    encounters = encounters_of(_messages(store, consumed.upto_sequence, first_ns))
    read = next((each.sequence for each in snapshots if each.table == CONJUNCTION_CANDIDATES.name), 0)
    events = _own_events(store, encounters, read)
    messages = [message for each in encounters for message in each.newest.values()]
    changes = path_changes(store, snapshots, messages, previous)
    found, news = stated_facts(encounters, events, changes), {*judged}
    for each in encounters:
        ids = {each.event_id, each.id_among(events)}
        if every or each.last_commit > consumed.after_sequence or ids & news or each.is_news(changes):
            news |= ids
    return {event_id: found[event_id] for event_id in sorted(news & found.keys())}


def as_rows(stated: Statements) -> pa.Table:
    """Return the result of `statements` as columns event_id and `STATED`."""
    columns = {"event_id": pa.array(list(stated), pa.string()), STATED: pa.array(list(stated.values()), STATED_TYPE)}
    return pa.table(columns)


def named_by_messages(store: Lake, plan: Plan, from_ns: int) -> pa.Table:
    """Return the ids that messages alone have given to encounters of two catalogue numbers, as known events of a
    screening.

    By what ``plan``, one of the candidates, reads.
    """
    encounters = encounters_of(_messages(store, snapshot_of(plan, RECEIVED_CDMS).sequence, from_ns))
    events = _own_events(store, encounters, plan.sequence - 1)
    named = [each for each in encounters if all(isinstance(number, int) for number in each.pair)]
    named = [each for each in named if each.id_among(events) == each.event_id]
    columns: dict[str, tuple[list[Any], pa.DataType]] = {
        "event_id": ([each.event_id for each in named], pa.string()),
        "norad_id_1": ([each.pair[0] for each in named], pa.int64()),
        "norad_id_2": ([each.pair[1] for each in named], pa.int64()),
        "tca_time_ns": ([each.tca_time_ns for each in named], pa.int64()),
    }
    return pa.table({name: pa.array(values, kind) for name, (values, kind) in columns.items()})


def alert_ids(lake: Lake, now_ns: int) -> dict[tuple[str, int], str] | None:
    """Find the alert of each newest message of an encounter ahead, by segment and record, among consumed messages.

    None: no commit of alerts consumes messages.
    """
    commit = lake.log(CONJUNCTION_ALERTS).head().commit
    window = commit.manifest.window(RECEIVED_CDMS.name) if commit else None
    if window is None:
        return None
    encounters = encounters_of(_messages(lake, window.upto_sequence, now_ns))
    events = _own_events(lake, encounters, lake.log(CONJUNCTION_CANDIDATES).head().sequence)
    return {
        (message["segment_sha256"], message["record_number"]): each.id_among(events)
        for each in encounters
        for message in each.newest.values()
    }


def _messages(store: Lake, upto_sequence: int, from_ns: int) -> list[dict[str, Any]]:
    """Return the usable messages of the first commits whose TCA is not long before ``from_ns``; read without the
    engine.
    """
    if not upto_sequence:
        return []
    where = (ds.field(COMMIT_SEQUENCE) <= upto_sequence) & ds.field("error_kind").is_null()
    where &= ds.field("tca_time_ns") > from_ns - _READ_BEFORE_NS
    rows: list[dict[str, Any]] = store.log(RECEIVED_CDMS).rows(_MESSAGE, where).to_pylist()
    return rows


def _own_events(
    store: Lake, encounters: Sequence[StatedEncounter], upto_sequence: int
) -> dict[Pair, list[dict[str, Any]]]:
    """Return the last entries of our own events of the same pairs in the first commits of the candidates, by pair."""
    numbers = sorted({number for each in encounters for number in each.pair if isinstance(number, int)})
    found: dict[Pair, list[dict[str, Any]]] = defaultdict(list)
    if numbers and upto_sequence:
        where = ds.field("norad_id_1").isin(numbers) & ds.field("norad_id_2").isin(numbers)
        where &= ds.field(COMMIT_SEQUENCE) <= upto_sequence
        where &= ds.field("tca_time_ns") > min(each.tca_time_ns for each in encounters) - _READ_BEFORE_NS
        rows = store.log(CONJUNCTION_CANDIDATES).rows(_KNOWN, where)
        for event in last_rows(rows, "event_id").to_pylist():
            found[pair_of(event)].append(event)
    return found


def _first_ns(store: Lake, plan: Plan, due: Sequence[str]) -> int:
    """Return the instant from which on TCAs count: that of the plan, or the earliest TCA of an alert that is
    ``due``.
    """
    if not due:
        return plan.as_of_ns
    rows = store.log(CONJUNCTION_ALERTS).rows(["tca_time_ns"], ds.field("event_id").isin(pa.array(due, pa.string())))
    return int(min([plan.as_of_ns, *rows.column("tca_time_ns").to_pylist()]))


def _stated(message: Row) -> dict[str, Any]:
    # An object without a number is named as `pair_of` finds it.
    ways = {n: ("name", "designator") if message[f"norad_id_{n}"] else ("designator", "name") for n in (1, 2)}
    named = {
        f"object_name_{n}": message[f"object_{first}_{n}"] or message[f"object_{other}_{n}"]
        for n, (first, other) in ways.items()
    }
    said = {"stated_probability": reported_probability(message), "stated_by": message["originator"] or "unknown"}
    return {**{name: message.get(name) for name in STATED_COLUMNS}, **named, **said}
