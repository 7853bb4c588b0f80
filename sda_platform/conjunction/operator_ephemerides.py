"""Ephemerides as states of an assessment: the best one that covers a time, inside its usable span.

An operator's newest one is best, because it has the planned manoeuvres. `refined_ephemerides` has our own ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.catalog.tables import BY_DEFAULT, EPHEMERIDES
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.ephemerides import Ephemeris

NONE: Final = -1
OPERATOR_EPHEMERIS: Final = "operator_ephemeris"
ASSUMED_EPHEMERIS: Final = "operator_ephemeris_assumed_covariance"
"""An operator's ephemeris without covariances: those of the default growth count."""
EPHEMERIS_COLUMNS: Final = (
    "norad_id", "created_time_ns", "received_time_ns", "segment_sha256", "segment_name", "record_number",
    "usable_from_ns", "usable_until_ns", "state_time_ns", "state", "covariance_time_ns", "covariance",
    "covariance_source",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class OperatorEphemerides:
    """The k ephemerides with a covariance that may be used, each later one better than those before of its object.

    One with gaps is several, one for each piece.
    """

    norad_id: IntArray
    created_ns: IntArray
    """(k,) when the message was created, or received if it has no creation date; of our own the newest window."""
    ephemeris_id: tuple[str, ...]
    ephemerides: tuple[Ephemeris, ...]
    source: tuple[str, ...]
    """(k,) what kind of state each gives: the names of `conjunction_assessments`."""

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]]) -> OperatorEphemerides:
        """From rows of `ephemerides` with EPHEMERIS_COLUMNS and without an error, in any order."""
        usable = sorted((row for row in rows if row["norad_id"] and row["covariance_time_ns"]), key=_rank)
        pieces = [(row, piece) for row in usable for piece in Ephemeris.pieces_of(row)]
        return cls(
            np.array([row["norad_id"] for row, _ in pieces], np.int64),
            np.array([_created_ns(row) for row, _ in pieces], np.int64),
            tuple(f"{row['segment_name']}:{row['record_number']}" for row, _ in pieces),
            tuple(piece for _, piece in pieces),
            tuple(
                ASSUMED_EPHEMERIS if row.get("covariance_source") == BY_DEFAULT else OPERATOR_EPHEMERIS
                for row, _ in pieces
            ),
        )

    @classmethod
    def none(cls) -> OperatorEphemerides:
        """Return an empty collection of ephemerides."""
        return cls.of([])

    def and_paths(self, others: OperatorEphemerides) -> OperatorEphemerides:
        """Combine these ephemerides with better ones."""
        return OperatorEphemerides(
            np.concatenate([self.norad_id, others.norad_id]),
            np.concatenate([self.created_ns, others.created_ns]),
            (*self.ephemeris_id, *others.ephemeris_id),
            (*self.ephemerides, *others.ephemerides),
            (*self.source, *others.source),
        )

    def covering(self, norad_id: IntArray, time_ns: IntArray) -> IntArray:
        """Return the number of the best ephemeris of each object (n,) whose usable span holds ``time_ns`` (n,), or
        NONE.
        """
        found = np.full(len(norad_id), NONE)
        for number in np.flatnonzero(np.isin(self.norad_id, norad_id)).tolist():
            each = self.ephemerides[number]
            is_inside = (time_ns >= each.usable_from_ns) & (time_ns <= each.usable_until_ns)
            found[(norad_id == self.norad_id[number]) & is_inside] = number
        return found

    def at(self, number: IntArray, time_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """States (n, 6) and covariances (n, 6, 6) by the ephemerides ``number`` (n,) at ``time_ns`` (n,).

        km and km/s, TEME; NaN for NONE, and outside of the usable span.
        """
        state, covariance = np.full((len(number), 6), np.nan), np.full((len(number), 6, 6), np.nan)
        for each, rows in self._used(number):
            state[rows], covariance[rows] = each.at(time_ns[rows])
        return state, covariance

    def states(self, number: IntArray, time_ns: IntArray) -> FloatArray:
        """Return the states of `at` alone, (n, 6)."""
        state = np.full((len(number), 6), np.nan)
        for each, rows in self._used(number):
            state[rows] = each.states(time_ns[rows])
        return state

    def within(self, number: IntArray, time_ns: IntArray) -> IntArray:
        """``time_ns`` (n,), moved into the usable spans of the ephemerides ``number`` (n,)."""
        moved = time_ns.copy()
        for each, rows in self._used(number):
            moved[rows] = np.clip(moved[rows], each.usable_from_ns, each.usable_until_ns)
        return moved

    def _used(self, number: IntArray) -> Iterator[tuple[Ephemeris, IntArray]]:
        """Each ephemeris that ``number`` (n,) names, and the rows that name it."""
        for each in np.unique(number[number != NONE]).tolist():
            yield self.ephemerides[each], np.flatnonzero(number == each)


def ephemerides_read(store: Lake, plan: Plan) -> OperatorEphemerides:
    """Return the ephemerides that the plan has consumed and that reach beyond its ``as_of``; read without the engine.

    None where the plan repeats a commit of a version that did not consume them.
    """
    window = next((each for each in plan.windows if each.table == EPHEMERIDES.name), None)
    if window is None or not window.upto_sequence:
        return OperatorEphemerides.none()
    is_read = ds.field(COMMIT_SEQUENCE) <= window.upto_sequence
    is_usable = ds.field("error_kind").is_null() & (ds.field("usable_until_ns") > plan.as_of_ns)
    return OperatorEphemerides.of(store.log(EPHEMERIDES).rows(EPHEMERIS_COLUMNS, is_read & is_usable).to_pylist())


def objects_with_new_ephemerides(store: Lake, plan: Plan) -> list[int]:
    """Return the objects of the ephemerides in the plan's window."""
    if not any(each.table == EPHEMERIDES.name for each in plan.windows):
        return []
    ids: pa.ChunkedArray = store.new_rows(plan, EPHEMERIDES, ["norad_id"]).column("norad_id")
    return sorted({number for number in ids.to_pylist() if number})


def _rank(row: dict[str, Any]) -> tuple[Any, ...]:
    """The newest message counts; equal ones by arrival, then by what they are, so that no order of arrival matters."""
    return row["norad_id"], _created_ns(row), row["received_time_ns"], row["segment_sha256"], row["record_number"]


def _created_ns(row: dict[str, Any]) -> int:
    return int(row["received_time_ns"] if row["created_time_ns"] is None else row["created_time_ns"])
