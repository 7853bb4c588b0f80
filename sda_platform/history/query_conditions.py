"""The conditions on tables in an SQL text, by DuckDB's own parser: what a planner can pass files over with.

Conditions that compare a column with constants are understood. Of a conjunction the other parts are left out, so the
planner reads more than the engine may; a disjunction with such a part is left out as a whole.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sda_platform.history.pruning import Combination, Condition, Op, Predicate, all_of
from sda_platform.history.query_text import names, nodes
from sda_platform.lake.table import Table

_OPS: Mapping[str, Op] = {
    "COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "!=", "COMPARE_LESSTHAN": "<", "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">", "COMPARE_GREATERTHANOREQUALTO": ">=", "COMPARE_IN": "in",
    "OPERATOR_IS_NULL": "is null", "OPERATOR_IS_NOT_NULL": "is not null",
}  # fmt: skip
_MIRRORED: Mapping[str, Op] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


@dataclass(frozen=True)
class _Columns:
    """The columns of a table under the name that a SELECT gives it."""

    table: Table
    alias: str

    def name_of(self, node: Mapping[str, Any]) -> str:
        """Return the column that ``node`` refers to. Raises _Unclear; in a subquery it can be one of another table."""
        parts = node["column_names"] if node["type"] == "COLUMN_REF" else ("",)
        *qualifier, name = (part.lower() for part in parts)
        known = self.alias.lower() or self.table.name
        if name not in self.table.arrow_schema.names or (qualifier and qualifier != [known]):
            raise _Unclear
        return str(name)


class _Unclear(Exception):
    """A part of a condition that compares no column with a constant."""


def necessary_conditions(parsed: Any, tables: Mapping[str, Table]) -> dict[str, Predicate]:
    """Find by table a condition that all rows satisfy on which the result of a parsed query depends.

    A table is left out if anything but a SELECT from it alone refers to its name.
    """
    found = defaultdict[str, list[Predicate]](list)
    for name, condition in _conditions(parsed, tables):
        found[name].append(condition)
    times = Counter(names(parsed))
    return {name: Combination("or", tuple(each)) for name, each in found.items() if times[name] == len(each)}


def _conditions(parsed: Any, tables: Mapping[str, Table]) -> Iterator[tuple[str, Predicate]]:
    for node in nodes(parsed):
        if node.get("type") == "SELECT_NODE" and (table := tables.get(_source(node))) is not None:
            yield (
                table.name,
                _understood(node.get("where_clause"), _Columns(table, node["from_table"].get("alias", ""))),
            )


def _source(node: Mapping[str, Any]) -> str:
    """Return the table that a SELECT reads under its own columns; the views of schema ``active`` read a table as a
    whole.
    """
    source = node.get("from_table") or {}
    is_table = source.get("type") == "BASE_TABLE" and not source.get("schema_name")
    is_changed = source.get("column_name_alias") or source.get("sample") or node.get("sample")
    return str(source.get("table_name")).lower() if is_table and not is_changed else ""


def _understood(node: Any, columns: _Columns) -> Predicate:
    """Return the parts of a conjunction that are understood."""
    if not node:
        return all_of()
    if node["type"] == "CONJUNCTION_AND":
        return all_of(*(_understood(child, columns) for child in node["children"]))
    try:
        return _predicate(node, columns)
    except _Unclear:
        return all_of()


def _predicate(node: Mapping[str, Any], columns: _Columns) -> Predicate:
    kind = node["type"]
    if kind == "CONJUNCTION_OR":
        return Combination("or", tuple(_predicate(child, columns) for child in node["children"]))
    if kind == "CONJUNCTION_AND":
        return all_of(*(_predicate(child, columns) for child in node["children"]))
    if kind == "COMPARE_BETWEEN":
        column = columns.name_of(node["input"])
        return all_of(
            Condition(column, ">=", _constant(node["lower"])), Condition(column, "<=", _constant(node["upper"]))
        )
    if kind not in _OPS:
        raise _Unclear
    op = _OPS[kind]
    if op in ("in", "is null", "is not null"):
        first, *others = node["children"]
        return Condition(columns.name_of(first), op, _constants(others) or None)
    return _comparison(node["left"], op, node["right"], columns)


def _comparison(left: Mapping[str, Any], op: Op, right: Mapping[str, Any], columns: _Columns) -> Condition:
    if left["type"] == "COLUMN_REF":
        return Condition(columns.name_of(left), op, _constant(right))
    return Condition(columns.name_of(right), _MIRRORED[op], _constant(left))


def _constants(nodes: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [_constant(node) for node in nodes]


def _constant(node: Mapping[str, Any]) -> Any:
    literal = node.get("literal") or {}
    if literal.get("kind") == "INTEGER":
        return int(literal["text"])
    if literal.get("kind") == "STRING":
        return str(literal["text"])
    raise _Unclear
