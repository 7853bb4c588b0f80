"""Ephemerides as states of an assessment: the best one that covers a time, inside its usable span.

An operator's newest one is best, because it has the planned manoeuvres. If it states no covariance, an earlier one on
the same path that has one is better. `refined_ephemerides` has our own ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from sda_platform.arrays import FloatArray, IntArray
from sda_platform.catalog.tables import BY_DEFAULT, EPHEMERIDES, EPHEMERIS_COLUMNS
from sda_platform.conjunction.creation_times import reported_ns
from sda_platform.conjunction.state_choice import EARLIER_DEPARTS, NEWER_WITHOUT_COVARIANCE
from sda_platform.formats.markings import UNMARKED, Marking
from sda_platform.lake.lake import Lake
from sda_platform.lake.planning import Plan
from sda_platform.lake.table import COMMIT_SEQUENCE
from sda_platform.orbits.ephemerides import Ephemeris

NONE: Final = -1
OPERATOR_EPHEMERIS: Final = "operator_ephemeris"
ASSUMED_EPHEMERIS: Final = "operator_ephemeris_assumed_covariance"
"""An operator's ephemeris without covariances: those of the default growth count."""
OF_OPERATORS: Final = (OPERATOR_EPHEMERIS, ASSUMED_EPHEMERIS)
AGREEING_SIGMAS: Final = 3.0
"""Two paths are the same within so many sigmas of their difference."""
_ROUNDING_KM2: Final = 1e-6  # messages round to about a metre
_COMPARED: Final = 100


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
    markings: tuple[Marking, ...] = ()
    """(k,) what marks the data of each; none: not known of any."""
    choices: Mapping[int, str] = field(default_factory=dict)
    """Why an ephemeris ranks as it does, of `state_choice`, by its number, where its rank is not that of its age."""

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]]) -> OperatorEphemerides:
        """From rows of `ephemerides` with EPHEMERIS_COLUMNS and without an error, in any order."""
        usable = sorted((row for row in rows if row["norad_id"] and row["covariance_time_ns"]), key=_rank)
        pieces = [(row, piece) for row in usable for piece in Ephemeris.pieces_of(row)]
        return cls(
            np.array([row["norad_id"] for row, _ in pieces], np.int64),
            np.array([reported_ns(row) for row, _ in pieces], np.int64),
            tuple(f"{row['segment_name']}:{row['record_number']}" for row, _ in pieces),
            tuple(piece for _, piece in pieces),
            tuple(
                ASSUMED_EPHEMERIS if row.get("covariance_source") == BY_DEFAULT else OPERATOR_EPHEMERIS
                for row, _ in pieces
            ),
            tuple(Marking.of(row) for row, _ in pieces),
        )

    @classmethod
    def none(cls) -> OperatorEphemerides:
        """Return an empty collection of ephemerides."""
        return cls.of([])

    def and_paths(self, others: OperatorEphemerides) -> OperatorEphemerides:
        """Combine these ephemerides with better ones.

        Where one of ``others`` states no covariance, its covariance is unknown, but not that of an earlier one on the
        same path. So the earlier one counts for the span that both cover.
        """
        both = OperatorEphemerides(
            np.concatenate([self.norad_id, others.norad_id]),
            np.concatenate([self.created_ns, others.created_ns]),
            (*self.ephemeris_id, *others.ephemeris_id),
            (*self.ephemerides, *others.ephemerides),
            (*self.source, *others.source),
            tuple(each.marking(n) for each in (self, others) for n in range(len(each.ephemerides))),
        )
        order, paths, created_ns = list[int](), list[Ephemeris](), list[int]()
        choices = dict[int, str]()
        for number, path in enumerate(both.ephemerides):
            is_assumed = number >= len(self.ephemerides) and both.source[number] == ASSUMED_EPHEMERIS
            stated = both._stated_before(number) if is_assumed else []
            confirmed = [(n, shared) for n, shared in stated if _is_same_path(path, shared)]
            if stated:
                at = len(order)
                choices |= dict.fromkeys(range(at + 1, at + 1 + len(confirmed)), NEWER_WITHOUT_COVARIANCE)
                choices |= {} if confirmed else {at: EARLIER_DEPARTS}
            for n, each in [(number, path), *confirmed]:
                order.append(n)
                paths.append(each)
                created_ns.append(int(both.created_ns[number]))  # a confirmed path holds as of the newer message
        return OperatorEphemerides(
            both.norad_id[order],
            np.array(created_ns, np.int64),
            tuple(both.ephemeris_id[n] for n in order),
            tuple(paths),
            tuple(both.source[n] for n in order),
            tuple(both.markings[n] for n in order),
            choices,
        )

    def marking(self, number: int) -> Marking:
        """Return what marks the data of an ephemeris."""
        return self.markings[number] if self.markings else UNMARKED

    def _stated_before(self, number: int) -> list[tuple[int, Ephemeris]]:
        """Return the earlier ephemerides of the same object that have a covariance, within the span of ``number``."""
        span, found = self.ephemerides[number], []
        for n in np.flatnonzero(self.norad_id[:number] == self.norad_id[number]).tolist():
            each = self.ephemerides[n]
            from_ns = max(each.usable_from_ns, span.usable_from_ns)
            until_ns = min(each.usable_until_ns, span.usable_until_ns)
            if self.source[n] != ASSUMED_EPHEMERIS and from_ns < until_ns:
                found.append((n, replace(each, usable_from_ns=from_ns, usable_until_ns=until_ns)))
        return found

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


def in_sigmas(apart_km: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return by how many sigmas positions ``apart_km`` (n, 3) differ, by covariances (n, 3, 3), km2; NaN if unknown."""
    found = np.full(len(apart_km), np.nan)
    known = np.isfinite(apart_km).all(axis=1) & np.isfinite(covariance).all(axis=(1, 2))
    scaled = np.linalg.solve(covariance[known] + _ROUNDING_KM2 * np.eye(3), apart_km[known, :, None])[:, :, 0]
    found[known] = np.sqrt(np.maximum(np.einsum("ni,ni->n", apart_km[known], scaled), 0.0))
    return found


def _is_same_path(newer: Ephemeris, stated: Ephemeris) -> bool:
    """Tell whether a path stays within the sigmas of one with covariances, in the usable span of the latter."""
    span_ns = stated.usable_until_ns - stated.usable_from_ns
    time_ns = stated.usable_from_ns + span_ns * np.arange(_COMPARED) // (_COMPARED - 1)
    state, covariance = stated.at(time_ns)
    apart_km = (newer.states(time_ns) - state)[:, :3]
    return bool(np.all(in_sigmas(apart_km, covariance[:, :3, :3]) <= AGREEING_SIGMAS))


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
    return row["norad_id"], reported_ns(row), row["received_time_ns"], row["segment_sha256"], row["record_number"]
