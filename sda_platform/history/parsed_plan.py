"""What a query on Spark may consist of: operators, functions and relations of allow-lists, as Spark has parsed it.

`spark_query_text` judges the text before Spark reads it. Here Spark's own reading is judged, before rows are read, so
that no difference between the two lets a query through.
"""

import re
from typing import Final

from sda_platform.history.errors import QueryRefused
from sda_platform.history.spark_query_text import allowed

PARSED, ANALYZED, PHYSICAL = "== Parsed Logical Plan ==", "== Analyzed Logical Plan ==", "== Physical Plan =="
_OPERATORS: Final = frozenset({
    "Aggregate", "CTE", "Distinct", "Except", "Expand", "Filter", "Generate", "GlobalLimit", "GroupingSets",
    "Intersect", "Join", "LateralJoin", "LocalLimit", "LocalRelation", "Offset", "OneRowRelation", "PipeOperator",
    "Pivot", "Project", "Repartition", "RepartitionByExpression", "Sample", "Sort", "SubqueryAlias", "Union",
    "Unpivot", "UnresolvedHaving", "UnresolvedHint", "UnresolvedInlineTable", "UnresolvedOrderByAll",
    "UnresolvedQualify", "UnresolvedRelation", "UnresolvedSubqueryColumnAliases", "UnresolvedTableValuedFunction",
    "UnresolvedTVFAliases", "UnresolvedWith", "Window", "WithWindowDefinition",
})  # fmt: skip
_TABLE_FUNCTIONS: Final = frozenset({"explode", "explode_outer", "inline", "posexplode", "range", "stack"})
_OPERATOR: Final = re.compile(r"(?:[ :]  )*(?:[+:]- )?'?(\w*)")
_FUNCTION: Final = re.compile(r"'((?:`[^`]*`|\w+)(?:\.(?:`[^`]*`|\w+))*)\(")
_RELATION: Final = re.compile(r"'?UnresolvedRelation \[(.*?)\]")
_TABLE_FUNCTION: Final = re.compile(r"'?UnresolvedTableValuedFunction \[(.*?)\]")
_SHORTENED: Final = re.compile(r"\.\.\. \d+ more fields")


def refuse_foreign_parts(explained: str) -> None:
    """Raise QueryRefused if the parsed plan in ``explained``, all plans of a query, has what is not on a list."""
    if any(explained.count(heading) != 1 for heading in (PARSED, ANALYZED, PHYSICAL)):
        raise QueryRefused("the plan of the query cannot be read: a text in it looks like a heading of a plan")
    plan = explained.partition(PARSED)[2].partition(ANALYZED)[0].strip("\n")
    if _SHORTENED.search(plan):
        raise QueryRefused("the query has too many columns to be judged: name fewer")
    for line in plan.splitlines():
        found = _OPERATOR.match(line)
        if found is None or found[1] not in _OPERATORS:
            raise QueryRefused(f"a query reads tables; its plan may not have {line.strip(' :+-')[:40]!r}")
        if (relation := _RELATION.search(line)) and not re.fullmatch(r"\w+", relation[1]):
            raise QueryRefused(f"a query reads tables; {relation[1]!r} is the name of a file or of another catalogue")
        if (function := _TABLE_FUNCTION.search(line)) and function[1].lower() not in _TABLE_FUNCTIONS:
            raise QueryRefused(f"a query reads tables; {function[1]} is disabled")
        for name in _FUNCTION.findall(line):
            if (last := name.rpartition(".")[2].strip("`").lower()) not in allowed():
                raise QueryRefused(f"a query may not call {last!r} here; Spark's functions of columns are allowed")
