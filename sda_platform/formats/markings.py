"""Markings of data, classification and data mode, and the marking of what follows from marked data."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from sda_platform.arrays import IntArray

if TYPE_CHECKING:
    import pyarrow as pa

UNCLASSIFIED, CONFIDENTIAL, SECRET = CLASSIFICATIONS = ("U", "C", "S")
"""Classifications, the lowest first. A text of another scheme may be higher than all, so it stays beside them."""
REAL, TEST, SIMULATED, EXERCISE = DATA_MODES = ("REAL", "TEST", "SIMULATED", "EXERCISE")
"""What data is of, as UDL names it."""
MARKS: Final = ("classification", "data_mode")
"""The columns of a marking."""
_WORDS: Final = {"UNCLASSIFIED": UNCLASSIFIED, "CONFIDENTIAL": CONFIDENTIAL, "SECRET": SECRET}
_TITLES: Final = ("CLASSIFICATION", "DATA MODE")
_AND: Final = " + "


class Marking(NamedTuple):
    """What marks data. None: not known, which is not unclassified or real; of a statement: it states none."""

    classification: str | None = None
    data_mode: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any], suffix: str = "") -> Self:
        """Return the marking in the columns of ``row`` that end with ``suffix``."""
        return cls(*(row.get(f"{name}{suffix}") for name in MARKS))

    def columns(self, suffix: str = "") -> dict[str, str | None]:
        """Return the marking as columns that end with ``suffix``."""
        return {f"{name}{suffix}": mark for name, mark in zip(MARKS, self, strict=True)}

    @property
    def shown(self) -> str:
        """What a reader must see: the marks that are known, and not unclassified or real; empty: there is none."""
        return ", ".join(mark for mark in self if mark not in (None, UNCLASSIFIED, REAL))

    def comments(self) -> list[str]:
        """Return the same as comments of a message whose standard has no keyword; `stated_in` reads them."""
        marks = zip(_TITLES, self, strict=True)
        return [f"{title}: {mark}" for title, mark in marks if mark not in (None, UNCLASSIFIED, REAL)]


UNMARKED: Final = Marking()


def of_pair(row: Mapping[str, Any]) -> list[Marking]:
    """Return what marks the data of both objects of a conjunction, in columns that end with their numbers."""
    return [Marking.of(row, f"_{number}") for number in (1, 2)]


def highest(markings: Iterable[Marking]) -> Marking:
    """Return the marking of what follows from data with all of these ``markings``.

    It has the highest classification and every data mode that is not real. Where nothing is above unclassified or real,
    but a mark is not known, that of the result is not known.
    """
    return _highest(tuple(markings))


def of_event(assessment: Mapping[str, Any], *alerts: Mapping[str, Any]) -> Marking:
    """Return what marks a conjunction: the data of both states, and what rows of its alert rest on."""
    return highest([*of_pair(assessment), *map(Marking.of, alerts)])


def of_groups(rows: "pa.Table", group: IntArray, count: int) -> list[Marking]:
    """Return the marking of what follows from each of ``count`` groups of rows with MARKS.

    ``group`` (n,) has the number of each row's group. Columns that the rows lack are not known.
    """
    found: list[set[tuple[str | None, ...]]] = [set() for _ in range(count)]
    stated = [rows[name] if name in rows.column_names else None for name in MARKS]
    if any(column is not None and column.null_count < rows.num_rows for column in stated):
        texts = ([None] * rows.num_rows if column is None else column.to_pylist() for column in stated)
        for number, marks in zip(group.tolist(), zip(*texts, strict=True), strict=True):
            found[number].add(marks)
    return [highest(Marking(*marks) for marks in each) for each in found]


def of_rows(rows: "pa.Table") -> Marking:
    """Return the marking of what follows from all rows, as `of_groups`."""
    return of_groups(rows, np.zeros(rows.num_rows, np.int64), 1)[0]


@lru_cache(maxsize=4096)
def _highest(markings: tuple[Marking, ...]) -> Marking:
    classifications, modes = zip(*markings, strict=True) if markings else ((), ())
    return Marking(_joined(classifications, CLASSIFICATIONS), _joined(modes, (REAL,)))


def _joined(marks: tuple[str | None, ...], scale: tuple[str, ...]) -> str | None:
    """Join marks: of those on the ``scale`` the highest counts, others stay beside it."""
    known = {part for mark in marks if mark for part in mark.split(_AND)}
    on_scale = max((mark for mark in known if mark in scale), key=scale.index, default=None)
    above = sorted(known - set(scale))
    if on_scale == scale[0] or on_scale is None:
        return _AND.join(above) or (None if None in marks else on_scale)
    return _AND.join([on_scale, *above])


def stated(markings: Iterable[Marking]) -> Marking:
    """Return the marking of one piece of data by several statements, such as its own and its source's.

    A statement that is absent takes nothing from the others.
    """
    return _stated(tuple(markings))


@lru_cache(maxsize=4096)
def _stated(markings: tuple[Marking, ...]) -> Marking:
    classifications, modes = (tuple(mark for mark in marks if mark) for marks in zip(UNMARKED, *markings, strict=True))
    return Marking(_joined(classifications, CLASSIFICATIONS), _joined(modes, (REAL,)))


def classification_of(text: str | None) -> str | None:
    """Return a classification as a message words it: U, C or S for these and their words, else its own text."""
    words = " ".join((text or "").split())
    letter = _WORDS.get(words.upper(), words.upper())
    return letter if letter in CLASSIFICATIONS else words or None


def stated_in(comments: Iterable[str]) -> Marking:
    """Return the marking that comments of a message state, in the form that `Marking.comments` has."""
    found = {title.strip().upper(): text.strip() for title, _, text in (each.partition(":") for each in comments)}
    mode = found.get(_TITLES[1], "").upper()
    return Marking(classification_of(found.get(_TITLES[0])), mode if are_data_modes(mode) else None)


def are_data_modes(text: str) -> bool:
    """Return whether a text is one of DATA_MODES, or several as `highest` joins them."""
    return {*text.upper().split(_AND)} <= {*DATA_MODES}
