"""Queries with the coverage that published query logs show, and the share of a table's files that each keeps (DL3).

A time window in 95 % of them, 0.7 to 3 % of the table's time; one object or sensor in 30 %; a condition on another
numbered column in 15 %. Files are those that a planner keeps by the bounds in the log.
"""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.history.pruning import Bounds, Condition, Predicate, all_of, may_match
from sda_platform.lake.log import TableLog
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

_WINDOW_COVERAGE, _OBJECT_COVERAGE, _OTHER_COVERAGE = 0.95, 0.30, 0.15
_WINDOW_SHARES = (0.007, 0.03)
_OBJECTS = ("norad_id", "norad_id_1", "satellite_id")


def shares_kept(log: TableLog, count: int, seed: int = 1) -> np.ndarray:
    """The share of its files that each of ``count`` queries keeps, shape (count,); the same for the same seed."""
    bounds = log.file_bounds()
    return np.array([may_match(bounds, query).mean() for query in generated(log.table, bounds, count, seed)])


def generated(table: Table, bounds: Bounds, count: int, seed: int) -> Iterator[Predicate]:
    """``count`` queries of ``table``, whose files have these ``bounds``."""
    chance = random.Random(f"{seed}/{table.name}")
    return (_predicate(chance, table, bounds) for _ in range(count))


def _predicate(chance: random.Random, table: Table, bounds: Bounds) -> Predicate:
    numbered = [name for name in table.bounded_columns if name not in (COMMIT_SEQUENCE, table.time_column)]
    objects = [name for name in numbered if name in _OBJECTS]
    parts: list[Condition] = []
    if chance.random() < _WINDOW_COVERAGE and (span := _range(bounds, table.time_column)):
        width = round((span[1] - span[0]) * chance.uniform(*_WINDOW_SHARES))
        begin = chance.randint(span[0], max(span[1] - width, span[0]))
        parts += [Condition(table.time_column, ">=", begin), Condition(table.time_column, "<", begin + max(width, 1))]
    for names, coverage in ((objects, _OBJECT_COVERAGE), (numbered, _OTHER_COVERAGE)):
        if names and chance.random() < coverage:
            name = chance.choice(names)
            if span := _range(bounds, name):
                parts.append(Condition(name, "=", chance.randint(*span)))
    return all_of(*parts)


def _range(bounds: Bounds, column: str) -> tuple[int, int] | None:
    """The least and greatest value of a column over all files; None where they are not known."""
    ends: list[Any] = []
    for end, chosen in (("min", pc.min), ("max", pc.max)):
        name = f"{end}.{column}"
        values = bounds.column(name) if name in bounds.schema.names else pa.nulls(0)
        ends.append(chosen(values).as_py() if len(values) and pa.types.is_integer(values.type) else None)
    return (ends[0], ends[1]) if None not in ends else None
