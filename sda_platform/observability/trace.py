"""`sda alert trace`: from an alert back to the raw frames, through every table between them."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

import pyarrow.dataset as ds

from sda_platform.catalog.tables import ELEMENT_SETS, EPHEMERIDES, ORBITAL_CATALOG
from sda_platform.clock import iso
from sda_platform.conjunction.acknowledging import known_actions, words_of_action
from sda_platform.conjunction.alert_ids import UnknownAlert, complete_alert_id
from sda_platform.conjunction.alert_policy import reported
from sda_platform.conjunction.cdm_comparison import comparisons_with
from sda_platform.conjunction.data_origins import STATE_KINDS
from sda_platform.conjunction.tables import (
    CONJUNCTION_ALERTS,
    CONJUNCTION_ASSESSMENTS,
    CONJUNCTION_CANDIDATES,
    TRACK_REACH_NS,
)
from sda_platform.counts import counted
from sda_platform.delivery.tables import ALERT_DELIVERIES
from sda_platform.fusion.tables import FUSED_TRACKS, TRACK_MEMORY_NS
from sda_platform.fusion.window_observations import observations_of
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake
from sda_platform.lake.table import COMMIT_SEQUENCE, Table
from sda_platform.landing.senders import with_senders
from sda_platform.tasking.reports import words_of_task
from sda_platform.tasking.stored_outcomes import outcomes_of_event

_OF_EPHEMERIS: Final = [
    "norad_id", "originator", "usable_from_ns", "usable_until_ns", "segment_name", "segment_sha256", "record_number",
    "source_name", "peer", COMMIT_SEQUENCE,
]  # fmt: skip


@dataclass(frozen=True)
class Trace:
    """An alert and all rows that it was derived from; rows as dictionaries of their table's columns, oldest first.

    Elements and observations also have the ``source_name`` and ``peer`` of their record. ``messages`` are received CDMs
    of the same encounter. Where the rule of the alert is `stated_by_other`, it rests on them.
    """

    alert_id: str
    alerts: list[dict[str, Any]]
    deliveries: list[dict[str, Any]]
    assessments: list[dict[str, Any]]
    candidates: list[dict[str, Any]]
    elements: list[dict[str, Any]]
    tracks: list[dict[str, Any]]
    observations: list[dict[str, Any]]
    messages: Sequence[dict[str, Any]] = ()
    acknowledgements: Sequence[Mapping[str, Any]] = ()
    tasks: Sequence[Mapping[str, Any]] = ()
    """The observations that were scheduled for it, rows of `task_outcomes` as they are now."""
    ephemerides: Sequence[dict[str, Any]] = ()
    """Those of operators that its assessments rest on, without their states."""

    @property
    def newest(self) -> dict[str, Any]:
        """Return the newest entry of the alert; of an event that is none, its newest assessment."""
        return (self.alerts or self.assessments)[-1]

    @property
    def why_withdrawn(self) -> str:
        """Say what became of the event of a withdrawn alert; empty for one that holds."""
        if not self.alerts or self.alerts[-1]["op"] == INSERT:
            return ""
        if not self.assessments:
            return "no received message states it any more"
        last = self.assessments[-1]
        if last["op"] != INSERT:
            return "its objects do not come so near any more"
        sources = " and ".join(STATE_KINDS[last[f"state_source_{n}"]] for n in (1, 2))
        return f"{reported(last)}, miss {last['miss_distance_km']:.3f} km, by {sources}: below the levels of an alert"

    @property
    def rests_on(self) -> str:
        """Count element sets, tracks and observations by sensor."""
        fits = len({row["fit_id"] for row in self.tracks})
        sensors = Counter(row["source_id"] for row in self.observations)
        of = ": " + ", ".join(f"{count} of {name}" for name, count in sensors.most_common()) if sensors else ""
        paths = f"{counted(len(self.ephemerides), 'ephemeris', 'ephemerides')}, " if self.ephemerides else ""
        sets = counted(len(self.elements), "element set")
        return f"{paths}{sets}, {fits} tracks and {len(self.observations)} observations{of}"


def trace_alert(lake: Lake, prefix: str) -> Trace:
    """Follow the alert whose id begins with ``prefix``. Raises UnknownAlert when none, or more than one, does."""
    return trace_event(lake, complete_alert_id(lake, prefix))


def trace_event(lake: Lake, alert_id: str) -> Trace:
    """Follow a conjunction, alert or not. Raises UnknownAlert where there is none of this id."""
    alerts = _rows(lake, CONJUNCTION_ALERTS, "event_id", [alert_id])
    assessments = _rows(lake, CONJUNCTION_ASSESSMENTS, "event_id", [alert_id])
    if not (alerts or assessments):
        raise UnknownAlert(f"no conjunction has the id {alert_id[:80]!r}")
    track_ids = {row[name] for row in assessments for name in ("track_id_1", "track_id_2") if row[name]}
    tracks = _windows(lake, sorted(track_ids), [row["tca_time_ns"] for row in assessments])
    newest = (alerts or assessments)[-1]
    norad_ids = [number for n in (1, 2) if (number := newest[f"norad_id_{n}"])]
    return Trace(
        alert_id,
        alerts,
        _rows(lake, ALERT_DELIVERIES, "alert_id", [alert_id]),
        assessments,
        _rows(lake, CONJUNCTION_CANDIDATES, "event_id", [alert_id]),
        with_senders(lake, ELEMENT_SETS, _rows(lake, ORBITAL_CATALOG, "norad_id", norad_ids)),
        tracks,
        _in_order(observations_of(lake, tracks)),
        comparisons_with(lake, newest),
        known_actions(lake, alert_ids=[alert_id]).get(alert_id, ()),
        _tasks(lake, alert_id, norad_ids, assessments),
        _ephemerides(lake, assessments),
    )


def current_alert(lake: Lake, prefix: str) -> dict[str, Any]:
    """Return the current entry of the alert whose id begins with ``prefix``. Raises UnknownAlert, also if it is
    withdrawn.
    """
    alert_id = complete_alert_id(lake, prefix)
    entries = _rows(lake, CONJUNCTION_ALERTS, "event_id", [alert_id])
    last = max(entries, key=lambda row: (row["sequence"], row["op"]))
    if last["op"] != INSERT:
        raise UnknownAlert(f"alert {alert_id} is withdrawn")
    return last


def _tasks(
    lake: Lake, alert_id: str, norad_ids: Sequence[int], assessments: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    if not assessments:
        return []  # only what is assessed is requested
    since_ns = min(row["as_of_ns"] for row in assessments)
    return [each.row() for each in outcomes_of_event(lake, alert_id, norad_ids, since_ns)]


def _ephemerides(lake: Lake, assessments: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    used = {(row[f"norad_id_{n}"], id_) for row in assessments for n in (1, 2) if (id_ := row[f"ephemeris_id_{n}"])}
    if not used:
        return []
    numbers = sorted({number for number, _ in used})
    rows = lake.log(EPHEMERIDES).rows(_OF_EPHEMERIS, ds.field("norad_id").isin(numbers)).to_pylist()
    found = [row for row in rows if (row["norad_id"], f"{row['segment_name']}:{row['record_number']}") in used]
    return _in_order(found)


def _windows(lake: Lake, newest: Sequence[str], tca_ns: Sequence[int]) -> list[dict[str, Any]]:
    """Every window fit in the tracks whose ``newest`` fits these are; approaches at ``tca_ns`` rest on them."""
    if not newest:
        return []
    epoch_ns = ds.field("epoch_time_ns")
    # A track is used within its reach; a suspected manoeuvre may lie in its memory before that.
    usable = epoch_ns >= min(tca_ns) - TRACK_REACH_NS - TRACK_MEMORY_NS
    usable &= epoch_ns <= max(tca_ns) + TRACK_REACH_NS
    usable &= ds.field("fit_id").isin(newest)
    last = lake.log(FUSED_TRACKS).rows(["epoch_time_ns", "norad_id"], usable).to_pylist()
    if not last:
        return []
    epochs_ns = [row["epoch_time_ns"] for row in last]
    span = (epoch_ns > min(epochs_ns) - TRACK_MEMORY_NS) & (epoch_ns <= max(epochs_ns))
    return _found(lake, FUSED_TRACKS, span & ds.field("norad_id").isin(sorted({row["norad_id"] for row in last})))


def _rows(lake: Lake, table: Table, column: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    return _found(lake, table, ds.field(column).isin(list(values))) if values else []


def _found(lake: Lake, table: Table, where: ds.Expression) -> list[dict[str, Any]]:
    return _in_order(lake.log(table).rows(where=where).to_pylist())


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda r: (r["commit_sequence"], r.get("sequence", 0), r.get("op", "")))


def trace_lines(trace: Trace, most: int | None = None) -> Iterator[str]:
    """An alert's story, newest statement first, down to segments and records; of each kind the last ``most`` lines."""
    last = trace.newest
    pair = [f"{last[f'object_name_{n}']} ({last[f'norad_id_{n}']})" for n in (1, 2)]
    yield f"alert {trace.alert_id}: {pair[0]} – {pair[1]}"
    for what, lines in _lines_by_kind(trace):
        kept = lines if most is None else lines[-most:]
        if hidden := len(lines) - len(kept):
            yield f"  … {hidden:,} earlier {what}, see --all"
        yield from kept


def _lines_by_kind(trace: Trace) -> Iterator[tuple[str, list[str]]]:
    fits = sorted((row for row in trace.tracks if row["op"] == INSERT), key=itemgetter("epoch_time_ns"))
    revisions = [_revision(row) for row in trace.alerts]
    if why := trace.why_withdrawn:
        revisions[-1] += f" ({why})"
    yield "revisions", revisions
    yield "deliveries", [_delivery(row) for row in trace.deliveries]
    epochs_ns = {(row["norad_id"], row["epoch_time_ns"]) for row in trace.elements}
    yield "candidates", [_candidate(row, epochs_ns) for row in trace.candidates]
    yield "ephemerides", [_ephemeris(row) for row in trace.ephemerides]
    yield "element sets", [_elements(row) for row in trace.elements]
    yield "track entries", [_fit(row) for row in fits]
    yield "observations", [_observation(row) for row in sorted(trace.observations, key=itemgetter("sensor_time_ns"))]
    yield "tasks", [_task(row) for row in trace.tasks]
    yield "actions", [_action(row) for row in trace.acknowledgements]
    yield "messages", [_message(row) for row in trace.messages]


def _revision(row: dict[str, Any]) -> str:
    facts = f"{reported(row)}, miss {row['miss_distance_km']:.3f} km at {iso(row['tca_time_ns'])}"
    why = f" ({row['change']})" if row["op"] == INSERT and row["change"] else ""
    return f"  {row['op']} {row['sequence']} as of {iso(row['as_of_ns'])}: {row['risk']}, {facts}{why}"


def _delivery(row: dict[str, Any]) -> str:
    batch = f"batch {row['batch_id']}"
    return f"  delivered {row['op']} {row['sequence']} to {row['subscriber']}: {row['outcome']} ({batch})"


def _candidate(row: dict[str, Any], epochs_ns: Container[tuple[int, int]]) -> str:
    """Describe a candidate. What it was searched by has the epoch of an element set, or else a time in an ephemeris."""
    by = [
        f"{'element set' if (row[f'norad_id_{n}'], row[f'elements_epoch_{n}_ns']) in epochs_ns else 'ephemeris'} of "
        f"{row[f'norad_id_{n}']}"
        for n in (1, 2)
    ]
    miss = f"miss {row['miss_distance_km']:.3f} km by {' and '.join(by)}"
    return f"  candidate {row['op']} {row['sequence']}: {miss}"


def _ephemeris(row: dict[str, Any]) -> str:
    span = f"{iso(row['usable_from_ns'])} to {iso(row['usable_until_ns'])}"
    return f"  ephemeris of {row['norad_id']} by {row['originator'] or 'unknown'}: {span}, {_where(row)}"


def _elements(row: dict[str, Any]) -> str:
    return f"  elements of {row['norad_id']}: epoch {iso(row['epoch_time_ns'])}, {_where(row)}"


def _fit(row: dict[str, Any]) -> str:
    kinds = f"{row['radar_count']} radar, {row['optical_count']} optical, {row['isl_count']} ISL"
    return f"  track of {row['norad_id']} at {iso(row['epoch_time_ns'])}, entry {row['sequence']}: {kinds}"


def _observation(row: dict[str, Any]) -> str:
    return f"    {row['source_id']} {iso(row['sensor_time_ns'])}: {_where(row)}"


def _task(row: Mapping[str, Any]) -> str:
    return f"  {row['source_id']} was to observe {row['norad_id']} at {iso(row['start_time_ns'])}: {words_of_task(row)}"


def _action(row: Mapping[str, Any]) -> str:
    remark, when = f": {row['comment']}" if row["comment"] else "", iso(row["acknowledged_time_ns"])
    return f"  {words_of_action(row)} by {row['acknowledged_by']} at {when}{remark}"


def _message(row: dict[str, Any]) -> str:
    return f"  {row['originator']} reported the same encounter, message {row['message_id']}: {_where(row)}"


def _where(row: dict[str, Any]) -> str:
    sender = row.get("source_name")
    came = f", from {sender}" + (f" at {row['peer']}" if row["peer"] else "") if sender else ""
    return f"segment {row['segment_name']} record {row['record_number']} (sha256 {row['segment_sha256'][:12]}…){came}"
