"""Whose turn it is to be refined: objects of interest first, and every object some time. Arrow in, Arrow out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sda_platform.arrays import IntArray
from sda_platform.lake.manifest import CommitManifest
from sda_platform.units import SECOND_NS

TOGETHER_NS = 600 * SECOND_NS
"""Smallest interval of turns, mission time: screening one product costs almost as much as screening many."""
_OF_OTHERS = 4
"""One in so many places of a turn is for the other objects while any wait, so that each of them gets one."""


@dataclass(frozen=True)
class Turn:
    """When tracks were refined last, mission time, and the catalogue numbers up to which: of both kinds of objects."""

    at_ns: int = 0
    first_number: int = 0
    other_number: int = 0

    @classmethod
    def of(cls, manifest: CommitManifest | None) -> Turn:
        """Read the turn from the counts of a commit of the table."""
        counts = manifest.counts if manifest else {}
        return cls(counts.get("turn_ns", 0), counts.get("turn_first_number", 0), counts.get("turn_number", 0))

    def counts(self) -> dict[str, int]:
        """Among the counts of the next commit."""
        return {"turn_ns": self.at_ns, "turn_first_number": self.first_number, "turn_number": self.other_number}

    def next(self, due: pa.Table, first: Collection[int], at_once: int, as_of_ns: int) -> tuple[pa.Table, Turn]:
        """Return the ``due`` tracks (with ``norad_id``) whose turn it is, at most ``at_once``, and the turn after it.

        Objects of ``first`` have three places of four, the others the rest; either takes what the other leaves. Each
        kind goes by catalogue number, from where it was on, and round again. None while the last turn is recent.
        """
        if as_of_ns - self.at_ns < TOGETHER_NS or not due.num_rows:
            return due.slice(0, 0), self
        numbers = due["norad_id"].to_numpy()
        is_first = np.isin(numbers, np.fromiter(first, np.int64, len(first)))
        ours, others = _from(numbers, is_first, self.first_number), _from(numbers, ~is_first, self.other_number)
        count = min(len(ours), at_once - min(len(others), max(at_once // _OF_OTHERS, 1)))
        ours, others = ours[:count], others[: at_once - count]
        after = Turn(as_of_ns, _last(numbers[ours], self.first_number), _last(numbers[others], self.other_number))
        return due.take(pa.array(np.concatenate([ours, others]))), after


def _from(numbers: IntArray, chosen: np.ndarray, after_number: int) -> IntArray:
    """Return the positions of the chosen numbers, from the first one above ``after_number`` on, and round again."""
    rows = np.flatnonzero(chosen)
    return rows[np.lexsort((numbers[rows], numbers[rows] <= after_number))]


def _last(numbers: IntArray, before: int) -> int:
    return int(numbers[-1]) if len(numbers) else before
