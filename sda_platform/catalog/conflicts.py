"""What becomes of claims on a catalogue object: sources by the total order of sets, edits by version vectors."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.arrays import BoolArray, IntArray
from sda_platform.catalog.edit_decoding import edit_of, facts_of
from sda_platform.catalog.edits import EditVerdict, reconcile
from sda_platform.catalog.merge import best_sets, reasons_lost
from sda_platform.catalog.tables import CATALOG_CONFLICTS, CONCURRENT, ELEMENTS, HELD, IN_FORCE, LOST, SUPERSEDED
from sda_platform.formats.edits import Edit
from sda_platform.lake.correction_log import differing
from sda_platform.lake.table import COMMIT_SEQUENCE

_COLUMNS = [c.name for c in CATALOG_CONFLICTS.columns if c.name != COMMIT_SEQUENCE]
_SCHEMA = CATALOG_CONFLICTS.content_schema
_FROM_SETS = (
    "norad_id", "segment_sha256", "segment_name", "record_number", "received_time_ns", "epoch_time_ns",
    "element_set_number", "source_priority",
)  # fmt: skip
_NAMES = ("claimant", "originator")
SET_COLUMNS = (*_FROM_SETS, "source_name", "originator", "error_kind")
"""The columns of `element_sets` that `element_claims` takes."""


def element_claims(element_sets: pa.Table, current: pa.Table, *, as_of_ns: int) -> pa.Table:
    """Return the rows of `catalog_conflicts` about elements that change.

    ``element_sets``: rows of `element_sets` that are new or came into force. ``current``: the rows of
    `catalog_conflicts` about elements of their objects. Of each source of an affected object the best set is a claim;
    the best of these is in force, and the others have lost, each with the first part of the order in which it is below.
    A source is the sender of a set, not the originator that the set names.
    """
    usable = element_sets.filter(pc.is_null(element_sets["error_kind"]))
    fresh = usable.select(_FROM_SETS)
    for name, given in zip(_NAMES, ("source_name", "originator"), strict=True):
        fresh = fresh.append_column(name, pc.fill_null(usable[given], ""))
    is_affected = pc.is_in(current["norad_id"], value_set=pc.unique(fresh["norad_id"]))
    known = current.select(fresh.column_names).filter(is_affected)
    claims = pa.concat_tables([known, fresh], promote_options="permissive")
    sources = claims.take(pa.array(best_sets(claims, as_of_ns, _groups(claims))))
    numbers = sources["norad_id"].to_numpy()
    best = best_sets(sources, as_of_ns)
    winners = best[np.searchsorted(numbers[best], numbers)]
    rows = np.arange(len(numbers))
    reasons = reasons_lost(sources, rows, winners, as_of_ns)
    added = {
        "attribute": pa.repeat(ELEMENTS, len(rows)),
        "outcome": pa.array([IN_FORCE if row == winner else LOST for row, winner in zip(rows, winners, strict=True)]),
        "reason": pa.array(reasons, pa.string()),
    }
    columns = [
        added[field.name] if field.name in added
        else sources[field.name] if field.name in sources.column_names
        else pa.nulls(len(rows), field.type)
        for field in _SCHEMA
    ]  # fmt: skip
    judged = pa.table(columns, _SCHEMA.names).cast(_SCHEMA)
    return judged.filter(pa.array(_is_new(judged, current)))


def objects_of_earlier_claims(current: pa.Table) -> set[int]:
    """Return the objects with claims on elements by originators, as earlier releases recorded them."""
    is_earlier = pc.and_(pc.equal(current["attribute"], ELEMENTS), pc.is_null(current["originator"]))
    return set(current["norad_id"].filter(is_earlier).to_pylist())


def _groups(claims: pa.Table) -> IntArray:
    """A number for the object and source of each claim, equal for equal ones."""
    sources = claims["claimant"].combine_chunks().dictionary_encode()
    numbers: IntArray = claims["norad_id"].to_numpy()
    groups: IntArray = numbers * len(sources.dictionary) + sources.indices.to_numpy()
    return groups


def _is_new(judged: pa.Table, current: pa.Table) -> BoolArray:
    """Return whether each claim differs from the current one of its object and source, or there is none."""
    keys = [
        pc.binary_join_element_wise(pc.cast(each["norad_id"], pa.string()), each["claimant"], "/").combine_chunks()
        for each in (judged, current)
    ]
    place = pc.index_in(keys[0], value_set=keys[1])
    return np.asarray(pc.is_null(place)) | differing(judged, current.select(_COLUMNS).take(place))


def edit_claims(new: pa.Table, current: pa.Table) -> pa.Table:
    """Return rows of `catalog_conflicts` that change because of ``new`` rows of `catalog_edits`, given the ``current``
    ones.

    Different edits are concurrent if neither site had received the other's. All remain current until a later edit that
    follows all of them decides.
    """
    usable = [row for row in new.to_pylist() if row["error_kind"] is None]
    known = [row for row in current.to_pylist() if row["attribute"] != ELEMENTS]
    keys = {(row["norad_id"], row["attribute"]) for row in usable}
    touched = [*known, *usable]
    touched = sorted((row for row in touched if _key(row) in keys), key=_key)
    rows = [row for _, group in groupby(touched, key=_key) for row in _judged(list(group))]
    before = {row["claimant"]: {name: row[name] for name in _COLUMNS} for row in known}
    return pa.Table.from_pylist([row for row in rows if before.get(row["claimant"]) != row], _SCHEMA)


def _key(row: dict[str, Any]) -> tuple[int, str]:
    return row["norad_id"], row["attribute"]


def _judged(rows: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield the claims of one attribute of one object."""
    arrived: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda r: (r["received_time_ns"], r["segment_sha256"], r["record_number"])):
        arrived.setdefault(edit_of(row).edit_id, row)  # of a second delivery the first counts
    verdict = reconcile(map(edit_of, arrived.values()))
    for edit in (*verdict.current, *verdict.superseded, *verdict.held):
        yield _claim(edit, arrived[edit.edit_id], *_outcome(edit, verdict))


def _outcome(edit: Edit, verdict: EditVerdict) -> tuple[str, str | None]:
    if edit in verdict.held:
        claims = ", ".join(f"{count} of {site}" for site, count in sorted(edit.vector.items()))
        have = ", ".join(f"{count} of {site}" for site, count in sorted(verdict.arrived.items())) or "none"
        return HELD, f"it counts edits that have not arrived: {claims}; arrived have {have}"[:1000]
    if edit in verdict.superseded:
        return SUPERSEDED, "a later edit had seen it"
    if not verdict.is_conflict:
        return IN_FORCE, None
    others = sorted({f"{each.value!r} at {each.origin}" for each in verdict.current if each != edit})
    return CONCURRENT, f"made apart from {', '.join(others)}"[:1000]


def _claim(edit: Edit, row: dict[str, Any], outcome: str, reason: str | None) -> dict[str, Any]:
    provenance = ("segment_sha256", "segment_name", "record_number", "received_time_ns")
    facts = facts_of(edit) | {name: row[name] for name in provenance}
    facts |= {"claimant": edit.edit_id, "outcome": outcome, "reason": reason}
    return {name: facts.get(name) for name in _COLUMNS}
