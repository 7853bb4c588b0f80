"""Which files and row groups a query must read, by their bounds alone: a planner that is independent of the engines.

A unit (a file or a row group) may be passed over only if no row of it can match. Missing bounds mean "read", and so do
floating-point columns, whose bounds leave NaN out. Comparisons with null match nothing, as in SQL.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Op = Literal["=", "!=", "<", "<=", ">", ">=", "in", "is null", "is not null"]
Kept: TypeAlias = npt.NDArray[np.bool_]
ROWS = "num_records"
"""Column of `Bounds` with the rows of each unit; its other columns are ``min.NAME``, ``max.NAME``, ``null_count.NAME``,
as delta-rs names them."""
Bounds: TypeAlias = pa.Table


@dataclass(frozen=True)
class Condition:
    """A comparison of a column with a constant; for ``in`` with several, for the tests of null with none."""

    column: str
    op: Op
    value: Any = None

    def __str__(self) -> str:
        return f"{self.column} {self.op}{'' if self.op.startswith('is') else f' {self.value}'}"


@dataclass(frozen=True)
class Combination:
    """``and`` or ``or`` over parts; without parts ``and`` is true, and ``or`` is false."""

    op: Literal["and", "or"]
    parts: Sequence["Predicate"]

    def __str__(self) -> str:
        return f"({f' {self.op} '.join(map(str, self.parts))})" if self.parts else self.op


Predicate: TypeAlias = Condition | Combination


def all_of(*parts: Predicate) -> Combination:
    """True where every part is; parts that are always true are left out."""
    return Combination("and", tuple(part for part in parts if part != Combination("and", ())))


def may_match(bounds: Bounds, predicate: Predicate) -> Kept:
    """Tell of each unit whether one of its rows may satisfy ``predicate``; shape (units,)."""
    if isinstance(predicate, Condition):
        return _condition(bounds, predicate)
    parts = [may_match(bounds, part) for part in predicate.parts]
    start = np.full(bounds.num_rows, predicate.op == "and")
    combine: Callable[[Kept, Kept], Kept] = np.logical_and if predicate.op == "and" else np.logical_or
    for part in parts:
        start = combine(start, part)
    return start


def _condition(bounds: Bounds, condition: Condition) -> Kept:
    least, greatest = (_column(bounds, f"{end}.{condition.column}") for end in ("min", "max"))
    nulls, rows = _column(bounds, f"null_count.{condition.column}"), bounds.column(ROWS)
    # Only the absence of a column is unknown: a column of a commit without rows is empty, and so false as a condition.
    if condition.op == "is null":
        return _kept(None if nulls is None else pc.greater(nulls, 0), bounds.num_rows)
    has_values = _kept(None if nulls is None else pc.less(nulls, rows), bounds.num_rows)
    if condition.op == "is not null" or least is None or greatest is None:
        return has_values
    if not _is_of_kind(least.type, condition.value if condition.op == "in" else [condition.value]):
        return has_values
    return has_values & _kept(_RULES[condition.op](least, greatest, condition.value), bounds.num_rows)


def _is_of_kind(kind: pa.DataType, constants: Iterable[Any]) -> bool:
    """Return whether all ``constants`` compare with a column of this type as in SQL; of others the engine decides."""
    if pa.types.is_integer(kind):
        return all(type(each) is int and abs(each) < 2**63 for each in constants)
    return pa.types.is_string(kind) and all(isinstance(each, str) for each in constants)


def _column(bounds: Bounds, name: str) -> pa.ChunkedArray | None:
    return bounds.column(name) if name in bounds.schema.names else None


def _kept(answer: pa.ChunkedArray | None, units: int) -> Kept:
    """An answer as booleans; what is not known is true."""
    if answer is None:
        return np.ones(units, bool)
    return np.asarray(pc.fill_null(answer, True).to_numpy(), bool)


def _one_of(least: pa.ChunkedArray, greatest: pa.ChunkedArray, values: Iterable[Any]) -> pa.ChunkedArray:
    found = pa.chunked_array([pa.repeat(False, len(least))])
    for value in values:
        found = pc.or_kleene(found, _equal(least, greatest, value))
    return found


def _equal(least: pa.ChunkedArray, greatest: pa.ChunkedArray, value: Any) -> pa.ChunkedArray:
    return pc.and_kleene(pc.less_equal(least, value), pc.greater_equal(greatest, value))


_Rule: TypeAlias = Callable[[pa.ChunkedArray, pa.ChunkedArray, Any], pa.ChunkedArray]
_RULES: Mapping[str, _Rule] = {
    "=": _equal,
    "!=": lambda least, greatest, v: pc.or_kleene(pc.not_equal(least, v), pc.not_equal(greatest, v)),
    "<": lambda least, _greatest, v: pc.less(least, v),
    "<=": lambda least, _greatest, v: pc.less_equal(least, v),
    ">": lambda _least, greatest, v: pc.greater(greatest, v),
    ">=": lambda _least, greatest, v: pc.greater_equal(greatest, v),
    "in": _one_of,
    "is null": lambda least, _greatest, _v: pc.is_valid(least),
    "is not null": lambda least, _greatest, _v: pc.is_valid(least),
}
