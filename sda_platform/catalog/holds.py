"""Which element sets are held before the merge: Arrow in, Arrow out, no Spark.

What becomes of a set depends on the sets of its object in the 30 days before it, on the next one, and on edits. So it
does not depend on the order of arrival, and it is found again by the same rows (`orbits.element_gate`).
"""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.arrays import BoolArray, IntArray
from sda_platform.catalog.held_model import BORNE_OUT, IMPLAUSIBLE, PLANNED, RELEASED
from sda_platform.catalog.sources import assumes_planned_manoeuvre
from sda_platform.catalog.tables import HELD, HELD_ELEMENT_SETS
from sda_platform.lake.arrow import arrays
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.element_gate import agree_with_last, contradictions, has_witness_before
from sda_platform.orbits.element_history import HISTORY_NS
from sda_platform.orbits.element_jumps import KINDS
from sda_platform.orbits.elements import ElementSets, are_possible
from sda_platform.orbits.in_force import EPOCH_TOLERANCE_NS

SetId = tuple[str, int]
"""Segment and record of a set."""
_ORBIT: Final = tuple(each.name for each in fields(ElementSets) if each.name != "decay_time_ns")
_COPIED: Final = (
    "norad_id", "segment_sha256", "segment_name", "record_number", "received_time_ns", "object_name", "originator",
    "source_name", "epoch_time_ns",
)  # fmt: skip
SET_COLUMNS: Final = tuple(dict.fromkeys((*_COPIED, *_ORBIT, "error_kind", COMMIT_SEQUENCE)))
"""The columns of `element_sets` that `changed_holds` takes."""
_MEASURED: Final = ("compared_epoch_time_ns", "times_usual", "radial_km", "in_track_km", "cross_track_km")
_SCHEMA: Final = HELD_ELEMENT_SETS.content_schema


def changed_holds(
    element_sets: pa.Table,
    current: pa.Table,
    *,
    after_sequence: int,
    again: Collection[int],
    released: Mapping[SetId, str],
    as_of_ns: int,
) -> pa.Table:
    """Return the rows of `held_element_sets` that change.

    Args:
        element_sets: rows of `element_sets`, of each object all of the 60 days before the first that is new.
        current: rows of `held_element_sets` of these objects.
        after_sequence: the commit of `element_sets` after which rows are new.
        again: objects of which every set is judged again, new or not.
        released: the sets that people have released, and who did.
        as_of_ns: mission time.
    """
    usable = element_sets.filter(pc.is_null(element_sets["error_kind"]))
    if not usable.num_rows:
        return _SCHEMA.empty_table()
    orbits = _Orbits(usable)
    judged = orbits.near(_is_touched(usable, after_sequence, again))
    found = orbits.held(judged)
    known = {(row["segment_sha256"], row["record_number"]): row for row in current.to_pylist()}
    # Few sets are held, and of the others only those that were held matter.
    was_held = pc.is_in(usable["norad_id"], pc.unique(current["norad_id"])).to_numpy()
    chosen = np.flatnonzero(judged[orbits.of_row] & (np.isin(orbits.of_row, list(found)) | was_held))
    rows = []
    for facts, orbit in zip(
        usable.select(_COPIED).take(chosen).to_pylist(), orbits.of_row[chosen].tolist(), strict=True
    ):
        key = facts["segment_sha256"], facts["record_number"]
        before, why = known.get(key), found.get(orbit)
        if before is not None or why is not None:
            row = _row(facts, why, before, released.get(key), as_of_ns)
            rows += [row] if before is None or any(row[name] != before[name] for name in _SCHEMA.names) else []
    return pa.Table.from_pylist(rows, _SCHEMA)


def objects_to_judge(element_sets: pa.Table, after_sequence: int) -> set[int]:
    """Return the objects with new sets of which some may be held, by the newest sets alone.

    ``element_sets``: rows with SET_COLUMNS, all since some time. A set that agrees with the one before it is not held,
    whatever is before that. If it is the newest, it changes nothing of others, but of one that is held.
    """
    usable = element_sets.filter(pc.is_null(element_sets["error_kind"]))
    if not usable.num_rows:
        return set()
    orbits = _Orbits(usable)
    is_new = np.zeros(len(orbits.elements), np.bool_)
    is_new[orbits.of_row[_is_touched(usable, after_sequence, ())]] = True
    ids = orbits.elements.norad_id
    is_followed = np.append((ids[1:] == ids[:-1]) & ~is_new[1:], False)
    agrees = agree_with_last(orbits.elements, orbits.is_witness, np.flatnonzero(is_new))
    doubtful = is_new & (is_followed | ~orbits.is_possible | orbits.is_planned)
    doubtful[np.flatnonzero(is_new)[~agrees]] = True
    return set(ids[doubtful].tolist())


def _is_touched(usable: pa.Table, after_sequence: int, again: Collection[int]) -> BoolArray:
    is_new = pc.greater(usable[COMMIT_SEQUENCE], after_sequence).to_numpy()
    is_again = pc.is_in(usable["norad_id"], pa.array(sorted(again), pa.int64())).to_numpy()
    return np.asarray(is_new | is_again)


def _row(
    facts: Mapping[str, Any],
    why: Mapping[str, Any] | None,
    before: Mapping[str, Any] | None,
    editor: str | None,
    as_of_ns: int,
) -> dict[str, Any]:
    """Return the row of a set that is held, because of ``why``, or was ``before``."""
    outcome = BORNE_OUT if why is None else HELD if editor is None else RELEASED
    known: Mapping[str, Any] = before or {}
    return {
        **{name: known.get(name) for name in _SCHEMA.names},
        **facts,
        **(why or {}),
        "outcome": outcome,
        "released_by": editor if outcome == RELEASED else None,
        "held_since_ns": known.get("held_since_ns", as_of_ns),
        "changed_time_ns": known["changed_time_ns"] if known.get("outcome") == outcome else as_of_ns,
    }


class _Orbits:
    """The different orbits among rows of `element_sets`, by object, then epoch: a second delivery adds none.

    Attributes:
        elements: the orbits (n,).
        of_row: (r,) the orbit of each row.
        is_possible, is_planned: (n,) whether an orbit is one around the Earth, and assumes a planned manoeuvre.
        is_witness: (n,) whether it speaks for or against others: observed, plausible and no plan.
    """

    def __init__(self, usable: pa.Table) -> None:
        columns = arrays(usable, (*_ORBIT, "received_time_ns"))
        given = ElementSets.from_columns(columns)
        values = [getattr(given, name) for name in _ORBIT]
        order = np.lexsort(values[::-1])
        is_first = np.zeros(len(order), np.bool_)
        is_first[:1] = True
        for each in values:
            is_first[1:] |= each[order][1:] != each[order][:-1]
        self.of_row: IntArray = np.empty(len(order), np.int64)
        self.of_row[order] = np.cumsum(is_first) - 1
        self.elements = given.take(order[is_first])
        names = usable["object_name"].combine_chunks().dictionary_encode()
        marked = np.array([assumes_planned_manoeuvre(name) for name in names.dictionary.to_pylist()] + [False])
        is_marked = marked[pc.fill_null(names.indices, -1).to_numpy()]
        self.is_planned = ~self._any(~is_marked)
        self.is_possible = are_possible(self.elements)
        received_ns = np.full(len(self.elements), np.iinfo(np.int64).max)
        np.minimum.at(received_ns, self.of_row, columns["received_time_ns"])
        self._is_observed = self.elements.epoch_time_ns <= received_ns + EPOCH_TOLERANCE_NS
        self.is_witness = self.is_possible & self._is_observed & ~self.is_planned

    def _any(self, of_rows: BoolArray) -> BoolArray:
        found = np.zeros(len(self.elements), np.bool_)
        found[self.of_row[of_rows]] = True
        return found

    def near(self, is_touched: BoolArray) -> BoolArray:
        """Return the orbits (n,) of which something may change: those within 30 days of a touched row (r,)."""
        ids, epoch_ns = self.elements.norad_id, self.elements.epoch_time_ns
        touched = np.flatnonzero(self._any(is_touched))
        found = np.zeros(len(ids), np.bool_)
        for step in (1, -1):
            side = np.searchsorted(touched, np.arange(len(ids)), side="left" if step > 0 else "right") - (step < 0)
            is_there = (side >= 0) & (side < len(touched))
            other = touched[np.where(is_there, side, 0)] if len(touched) else np.zeros(len(ids), np.int64)
            is_close = np.abs(epoch_ns - epoch_ns[other]) <= HISTORY_NS
            found |= is_there & (ids == ids[other]) & is_close
        return found

    def held(self, is_judged: BoolArray) -> dict[int, dict[str, Any]]:
        """Return what is known of each of the judged orbits that is held, by its place."""
        planned = np.flatnonzero(is_judged & self.is_possible & self.is_planned)
        planned = planned[has_witness_before(self.elements, self.is_witness, planned)]
        reasons: dict[int, dict[str, Any]] = dict.fromkeys(planned.tolist(), _because(PLANNED))
        reasons |= dict.fromkeys(np.flatnonzero(is_judged & ~self.is_possible).tolist(), _because(IMPLAUSIBLE))
        found = contradictions(self.elements, self.is_witness, is_judged & self.is_possible & ~self.is_planned)
        epochs_ns = self.elements.epoch_time_ns[found.reference]
        measured = zip(epochs_ns.tolist(), found.score.tolist(), *found.deviation_km.T.tolist(), strict=True)
        for row, kind, values in zip(found.row.tolist(), found.kind.tolist(), measured, strict=True):
            reason = KINDS[kind] if self._is_observed[row] else PLANNED
            reasons[row] = {"reason": reason, **dict(zip(_MEASURED, values, strict=True))}
        return reasons


def _because(reason: str) -> dict[str, Any]:
    return {"reason": reason, **dict.fromkeys(_MEASURED)}
