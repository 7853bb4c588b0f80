"""What a query on Spark may call: functions of an allow-list, by the text of the query.

Spark's SQL can call methods of Java, pipe rows through a command, and load files of descriptors, with the rights of the
engine. Spark Connect has no parser without planning, so the text is split into words here. Where this could misread a
text, the text is refused.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from pyspark.sql import functions

from sda_platform.history.errors import QueryRefused

_TOKENS: Final = re.compile(
    r"""(?P<skipped>\s+|--[^\n]*|/\*.*?\*/|[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    r"""|`(?P<quoted>(?:[^`]|``)*)`|(?P<word>\w+)|(?P<sign>.)""",
    re.DOTALL,
)
_WITH_EMPTY: Final = re.compile(
    _TOKENS.pattern.replace(r"(?P<word>\w+)", r"(?P<word>(?<!\.)\b\w+)(?P<empty>\s*\(\s*\))?"), re.DOTALL
)
_TODAY: Final = ("current_date", "curdate")
_WITHOUT_PARENTHESES: Final = frozenset({"current_timestamp", "current_date", "localtimestamp"})
_NOW: Final = ("now", "current_timestamp", "localtimestamp")
# In a string, a comment or an alias they are refused, too: a query about satellites has no use for these words.
_ON_SIGHT: Final = re.compile(
    r"\b(try_reflect|reflect|java_method|call_udf|call_function)\b|/\*.*/\*", re.IGNORECASE | re.DOTALL
)
_SCRIPT: Final = re.compile(r"\busing\b(?!\s*\()", re.IGNORECASE)
_NOT_CALLED: Final = frozenset({"arrow_udf", "call_function", "call_udf", "java_method", "pandas_udf", "reflect",
                                "try_reflect", "udf", "udtf"})  # fmt: skip
# fmt: off
_SYNTAX: Final = frozenset({
    "all", "any", "array", "as", "between", "bigint", "binary", "boolean", "by", "case", "cast", "char", "cluster",
    "cube", "current", "date", "decimal", "distinct", "distribute", "double", "else", "end", "escape", "except",
    "exclude", "exists", "extract", "filter", "float", "from", "full", "group", "grouping", "having", "if", "ilike",
    "in", "inner", "int", "integer", "intersect", "interval", "is", "join", "lateral", "leading", "left", "like",
    "limit", "map", "minus", "natural", "not", "null", "of", "offset", "on", "or", "order", "outer", "over", "overlay",
    "partition", "percentile_cont", "percentile_disc", "pivot", "position", "qualify", "range", "recursive", "right",
    "rlike", "rollup", "row", "rows", "select", "semi", "sets", "short", "smallint", "some", "sort", "string",
    "struct", "tablesample", "then", "timestamp", "timestamp_ltz", "timestamp_ntz", "tinyint", "to", "trailing",
    "try_cast", "union", "unpivot", "using", "values", "varchar", "void", "when", "where", "window", "with", "within",
    "and", "both",
})
# fmt: on
# After these a word before a parenthesis names a query or its columns.
_NAMING: Final = frozenset({"as", "with", "recursive", ")"})


def refuse_calls(sql: str) -> None:
    """Raise QueryRefused for a query that calls what is not on the allow-list, or pipes rows through a command."""
    if found := _ON_SIGHT.search(sql):
        raise QueryRefused(f"a query reads tables; it cannot call methods of Java or other code: {found[0][:40]!r}")
    if "${" in sql:
        raise QueryRefused("a query reads tables; ${…} would be a variable of the engine and is refused, also in text")
    if _SCRIPT.search(sql):
        raise QueryRefused("a query reads tables; it cannot pipe rows through a command: USING names columns in (…)")
    for name in called(sql):
        if name not in allowed():
            raise QueryRefused(f"a query may not call {name!r} here; Spark's functions of columns are allowed")


def called(sql: str) -> Iterator[str]:
    """Yield the names, in lower case, that stand before a parenthesis and can be functions; of a qualified one the
    last.
    """
    before, last = "", ""
    for token in _TOKENS.finditer(sql):
        if token["skipped"] is not None:
            continue
        text = (token["word"] or token["quoted"] or token["sign"] or "").lower()
        if text == "(" and (last[:1].isalpha() or last[:1] == "_" or "`" in last) and before not in _NAMING:
            yield last
        before, last = last, text


def at_mission_time(sql: str, now_ns: int) -> str:
    """Return a query in which the functions of the present give the mission time ``now_ns``."""
    now = f"timestamp_micros({now_ns // 1000})"
    values = {**dict.fromkeys(_NOW, now), **dict.fromkeys(_TODAY, f"CAST({now} AS DATE)")}

    def at_that_time(token: re.Match[str]) -> str:
        word = (token["word"] or "").lower()
        is_called = bool(token["empty"]) or word in _WITHOUT_PARENTHESES
        return values[word] if word in values and is_called else token[0]

    return _WITH_EMPTY.sub(at_that_time, sql)


@cache
def allowed() -> frozenset[str]:
    """Return the names of Spark's public functions that run no code and read no file, and the words of its syntax.

    Functions of XML read what a text names as its DTD, and what an option names as its schema: files, and addresses.
    """
    public = {name.lower() for name in functions.__all__}
    reading = {name for name in public if "xml" in name or "xpath" in name}
    return frozenset(public - reading - _NOT_CALLED) | _SYNTAX
