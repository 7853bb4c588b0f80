"""The queries by which a layout is judged: those that people ran, and generated ones where these are few.

`sda query` and `sda sql` record the conditions of each query, in ``<lake>/_queries.jsonl``; the newest 5,000 are kept.
Those on Spark have the audit of their plan (`archive.plan_audit`).

Generated queries have the coverage that published query logs show (DL3): a time window in 95 % of them, 0.7 to 3 % of
the table's time; one object or sensor in 30 %; a condition on another numbered column in 15 %.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from sda_platform.archive.pruning import Bounds, Condition, Predicate, all_of, predicate_of
from sda_platform.lake import durable
from sda_platform.lake.storage import location
from sda_platform.lake.table import COMMIT_SEQUENCE, Table

MOST_RECORDED = 5_000
_WINDOW_COVERAGE, _OBJECT_COVERAGE, _OTHER_COVERAGE = 0.95, 0.30, 0.15
_WINDOW_SHARES = (0.007, 0.03)
_OBJECTS = ("norad_id", "norad_id_1", "satellite_id")


@dataclass(frozen=True)
class LoggedQuery:
    """The conditions of one query on one table, where it comes from, and the audit of its plan as JSON has it."""

    table: str
    predicate: Predicate
    source: Literal["recorded", "generated"]
    plan: Mapping[str, Any] | None = None


class QueryLog:
    """The recorded queries of the lake at ``lake_uri``."""

    def __init__(self, lake_uri: str) -> None:
        self._file = location(lake_uri) / "_queries.jsonl"

    def read(self) -> list[LoggedQuery]:
        """The recorded queries, oldest first; lines that are damaged are left out."""
        return list(self._entries())

    def record(self, queries: Sequence[LoggedQuery], plan: Mapping[str, Any] | None = None) -> None:
        """Add ``queries``, with the audit of the plan of all. Of two processes that record at once, one may lose its
        entry."""
        newest = [*self._entries(), *(replace(each, plan=plan) for each in queries)][-MOST_RECORDED:]
        lines = (json.dumps(_to_dict(each)) for each in newest)
        durable.write(self._file, "".join(f"{line}\n" for line in lines).encode())

    def _entries(self) -> Iterator[LoggedQuery]:
        try:
            lines = self._file.read_text().splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                facts = json.loads(line)
                yield LoggedQuery(facts["table"], predicate_of(facts["predicate"]), "recorded", facts.get("plan"))
            except (ValueError, KeyError, TypeError):
                continue


def _to_dict(query: LoggedQuery) -> dict[str, Any]:
    facts = {"table": query.table, "predicate": query.predicate.to_dict()}
    return facts if query.plan is None else {**facts, "plan": query.plan}


def generated(table: Table, bounds: Bounds, count: int, seed: int = 1) -> list[LoggedQuery]:
    """``count`` queries of ``table``, whose files have these ``bounds``; the same for the same seed."""
    chance = random.Random(f"{seed}/{table.name}")
    return [LoggedQuery(table.name, _predicate(chance, table, bounds), "generated") for _ in range(count)]


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
