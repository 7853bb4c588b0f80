"""The conditions on tables in an SQL text, by DuckDB's own parser: what a planner can pass files over with.

Conditions that compare a column with constants are understood. Of a conjunction the other parts are left out, so the
planner reads more than the engine may; a disjunction with such a part is left out as a whole.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from sda_platform.archive.pruning import Combination, Condition, Op, Predicate, all_of
from sda_platform.archive.query_log import LoggedQuery
from sda_platform.lake.table import Table

_OPS: Mapping[str, Op] = {
    "COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "!=", "COMPARE_LESSTHAN": "<", "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">", "COMPARE_GREATERTHANOREQUALTO": ">=", "COMPARE_IN": "in",
    "OPERATOR_IS_NULL": "is null", "OPERATOR_IS_NOT_NULL": "is not null",
}  # fmt: skip
_MIRRORED: Mapping[str, Op] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


class _Unclear(Exception):
    """A part of a condition that compares no column with a constant."""


def conditions_in(sql: str, tables: Mapping[str, Table]) -> list[LoggedQuery]:
    """For each SELECT in ``sql`` from one of ``tables`` alone, its conditions; none where it cannot be parsed."""
    with duckdb.connect(config={"enable_external_access": "false"}) as connection:
        (text,) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchone() or ("{}",)
    return [
        LoggedQuery(table.name, _understood(node.get("where_clause"), table), "recorded")
        for node in _selects(json.loads(text))
        if (table := tables.get(_source(node))) is not None
    ]


def _selects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every SELECT below a parsed text, those of subqueries included."""
    if isinstance(value, dict):
        if value.get("type") == "SELECT_NODE":
            yield value
        for each in value.values():
            yield from _selects(each)
    elif isinstance(value, list):
        for each in value:
            yield from _selects(each)


def _source(node: Mapping[str, Any]) -> str:
    """The table that a SELECT reads; the views of schema ``active`` read a table as a whole."""
    source = node.get("from_table") or {}
    is_table = source.get("type") == "BASE_TABLE" and not source.get("schema_name")
    return str(source.get("table_name")) if is_table else ""


def _understood(node: Any, table: Table) -> Predicate:
    """The parts of a conjunction that are understood."""
    if not node:
        return all_of()
    if node["type"] == "CONJUNCTION_AND":
        return all_of(*(_understood(child, table) for child in node["children"]))
    try:
        return _predicate(node, table)
    except _Unclear:
        return all_of()


def _predicate(node: Mapping[str, Any], table: Table) -> Predicate:
    kind = node["type"]
    if kind == "CONJUNCTION_OR":
        return Combination("or", tuple(_predicate(child, table) for child in node["children"]))
    if kind == "CONJUNCTION_AND":
        return all_of(*(_predicate(child, table) for child in node["children"]))
    if kind == "COMPARE_BETWEEN":
        column = _column(node["input"], table)
        return all_of(
            Condition(column, ">=", _constant(node["lower"])), Condition(column, "<=", _constant(node["upper"]))
        )
    if kind not in _OPS:
        raise _Unclear
    op = _OPS[kind]
    if op in ("in", "is null", "is not null"):
        first, *others = node["children"]
        return Condition(_column(first, table), op, _constants(others) or None)
    return _comparison(node["left"], op, node["right"], table)


def _comparison(left: Mapping[str, Any], op: Op, right: Mapping[str, Any], table: Table) -> Condition:
    if left["type"] == "COLUMN_REF":
        return Condition(_column(left, table), op, _constant(right))
    return Condition(_column(right, table), _MIRRORED[op], _constant(left))


def _column(node: Mapping[str, Any], table: Table) -> str:
    name = str(node["column_names"][-1]) if node["type"] == "COLUMN_REF" else ""
    if name not in table.arrow_schema.names:
        raise _Unclear
    return name


def _constants(nodes: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [_constant(node) for node in nodes]


def _constant(node: Mapping[str, Any]) -> Any:
    literal = node.get("literal") or {}
    if literal.get("kind") == "INTEGER":
        return int(literal["text"])
    if literal.get("kind") == "STRING":
        return str(literal["text"])
    raise _Unclear
