"""What is known of each object from satellite catalogues, decay messages and edits, and when objects left their orbits.

Of each fact the newest statement counts. A record that lacks a fact says nothing of it: sources are behind each other
by days, so a catalogue without a decay does not undo a decay message. An edit decides on decays whatever they state.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sda_platform.catalog.edit_decoding import edit_of
from sda_platform.catalog.edits import settled
from sda_platform.catalog.tables import CATALOG_EDITS, SATELLITE_CATALOG, SATELLITE_RECORDS, SATELLITES_FEED
from sda_platform.formats.edits import DECAY, Edit, decided_decay_ns
from sda_platform.formats.satcat import FACTS, PREDICTION, SatelliteRecord
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.landing.record_rows import record_decoder

Row = Mapping[str, Any]
_STATED: Final = [name for name in FACTS if name not in ("norad_id", "decay_time_ns")]
_PROVENANCE: Final = ("segment_sha256", "segment_name", "record_number", "received_time_ns")
_KNOWN: Final = ("norad_id", "decay_time_ns")


def _facts(record: SatelliteRecord) -> Row:
    return {name: getattr(record, name) for name in FACTS}


decode = record_decoder(SATELLITE_RECORDS, SATELLITES_FEED, _facts)


def changed_satellites(
    current: Iterable[Row], records: Iterable[Row], edits: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows of `satellite_catalog` that ``records`` and ``edits`` change or add.

    ``records``: new usable rows of `satellite_records`. ``edits``: all usable rows of `catalog_edits` about decays.
    """
    before = {row["norad_id"]: row for row in current}
    now: dict[int, dict[str, Any]] = {}
    for record in sorted(records, key=_arrival):
        row = now.setdefault(record["norad_id"], {**_blank(record), **before.get(record["norad_id"], {})})
        facts = {**{name: record[name] for name in _STATED}, "stated_decay_time_ns": record["decay_time_ns"]}
        # A row that an edit began has the edit's time, and no fact yet.
        is_newest = _arrival(record) >= _arrival(row) or not any(row[name] is not None for name in facts)
        row |= {name: fact for name, fact in facts.items() if fact is not None and (is_newest or row[name] is None)}
        if is_newest and record[PREDICTION[0]] is not None:
            row |= {name: record[name] for name in PREDICTION}
        if is_newest:
            row |= {name: record[name] for name in _PROVENANCE}
    of_edits = sorted(edits, key=lambda row: (row["norad_id"], _arrival(row)))
    decided = {number: list(rows) for number, rows in groupby(of_edits, key=lambda row: row["norad_id"])}
    for number, rows in decided.items():
        now.setdefault(number, {**_blank(rows[-1]), **before.get(number, {})})
    for number, row in now.items():
        row["decay_is_decided"], decay_ns = _decision(map(edit_of, decided.get(number, ())))
        row["decay_time_ns"] = decay_ns if row["decay_is_decided"] else row["stated_decay_time_ns"]
    return [row for number, row in sorted(now.items()) if _content(row) != _content(before.get(number))]


def decay_edits(store: Lake, plan: Plan) -> list[dict[str, Any]]:
    """Return the usable edits of decays that a plan has consumed, its window included."""
    upto = plan.window(CATALOG_EDITS).upto_sequence
    where = (ds.field(COMMIT_SEQUENCE) <= upto) & ds.field("error_kind").is_null() & (ds.field("attribute") == DECAY)
    found: list[dict[str, Any]] = store.log(CATALOG_EDITS).rows(None, where).to_pylist() if upto else []
    return found


def known_decays(store: Lake, plan: Plan) -> pa.Table:
    """Return the decays that `satellite_catalog` has at the end of a plan's window, null: the object is in orbit.

    Only objects of which that is known have a row: ``norad_id`` and ``decay_time_ns``.
    """
    # A plan that repeats a commit of a version without satellites consumes none.
    window = next((each for each in plan.windows if each.table == SATELLITE_CATALOG.name), None)
    is_known = ds.field("decay_time_ns").is_valid() | ds.field("decay_is_decided")
    version = window.upto_version if window and window.upto_sequence else -1
    return store.log(SATELLITE_CATALOG).rows(list(_KNOWN), is_known, version)


def with_decays(entries: pa.Table, decays: pa.Table) -> pa.Table:
    """``entries`` of the catalogue with the decays that are known; without, what the source of a set states holds."""
    known, place = decays["norad_id"].combine_chunks(), entries.column_names.index("decay_time_ns")
    at = pc.index_in(entries["norad_id"].combine_chunks(), known)
    found = decays["decay_time_ns"].combine_chunks().take(at)
    merged = pc.if_else(pc.is_valid(at), found, entries["decay_time_ns"].combine_chunks())
    return entries.set_column(place, "decay_time_ns", merged)


def objects_with_other_decays(store: Lake, plan: Plan, current: pa.Table, decays: pa.Table) -> set[int]:
    """Return the objects in ``current`` entries whose decay may be another one since the plan's window on the
    satellites.
    """
    if all(each.table != SATELLITE_CATALOG.name for each in plan.windows):
        return set()
    touched = store.new_rows(plan, SATELLITE_CATALOG, ["norad_id"])["norad_id"]
    entries = current.filter(pc.is_in(current["norad_id"], touched.combine_chunks())).select(list(_KNOWN))
    expected = with_decays(entries, decays)
    is_known = pc.is_in(entries["norad_id"], decays["norad_id"].combine_chunks())
    old, new = (pc.fill_null(each["decay_time_ns"], -1) for each in (entries, expected))
    # Where nothing is known any more, the sets themselves say whether the object has decayed.
    is_open = pc.and_(pc.invert(is_known), pc.is_valid(entries["decay_time_ns"]))
    return set(entries["norad_id"].filter(pc.or_(pc.not_equal(old, new), is_open)).to_pylist())


def _decision(edits: Iterable[Edit]) -> tuple[bool, int | None]:
    value = next((edit.value for edit in settled(edits)), "")
    return bool(value), decided_decay_ns(value)


def _arrival(row: Row) -> tuple[int, str, int]:
    return row["received_time_ns"], row["segment_sha256"], row["record_number"]


def _blank(row: Row) -> dict[str, Any]:
    nothing = dict.fromkeys((*_STATED, "decay_time_ns", "stated_decay_time_ns"))
    return {"norad_id": row["norad_id"], **nothing, **{name: row[name] for name in _PROVENANCE}}


def _content(row: Row | None) -> list[tuple[str, Any]] | None:
    """Return what a row says, without the record that said it last."""
    ignored = {*_PROVENANCE, COMMIT_SEQUENCE}
    return None if row is None else sorted((name, value) for name, value in row.items() if name not in ignored)
