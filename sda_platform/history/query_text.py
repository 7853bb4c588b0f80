"""An SQL text as DuckDB's own parser reads it, and what it may not refer to.

DuckDB reads the files of the lake itself. A query may read them by the views of a pinned version alone: a file can hold
rows that are not part of it.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from sda_platform.history.errors import QueryRefused
from sda_platform.history.query_views import SCHEMAS

_FUNCTIONS = {"generate_series", "json_each", "json_tree", "range", "repeat", "unnest"}
"""Functions that make rows and read no file and no table, in a FROM clause."""
_IN_FILE_NAMES = {".", "/"}
_SCHEMAS = [
    [*catalogue, schema]
    for catalogue in ([], ["memory"])
    for schema in ("main", *SCHEMAS, "information_schema", "pg_catalog")
]
"""What may be before the name of a table. DuckDB reads a file in place of a table that it does not know, if all parts
of the name, joined by dots, have the ending of a format."""


def parsed_query(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    """``sql`` as objects and lists; of what is not a SELECT, the error."""
    ((text,),) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    return json.loads(text)


def refuse_files(parsed: Any) -> None:
    """Raise QueryRefused if a parsed query reads anything but tables and the functions above, or is no query."""
    if parsed.get("error"):
        raise QueryRefused(f"a query is one SELECT statement: {parsed['error_message']}")
    for node in nodes(parsed):
        if node.get("type") == "TABLE_FUNCTION":
            function = str(node["function"].get("function_name", "this")).lower()
            if function not in _FUNCTIONS:
                allowed = ", ".join(sorted(_FUNCTIONS))
                raise QueryRefused(f"a query reads tables; {function} is disabled, of such functions it has {allowed}")
        if node.get("type") == "BASE_TABLE":
            *within, name = node["qualified_name"]["path"]
            if _IN_FILE_NAMES & set(name) or (within and [part.lower() for part in within] not in _SCHEMAS):
                raise QueryRefused(f"a query reads tables; {'.'.join((*within, name))!r} is the name of a file")


def names(parsed: Any) -> Iterator[str]:
    """Yield the names of tables, functions and common table expressions, each time that one occurs."""
    for node in nodes(parsed):
        if node.get("type") == "BASE_TABLE":
            yield str(node["table_name"]).lower()
        if "function_name" in node:
            yield str(node["function_name"]).lower()
        for entry in (node.get("cte_map") or {}).get("map", ()):
            yield str(entry["key"]).lower()


def nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every object in a parsed text."""
    if isinstance(value, dict):
        yield value
        value = value.values()
    elif not isinstance(value, list):
        return
    for each in value:
        yield from nodes(each)
