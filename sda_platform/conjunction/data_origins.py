"""Whose data the states of an assessed conjunction rest on: the kind of each, and who sent what it was made of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.catalog.tables import ELEMENT_SETS, EPHEMERIDES, ORBITAL_CATALOG
from sda_platform.conjunction.stated_precision import rounded
from sda_platform.conjunction.tables import CONJUNCTION_ASSESSMENTS
from sda_platform.formats.markings import MARKS, UNMARKED, Marking, of_event
from sda_platform.fusion.tables import FUSED_TRACKS
from sda_platform.fusion.window_observations import observations_of
from sda_platform.lake.correction_log import INSERT
from sda_platform.lake.lake import Lake
from sda_platform.landing.senders import with_senders
from sda_platform.recovery.verification import current_keys

STATE_KINDS: Final[Mapping[str, str]] = {
    "element_set": "element set, model covariance",
    "fused_track": "own track",
    "operator_ephemeris": "ephemeris",
    "operator_ephemeris_assumed_covariance": "ephemeris, assumed covariance",
    "refined_ephemeris": "OD ephemeris",
}
"""The sources of states in `conjunction_assessments`, for people."""
SHORT_KINDS: Final[Mapping[str, str]] = {
    "operator_ephemeris": "ephemeris",
    "operator_ephemeris_assumed_covariance": "ephemeris*",
    "refined_ephemeris": "OD ephemeris",
    "fused_track": "track",
    "element_set": "elements",
}
"""The same in tables; a star marks an assumed covariance."""
_LANDED: Final = ("segment_sha256", "record_number", "received_time_ns")
_COLUMNS: Final = [
    f"{name}_{n}" for n in (1, 2) for name in ("norad_id", "state_source", "track_id", "ephemeris_id", *MARKS)
]
_ARRAYS: Final = frozenset({"state_1", "state_2", "covariance_1", "covariance_2"})
Key = tuple[str, int]
"""An event and the number of one of its objects, 1 or 2."""
Row = Mapping[str, Any]
_Known = tuple[tuple[str, ...], tuple[str, ...], int | None, tuple[str, ...]]


@dataclass(frozen=True)
class DataOrigin:
    """``kind``: the source of the state, as `conjunction_assessments` names it. ``makers``: the sensors of a track, or
    the originators that messages state; ``senders``: who brought the records, as we know them. ``time_ns``: how new the
    data is: the epoch of a set or of a track's newest window, the creation of an ephemeris; None: not known.
    ``owners``: whose element sets these are, as they state. ``marking``: that of the state, as it was assessed."""

    kind: str
    makers: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()
    time_ns: int | None = None
    owners: tuple[str, ...] = ()
    marking: Marking = UNMARKED

    @property
    def data(self) -> str:
        """Makers, owners and senders, and what marks their data; empty where none is known."""
        made, sent = ", ".join(self.makers), f"by {', '.join(self.senders)}" if self.senders else ""
        owned = f"owned by {', '.join(self.owners)}" if self.owners else ""
        marks = self.marking.shown
        return " ".join(filter(None, (made, owned, sent, f"[{marks}]" if marks else "")))

    def __str__(self) -> str:
        """The kind in one word, and whose data it is."""
        kind = SHORT_KINDS.get(self.kind, self.kind)
        return f"{kind} {of_whom(self.data)}".rstrip()


_NOT_ASSESSED: Final = DataOrigin("")


def of_whom(data: str) -> str:
    """Return makers and senders as they follow a noun: of radar-5 by radars; of senders alone: by radars."""
    return f"of {data}" if data and not data.startswith(("by ", "owned by ")) else data


def origins_of_events(lake: Lake, event_ids: Iterable[str]) -> dict[Key, DataOrigin]:
    """Return the origins of the current assessments of these events; an event without one has none."""
    wanted = sorted(set(event_ids))
    if not wanted or lake.log(CONJUNCTION_ASSESSMENTS).version() < 0:
        return {}
    found = current_keys(lake.log(CONJUNCTION_ASSESSMENTS), _COLUMNS, where=ds.field("event_id").isin(wanted))
    return data_origins(lake, found.to_pylist())


def assessments_of(lake: Lake, alerts: Iterable[Row]) -> dict[str, Row]:
    """Return by event the assessment that each alert states, without states and covariances; none where it is gone.

    It is the newest with the alert's miss distance: later ones have not changed the alert.
    """
    missed = {row["event_id"]: row["miss_distance_km"] for row in alerts}
    log = lake.log(CONJUNCTION_ASSESSMENTS)
    if not missed or log.version() < 0:
        return {}
    columns = [each.name for each in log.table.columns if each.name not in _ARRAYS]
    of_them = (ds.field("op") == INSERT) & ds.field("event_id").isin(sorted(missed))
    rows = log.rows(columns, of_them).sort_by([("sequence", "ascending")]).to_pylist()
    return {row["event_id"]: row for row in rows if rounded(row)["miss_distance_km"] == missed[row["event_id"]]}


def origin_columns(origins: Mapping[Key, DataOrigin], event_id: str) -> dict[str, str | None]:
    """Return what each object's state of an event rests on, with owner and source; None: not assessed, or unknown."""
    found: dict[str, str | None] = {}
    for n in (1, 2):
        each = origins.get((event_id, n), _NOT_ASSESSED)
        facts = {"state_source": each.kind, "data_of": each.data, "owner": ", ".join(each.owners)}
        facts["source_name"] = ", ".join(each.senders)
        found |= {f"{name}_{n}": text or None for name, text in facts.items()}
    return found


def with_markings(assessments: pa.Table) -> pa.Table:
    """Return rows of `conjunction_assessments` with the marking of the data of both states, as alerts have it."""
    of_both = assessments.select([f"{name}_{n}" for name in MARKS for n in (1, 2)]).to_pylist()
    found = [of_event(row) for row in of_both]
    for name in MARKS:
        assessments = assessments.append_column(name, pa.array([getattr(each, name) for each in found], pa.string()))
    return assessments


def data_origins(lake: Lake, assessments: Sequence[Row]) -> dict[Key, DataOrigin]:
    """Return the origin of each state of ``assessments``, one of each event.

    Of an element set the sender is that of the set in force now; of a track the sensors are those of its newest window.
    """
    sides = [(row, n) for row in assessments for n in (1, 2)]
    by_set = {row[f"norad_id_{n}"] for row, n in sides if row[f"state_source_{n}"] == "element_set"}
    by_path = {row[f"norad_id_{n}"] for row, n in sides if row[f"ephemeris_id_{n}"]}
    sets, paths = _of_element_sets(lake, by_set), _of_ephemerides(lake, by_path)
    tracks = _of_tracks(lake, {row[f"track_id_{n}"] for row, n in sides if row[f"track_id_{n}"]})
    found: dict[Key, DataOrigin] = {}
    for row, n in sides:
        kind, known = row[f"state_source_{n}"], paths.get(row[f"ephemeris_id_{n}"])
        if kind == "element_set":
            known = sets.get(row[f"norad_id_{n}"])
        elif kind == "fused_track":
            known = tracks.get(row[f"track_id_{n}"])
        marking = Marking.of(row, f"_{n}")
        found[row["event_id"], n] = DataOrigin(kind, *(known or ((), (), None, ())), marking)
    return found


def _of_element_sets(lake: Lake, norad_ids: set[int]) -> dict[int, _Known]:
    if not norad_ids:
        return {}
    columns = ["norad_id", "originator", "owner", "epoch_time_ns", *_LANDED]
    rows = lake.log(ORBITAL_CATALOG).rows(columns, ds.field("norad_id").isin(sorted(norad_ids))).to_pylist()
    found = with_senders(lake, ELEMENT_SETS, rows)
    return {row["norad_id"]: _names([row["originator"]], [row], row["epoch_time_ns"], [row["owner"]]) for row in found}


def _of_ephemerides(lake: Lake, norad_ids: set[int]) -> dict[str, _Known]:
    if not norad_ids or lake.log(EPHEMERIDES).version() < 0:
        return {}
    columns = ["originator", "segment_name", "record_number", "source_name", "created_time_ns", "received_time_ns"]
    rows = lake.log(EPHEMERIDES).rows(columns, ds.field("norad_id").isin(sorted(norad_ids))).to_pylist()
    return {
        f"{row['segment_name']}:{row['record_number']}": _names(
            [row["originator"]], [row], row["created_time_ns"] or row["received_time_ns"]
        )
        for row in rows
    }


def _of_tracks(lake: Lake, fit_ids: set[str]) -> dict[str, _Known]:
    if not fit_ids:
        return {}
    columns = ["fit_id", "op", "window_start_ns", "epoch_time_ns", "observation_ids"]
    fits = lake.log(FUSED_TRACKS).rows(columns, ds.field("fit_id").isin(sorted(fit_ids))).to_pylist()
    windows = {row["fit_id"]: row for row in fits if row["op"] == INSERT}
    rows = observations_of(lake, list(windows.values()), ["observation_id", "source_id", *_LANDED])
    observed = {row["observation_id"]: row for row in rows}
    found = {}
    for fit_id, row in windows.items():
        own = [observed[each] for each in row["observation_ids"] if each in observed]
        found[fit_id] = _names([each["source_id"] for each in own], own, row["epoch_time_ns"])
    return found


def _names(
    makers: Iterable[str | None], rows: Iterable[Row], time_ns: int | None, owners: Iterable[str | None] = ()
) -> _Known:
    made, sent, owned = (
        tuple(sorted({name for name in names if name}))
        for names in (makers, (row["source_name"] for row in rows), owners)
    )
    return made, sent, time_ns, owned
